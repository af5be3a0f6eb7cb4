"""Terminal clients: the full-screen UI, and the line-mode chat for pipes and simple terminals.

Both are clients of a chat: they draw its events and send commands, and decide nothing. Everything that a model, a tool
or a server wrote is escaped before a terminal sees it.

- `text`: text building blocks of both UIs
- `lines`: line-mode chat, `everturn chat`
- `tui`: full-screen UI, `everturn`
"""
