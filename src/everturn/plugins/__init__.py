"""Built-in plugins.

They are called through the same hooks as every plugin (`core.hooks`). Both also use the `ActiveTurn` behind their
context, to write events of their own.

- `tool_calling`: offers tools to the model and runs its calls
- `file_snapshots`: records folders before and after each step, and reverts them
"""
