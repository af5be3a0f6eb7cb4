"""OpenAI protocol: Chat Completions and Responses for OpenAI clients. A `model` is one of our agents.

- `routes`: the Responses endpoints, the list of models, and the route table
- `chat_completions`: the Chat Completions endpoint
- `schema`: request bodies, and what is new in them
- `turns`: response ids, the turn behind a response, and answers to its gates
- `respond`: a turn as one collected response, or as a monitored stream
- `headers`: response headers, and the wait time that a client asks for
"""
