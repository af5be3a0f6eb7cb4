"""Buses: carry live deltas from the driver of a turn to its readers, and signals to the drivers of sessions.

Nothing on a bus is durable: a reader that misses frames makes up for them from the log.

- `registry`: a bus by its URL
- `memory`: the bus of one process
- `nats`: the bus between nodes, on NATS
"""
