"""Lazy exports: a package imports a name that it exports when it is first asked for, so nobody pays for the others."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are defined elsewhere: name -> module."""

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(homes[name]), name)
        vars(import_module(package))[name] = found  # from now on it is found without asking
        return found

    return find
