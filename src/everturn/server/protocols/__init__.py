"""Stock chat protocols over HTTP: the routes that let existing clients talk to Everturn without knowing its API.

A route finds the session, sends what is new or answers gates, and streams the turn through an encoder of
`everturn.protocols`. The server keeps the history; what a client claims about earlier messages is never trusted.

- `common`: finding the session and turn, and answering gates, for AI SDK, AG-UI and A2A
- `data_url`: files in data URLs
- `openai`: OpenAI Chat Completions and Responses
- `ai_sdk`: the UI message stream of the AI SDK (`useChat`)
- `ag_ui`: AG-UI runs
- `a2a`: agent cards and tasks of the Agent2Agent protocol
"""
