"""Parts of `everturn run`, which `commands.run` puts together: one message, one turn, one exit code.

- `input`: the prompt, from the arguments and stdin
- `local`: a chat in this process, from the configuration and the command line
- `folder`: the project that the session belongs to, and its agent
- `run_store`: the default store, the last session in it, and saving a run that had to be in memory
- `remote`: the same interface for a session at a server
- `gates`: answers to gates when no person is at a terminal
- `output`: text or JSON on stdout, notes on stderr, and the exit code
"""
