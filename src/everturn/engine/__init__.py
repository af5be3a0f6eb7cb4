"""Engines: start the drive of a session when it is woken, and again when its driver dies.

- `registry`: an engine by its URL
- `inline`: the engine of one process, with asyncio tasks
- `restate`: the engine of many processes, on Restate
"""
