"""Engines: start the drive of a session when it is woken, and again when its driver dies.

- `registry`: an engine by its URL
- `inline`: the engine of one process, with asyncio tasks
- `postgres`: the engine of many processes, on PostgreSQL alone
- `restate`: the engine of many processes, on Restate
- `temporal`: the same on Temporal
"""

from typing import TYPE_CHECKING

from everturn.lazy_exports import lazy_exports

if TYPE_CHECKING:  # `_HOMES` says the same
    from everturn.core.ports import Engine

# Imported when they are first asked for.
_HOMES = {
    "Engine": "everturn.core.ports",
}

__all__ = [
    "Engine",
]

__getattr__ = lazy_exports(__name__, _HOMES)
