"""Tools: what a model may call.

A tool is any object with a `spec`, `validate` and `run` (`core.ports.Tool`). `function` makes one from a Python
function, `registry` decides which tools a turn has, and the other modules and packages hold the built-in tools and the
wrappers.

- `function`: the `@tool` decorator; schema and descriptions from a function's signature and docstring
- `tool_options`: the options of `@tool`, and their validation
- `validation_errors`: error messages for invalid arguments, written for the model
- `registry`: tool registry; one namespace for all tools, and the selection of a turn
- `groups`: tool groups, with rules for the system prompt
- `skills`: skills of a group, and the `load_skill` tool
- `rename`: wrapper that gives a tool another name
- `manual`: wrapper for a tool that a person runs
- `client`: tools that a client runs (web UI, editor, device)
- `browser`: the client tools that the web UI runs
- `agent`: sub-agents; a tool that runs a task in a turn of its own
- `read_result`: the `read_result` tool, which reads ranges of a truncated result
- `files`: file tools on a folder or on the session's own files
- `code`: code execution tools in a sandbox (shell, Python, JavaScript)
- `snapshots`: file snapshots of a folder before and after a turn
- `web`: the `fetch_url` tool
"""
