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
- `stats`: statistics of a turn, folded from its events
- `turn_trace`: what a turn did and when, as spans, folded from its events
- `tree`: the message tree, folded from a session's events
- `presence`: who looks at a conversation or an approval now; never stored
- `waits`: open timers and external results, as a store keeps them
- `gate_rows`: gates as a store keeps them, and the checks of an answer at admission
- `titles`: session titles
- `session_parameters`: parameters that a person chose for the later turns of a session
- `requests`: the provider-neutral model request
- `token_estimate`, `context_size`: tokens of a request, counted and estimated, and its limit
- `context_report`: what fills the context window, as people see it
- `cache_health`: what requests read from the provider's prompt cache, and why it was less than expected
- `compaction_plan`, `compaction`: what a compaction replaces, and what a model reads after it
- `call_index`: the calls that a compaction replaced
- `history`: earlier messages rendered into a model request
- `chunks`: chunks of a model stream
- `deltas`: live deltas, cursors, and the reader of one turn
- `session_reader`: the reader of all turns of a session
- `rules`: permission rules (a sub-package)
- `validate`: validation of rules and budgets that are passed in Python
- `loop_detection`: detection of repeated tool calls and texts
- `continuation`: texts that the output limit cut, and their continuation
- `documents`: the text of attached PDF and Office files: what a model is shown, ranges, and search
- `modality`: model types (chat, image, audio) and the input each needs
- `canonical_json`: canonical JSON, hashing and parsing
- `json_schema`: JSON Schema validation
- `tool`: the tool port
- `hooks`: the plugin hooks
- `store_ports`: the ports of a store: event log, command inbox, session directory, blobs
- `session_claims`: retry pauses and quarantine of a session whose driver died
- `ports`: the other ports: model, engine, bus, clock, ids
- `search_terms`: the terms of a text and of a search query
- `recall`: search in the messages of a conversation, and messages as a model recalls them
- `user_memory`: memory files of a user, their changes, and their port
- `schedules`: schedules, which of their planned times are due, and their port
- `webhooks`: which events are told to whom, signatures, and the port of the outbox
- `accounts`: tenants, users, credentials and audit records, and their port
- `audit`: roles of users, and records of the audit log
- `user_records`: passwords, budgets and invitations of users, and their port
- `sandbox`: the port for sandboxed code execution
"""
