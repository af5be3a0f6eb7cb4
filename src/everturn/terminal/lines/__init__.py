"""Line-mode chat (`everturn chat`): the terminal UI that prints lines, for pipes and simple terminals.

The flow: `input` → `chat_loop` → `turn_watch` → `turn_view`; if a turn opens a gate: `gate_queue` → `gate_prompt` →
`gate_view`.

- `chat_loop`: reads lines, runs one turn after the other
- `input`: lines from a person or a pipe
- `texts`: commands, help and hints of the chat
- `messages`: messages of the chat itself, to the screen or to stderr
- `turn_watch`: draws one turn, and asks about its gates
- `turn_view`: prints the events of a turn
- `gate_queue`: open gates, one after the other
- `folder`: the folder that the chat works in, and its slash commands
- `gate_prompt`: asks a person about one gate and sends the answer
- `gate_view`: prints one gate in full
- `gate_answers`: the keys that answer a gate, and their help
- `form_prompt`: fills in a form, field by field or as JSON
- `editor`: the person's own editor, and edited arguments and results
- `confirm`: a yes-or-no question
- `ctrl_c`: the first Ctrl-C cancels, the second exits
- `attachments`: files of the next message, and files of the last answer
- `revert`: `/files`, `/revert` and `/unrevert`
- `context`: `/context`, and the warning before a summary
- `memory`: `/memory`
- `tool_list`: `/tools`, and the status of MCP servers
- `unfinished_turns`: turns that an earlier process left unfinished
"""
