"""Text building blocks of both terminal UIs (line mode and full screen): pure functions and data, and no screen of
their own except `screen`.

`screen` wraps and aligns lines, and escapes what a terminal would obey; `visible_text` shows every character of a
text.

- `screen`: lines of a terminal: wrapping, alignment, styles, escapes
- `visible_text`: text with every invisible character written out, for approvals
- `paths`: file paths that people type, and file names that models choose
- `forms`: form fields from a JSON Schema, and typed text as their values
- `compaction`: sizes before and after a compaction
- `context`: the gauge, the bar and the warning of the context window
- `file_changes`: file changes on one line
- `tool_loader`: tools from files and modules named on the command line
- `local_tools`: file, code, shell, web and MCP tools from command-line options
- `prompt_history`: the messages that a person has sent, for a search
- `permissions`: the output of `everturn permissions`
"""
