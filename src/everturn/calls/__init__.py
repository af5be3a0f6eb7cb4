"""Tool calls: takes each call of a step from lookup through permission, gate, execution and review to its result.

A failure at any stage becomes a result that tells the model what was wrong. No tool runs before its `CallStarted` is in
the log.

- `pipeline`: plans and runs all calls of a step, until each has a result or waits
- `admit`: checks one call before it runs: lookup, arguments, permission, gate, start
- `lookup`: finds the tool that a model named
- `arguments`: parses the arguments of a call
- `json_repair`: converts almost-JSON into strict JSON
- `references`: replaces references to earlier results in arguments
- `results`: the earlier results that a call may refer to
- `private_values`: replaces private values by placeholder tokens
- `provider_tools`: decides which tools of the provider a request offers
- `loop_guard`: fingerprints of recent calls for loop detection
- `gates`: builds the gate for a call, and the denial that the model reads
- `execute`: runs a tool with its timeout and hooks
- `tool_context`: implements the `ToolContext` of a running tool
- `contributors`: the other users who had a hand in a call
- `suspend`: suspends a tool that waits, and resumes it
- `tool_steps`: durable steps, timers and external results of a tool
- `callbacks`: tokens with which an external system finishes a waiting call
- `subagents`: starts the sub-agent runs of a tool
- `subagent_runner`: runs a sub-agent in its own session and waits for it
- `session_files`: the session's files and blobs, for tools
- `documents`: the attached documents of the branch, for tools
- `recall`: earlier messages of the branch and of the user's sessions, for tools
- `memory_files`: the memory files of the turn's user, for tools
- `output`: converts a tool's return value into the text that the model reads
- `review`: gates for results that a person reviews first
"""
