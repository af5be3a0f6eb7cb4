"""State and services of running turns in this process, shared by the stages of a turn, its tool calls and the driver.

Everything here is lost with the process and rebuilt from the log.

- `active_turn`: one turn in this process
- `drive_setup`: the settings, ports and services that turns are driven with
- `ledger`: the only writer of a session's log
- `branch`: the messages before a turn, read as far as they are needed
- `older_calls`: the calls above the last summary, found through an index
- `permissions`: the rules of a turn and the decision about a call
- `prompt_layers`: the layers of the prompt that a turn records
- `dependency_scope`: the dependencies of an agent, opened for a turn
- `session_uploads`: the files of a session that were uploaded to providers
- `budget`: limits of a turn, a session or a tenant
- `plugin_table`: the hooks that the registered plugins implement
- `hook_contexts`: the contexts that hooks get
- `appended_messages`: what hooks may append
- `guardrail_contexts`: the contexts of hooks that may refuse, or try again
- `compact_context`: the context of `on_compact`
- `tool_tasks`: the asyncio tasks of running tools, which may outlive their turn
- `subagent_index`: the sessions of sub-agent runs
- `notifier`: a counting notification that waiters can miss without loss
- `follow`: a reader of one turn: the log, then live deltas
- `log_poll`: polling of the log for readers whose notification was lost
"""
