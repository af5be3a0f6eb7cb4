"""PostgreSQL bus: live deltas and signals between processes by LISTEN and NOTIFY. `PostgresBus` is the one class to use.

- `bus`: `PostgresBus`, which starts the following when it is first used
- `node`: what a process publishes and hears
- `sender`: messages as notifications
"""

from everturn.bus.postgres.bus import PostgresBus

__all__ = ["PostgresBus"]
