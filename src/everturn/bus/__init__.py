"""Buses: carry live deltas from the driver of a turn to its readers, and signals to the drivers of sessions.

Nothing on a bus is durable: a reader that misses frames makes up for them from the log.

- `registry`: a bus by its URL
- `memory`: the bus of one process
- `nats`: the bus between nodes, on NATS
"""

from typing import TYPE_CHECKING

from everturn.lazy_exports import lazy_exports

if TYPE_CHECKING:  # `_HOMES` says the same
    from everturn.core.ports import (
        Bus,
        LiveTail,
        SignalListener,
    )

# Imported when they are first asked for.
_HOMES = {
    "Bus": "everturn.core.ports",
    "LiveTail": "everturn.core.ports",
    "SignalListener": "everturn.core.ports",
}

__all__ = [
    "Bus",
    "LiveTail",
    "SignalListener",
]

__getattr__ = lazy_exports(__name__, _HOMES)
