"""Engine registry: returns the engine for a URL, from the entry points `everturn.engines` of installed packages."""

from __future__ import annotations

from everturn.core.ports import Engine
from everturn.entry_points import names_in, open_by_name
from everturn.errors import ConfigError


def get_engine(url: str) -> Engine:
    """Return an engine by its URL.

    Raises:
        ConfigError: no installed package provides an engine for this URL.
    """
    scheme, separator, _ = url.partition("://")
    engine: Engine | None = open_by_name("everturn.engines", scheme, url) if separator else None
    if engine is None:
        others = "".join(f" {name}://…" for name in names_in("everturn.engines")) or " none is installed"
        raise ConfigError(
            f"{scheme!r} is not an engine; there are:{others} (without engine= turns run in this process; Restate and "
            "Temporal come with `Cluster`)"
        )
    return engine
