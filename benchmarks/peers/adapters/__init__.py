"""One module per peer, imported in that peer's own environment: its natural way to stream and to register tools.

Each has an `Adapter(base, model, tools, history)`. `new()` makes a conversation with that history, in the peer's own
form, and is not measured; `turn(conversation, on_text)` sends "go", runs the tools, and hands on text as it comes.
`DISTRIBUTION` is whose version is told beside the figures.
"""
