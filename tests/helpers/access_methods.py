"""The public methods of `Access` and of its resources, by their paths: `me`, `sessions.list`, `gates.page` …

They are found by looking, so that a new resource, or a new method, is covered by every test that goes through them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any, Final

from everturn.access.access import Access
from tests.helpers.tenants import somebody

_NOWHERE: Final[Any] = None  # making an `Access` must ask for nothing


def _public_attributes(owner: object) -> list[str]:
    return [name for name, _ in inspect.getmembers(type(owner), inspect.ismemberdescriptor) if not name.startswith("_")]


def _resources() -> dict[str, object]:
    access = Access(_NOWHERE, somebody())
    return {name: getattr(access, name) for name in _public_attributes(access) if name != "scope"}


RESOURCES: Final[dict[str, type]] = {name: type(resource) for name, resource in _resources().items()}
"""The class of each resource, by the attribute of `Access`."""


def _methods(owner: type, prefix: str = "") -> dict[str, Callable[..., Any]]:
    """The public methods of a class that take a role."""
    return {
        prefix + name: member
        for name, member in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_") and "needs" in member.__dict__
    }


METHODS: Final[dict[str, Callable[..., Any]]] = _methods(Access) | {
    path: method for name, owner in RESOURCES.items() for path, method in _methods(owner, f"{name}.").items()
}
"""All of them, by path."""


def without_a_role() -> list[str]:
    """The paths of everything public that takes no role: methods, properties, and attributes of resources."""
    found: list[str] = []
    for prefix, owner in [("", Access), *((f"{name}.", owner) for name, owner in RESOURCES.items())]:
        for name, member in inspect.getmembers(owner):
            if name.startswith("_") or (owner is Access and name in RESOURCES):
                continue
            if "needs" not in getattr(member, "__dict__", {}):
                found.append(prefix + name)
        assert "__dict__" not in vars(owner), f"{owner.__name__} has slots, so that all its attributes are seen here"
    return found


def method_at(access: Access, path: str) -> Callable[..., Any]:
    """A method of an `Access`, by its path."""
    return attrgetter(path)(access)
