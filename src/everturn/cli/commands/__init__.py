"""Commands of `everturn`: one module per command or group of commands.

Each command is a function that takes the parsed options and returns the exit code; `everturn.cli.COMMANDS` maps names
to these functions. The options are declared in `cli.args`.

- `chat`: `everturn chat`, full-screen, or line by line where that is not possible
- `plain_chat`: `everturn chat --plain`, line by line
- `run`: `everturn run`: one message, one turn
- `serve`: `everturn serve`
- `worker`: `everturn worker` and `everturn ps`
- `mcp`: `everturn mcp serve|list|trust|login`
- `sessions`: `everturn sessions`, `export` and `import`
- `session_sharing`: `everturn sessions share|unshare|link`
- `schedules`: `everturn schedules`
- `replay`: `everturn replay`
- `accounts`: `everturn login`, `keys` and `users`
- `user_links`: `everturn users invite|reset-password|invitations|disable|enable|remove`
- `permissions`: `everturn permissions explain|check`
- `config`: `everturn config check|show`
- `config_change`: `everturn config path|edit|set`
- `auth`: `everturn auth login|list|logout`
- `models`: `everturn models`
- `doctor`: `everturn doctor`
- `completion`: `everturn completion`
- `version`: `everturn version` and `everturn demo`
"""
