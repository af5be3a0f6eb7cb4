"""Command-line arguments: the argparse parser of every command, with its help text, examples and exit codes.

These modules only declare options; the commands themselves are in `cli.commands`.

- `parser`: the base parser (one-line errors, wrapped help, "did you mean") and value types
- `commands`: the root parser, its overview, and the commands with few options (demo, doctor, version, completion,
  permissions)
- `chat`: `everturn chat`
- `run`: `everturn run`, and the options that `permissions explain` shares with it
- `server`: `serve`, `worker`, `ps`, `config`, `login`, `keys` and `users`
- `sessions`: `sessions`, `export` and `import`
- `schedules`: `everturn schedules`
- `replay`: `everturn replay`
- `mcp`: `everturn mcp`
"""
