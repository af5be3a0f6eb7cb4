"""Parts of `everturn run`, which `commands.run` puts together: one message, one turn, one exit code.

- `input`: the prompt, from the arguments and stdin
- `local`: a chat in this process, from the configuration and the command line
- `remote`: the same interface for a session at a server
- `gates`: answers to gates when no person is at a terminal
- `output`: text or JSON on stdout, notes on stderr, and the exit code
"""
