"""Agent Client Protocol (ACP): Everturn as the agent of an editor, over stdin and stdout.

The agent is a client of the server of the store, as the terminal is: sessions, turns and approvals are the same ones.
The messages are written by hand and checked against the official schema in tests (decision 0190).

- `connection`: JSON-RPC 2.0, one message per line; errors of the other side never end it
- `agent`: the methods that an editor calls
- `session`: one session in the editor: follows its log, runs prompts, asks for approvals
- `unused_sessions`: sessions without a message, which an editor may load after a restart
- `updates`: pure encoder from events and deltas to `session/update`
- `tool_calls`: kind, title, locations and diffs of a tool call
- `permission_options`: the options of an approval, and the answer that each of them is
- `prompt_content`: the text, files and context of a prompt
- `texts`: texts of the catalogue
"""
