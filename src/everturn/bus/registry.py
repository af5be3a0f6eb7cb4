"""Bus registry: returns the bus for a URL, from the entry points `everturn.buses` of installed packages."""

from __future__ import annotations

from everturn.bus.memory import MemoryBus
from everturn.core.ports import Bus
from everturn.entry_points import names_in, open_by_name
from everturn.errors import ConfigError


def get_bus(url: str) -> Bus:
    """Return a bus by its URL; `memory` is the bus of one process.

    Raises:
        ConfigError: no installed package provides a bus for this URL.
    """
    if url == "memory":
        return MemoryBus()
    scheme, separator, _ = url.partition("://")
    bus: Bus | None = open_by_name("everturn.buses", scheme, url) if separator else None
    if bus is None:
        others = "".join(f", {name}://…" for name in names_in("everturn.buses"))
        raise ConfigError(f"{scheme!r} is not a bus; there are: memory{others} (NATS comes with `Cluster`)")
    return bus
