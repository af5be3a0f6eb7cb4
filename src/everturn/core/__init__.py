"""The domain model: data types, the turn and call state machines, permission rules, and ports.

This package is pure: no clock, no I/O, no randomness, no await. msgspec is its only third-party dependency. Everything
that touches the world is behind a Protocol in `ports`, `tool`, `accounts` or `sandbox`.

Modules, in reading order:

- `parts`: message parts (text, reasoning, tool calls, files), token usage, tool output
- `messages`: one message, a node of the message tree
- `options`: the options of a turn: model, tools, rules, budget
- `gates`: approval gates, their resolutions, and grants
- `events`: every event of the log
- `commands`: the commands of a session's inbox
- `calls`: state machine of one tool call
- `state`: state machine of a turn: `fold` the log, `decide` the next action
- `tree`: the message tree, folded from a session's events
- `gate_rows`: gates as a store keeps them, and the checks of an answer at admission
- `titles`: session titles
- `requests`: the provider-neutral model request
- `history`: earlier messages rendered into a model request
- `chunks`: chunks of a model stream
- `deltas`: live deltas, cursors, and the reader of one turn
- `session_reader`: the reader of all turns of a session
- `rules`: permission rules (a sub-package)
- `validate`: validation of rules and budgets that are passed in Python
- `loop_detection`: detection of repeated tool calls
- `modality`: model types (chat, image, audio) and the input each needs
- `canonical_json`: canonical JSON, hashing and parsing
- `json_schema`: JSON Schema validation
- `tool`: the tool port
- `hooks`: the plugin hooks
- `store_ports`: the ports of a store: event log, command inbox, session directory, blobs
- `session_claims`: retry pauses and quarantine of a session whose driver died
- `ports`: the other ports: model, engine, bus, clock, ids
- `accounts`: tenants, users, credentials and audit records, and their port
- `sandbox`: the port for sandboxed code execution
"""
