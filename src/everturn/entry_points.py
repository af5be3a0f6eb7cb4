"""Entry points: finds stores, models, engines and buses that other packages provide, by the scheme of a URL or a vendor.

A package declares, for example, `[project.entry-points."everturn.stores"] redis = "my_package:open_store"`; then
`redis://host/0` names a store, and `open_store("redis://host/0")` returns it. The groups are `everturn.stores`,
`everturn.engines`, `everturn.buses` (each by the scheme of its URL) and `everturn.models` (by the vendor in
`vendor:model`). Built-in names cannot be replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from everturn.errors import ConfigError

Group = Literal["everturn.stores", "everturn.engines", "everturn.buses", "everturn.models"]


def names_in(group: Group) -> list[str]:
    """The names that installed packages provide in a group."""
    from importlib.metadata import entry_points  # on demand: it is slow to import

    return sorted({entry.name for entry in entry_points(group=group)})


def open_by_name(group: Group, name: str, address: str) -> Any:
    """Return what a package provides under a name, opened with the whole address; None if there is no such name.

    Raises:
        ConfigError: the package cannot be imported, or two packages provide the same name.
    """
    from importlib.metadata import entry_points

    found = list(entry_points(group=group, name=name))
    if not found:
        return None
    if len({entry.value for entry in found}) > 1:
        packages = ", ".join(sorted(entry.dist.name if entry.dist is not None else entry.value for entry in found))
        raise ConfigError(f"{name!r} in {group} is provided by more than one package: {packages}; uninstall one")
    try:
        factory = cast("Callable[[str], Any]", found[0].load())
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{name!r} in {group} cannot be loaded from {found[0].value}: {error}") from error
    return factory(address)
