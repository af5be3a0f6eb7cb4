"""The domain model: data types, the turn and call state machines, permission rules, and ports.

This package is pure: no clock, no I/O, no randomness, no await. msgspec is its only third-party dependency. Everything
that touches the world is behind a Protocol in `ports`, `store_ports`, `tool`, `tenants.accounts` or `sandbox`.

The turn and its log, in reading order:

- `parts`: message parts (text, reasoning, tool calls, files), token usage, tool output
- `messages`: one message, a node of the message tree
- `options`: the options of a turn: model, tools, rules, budget
- `rules`: permission rules (a sub-package)
- `validate`: validation of rules and budgets that are passed in Python
- `gates`: approval gates, their resolutions, and grants
- `events`: every event of the log
- `commands`: the commands of a session's inbox
- `calls`: state machine of one tool call
- `loop_detection`: detection of repeated tool calls and texts
- `phases`: phases of a turn, and the table of transitions
- `state`: state of a turn: `fold` reads its log
- `decide`: next action of a turn: `decide` says it from the state
- `tree`: the message tree, folded from a session's events
- `forks`: copies of an answer up to one of its steps
- `titles`, `todos`, `ratings`, `session_parameters`, `file_uploads`: what else events record of a session

Requests and streams:

- `requests`: the provider-neutral model request
- `history`: earlier messages rendered into a model request
- `context`: sizes, compaction and texts of documents (a sub-package)
- `continuation`: texts that the output limit cut, and their continuation
- `modality`: model types (chat, image, audio) and the input each needs
- `chunks`: chunks of a model stream
- `deltas`: live deltas, cursors, and the reader of one turn

Ports and what they store:

- `ports`: model, engine, bus, clock, ids
- `store_ports`: event log, command inbox, session directory, blobs
- `tool`, `sandbox`: tools, and sandboxed code execution
- `hooks`: the plugin hooks
- `gate_rows`, `waits`, `session_claims`: gates, timers and claims as a store keeps them
- `presence`: who looks at a conversation or an approval now; never stored
- `rate_limits`, `rate_limit_state`: limits of requests to providers
- `schedules`, `webhooks`: planned turns, and events told to others
- `tenants`: users, credentials, sharing, settings, keys, the audit log (a sub-package)
- `memory`: memory files, and search in past messages (a sub-package)
- `projections`: indexes, traces and statistics, computed from the log (a sub-package)

Everywhere:

- `canonical_json`: canonical JSON, hashing and parsing
- `json_schema`: JSON Schema validation
"""
