"""Long conversation: a campaign with the real local model, in a context window that is far too small for it.

- `conversation`: the messages, the facts among them, and the questions at the end.
- `recorder`: a proxy between the terminal and the model that keeps the bytes of every request and answer.
- `assistant`: `everturn chat` in a pseudo-terminal, and its log.
- `campaign`: the program.
- `report`: what is written down of a run.
"""
