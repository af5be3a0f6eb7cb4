"""Files and the environment → one tree of plain values, and where each of them stands.

Built-in defaults < /etc/everturn/everturn.toml < ~/.config/everturn/everturn.toml < the environment. A file that is
named takes the place of both files: what a service does then depends on one file alone. A file that merely lies in the
current folder is never read, for it may be a stranger's.

A later layer wins, key by key. Rules are the exception: those of all layers hold together, so that no file takes back
what another one denies.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path as File
from typing import Any, Final, cast

from msgspec import Struct

from everturn.config.positions import Path, positions
from everturn.config.reading import FromVariable
from everturn.config.trouble import ConfigTroubles, Trouble, Where
from everturn.errors import ConfigError

SYSTEM_FILE: Final = File("/etc/everturn/everturn.toml")
NAME: Final = "everturn.toml"
SIZE_LIMIT = 1_000_000  # bytes of a file
VARIABLE: Final = re.compile(r"EVERTURN_([A-Z0-9_]+?)__([A-Z0-9_]+)")
_AT_LINE: Final = re.compile(r" \(at line (\d+), column (\d+)\)| \(at end of document\)")


class Layer(Struct, frozen=True):
    """One source: a file as it was read, or the environment (which has no path)."""

    tree: dict[str, Any]
    places: dict[Path, Where]
    path: str = ""
    text: str = ""


class Tree(Struct, frozen=True):
    """All layers in one."""

    values: dict[str, Any]
    places: dict[Path, Where]
    files: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()  # what was in them, to see whether they have changed

    def where(self, path: Path) -> Where:
        """Where a key stands; or, if it does not, the table it would be in."""
        for end in range(len(path), 0, -1):
            if (found := self.places.get(path[:end])) is not None:
                return found
        return Where(self.files[-1] if self.files else "the environment")


def user_file(environ: Mapping[str, str]) -> File | None:
    """The file of whoever runs this."""
    if base := environ.get("XDG_CONFIG_HOME"):
        return File(base) / "everturn" / NAME if os.path.isabs(base) else None
    home = environ.get("HOME")
    return File(home) / ".config" / "everturn" / NAME if home and os.path.isabs(home) else None


def gather(named: str | None, environ: Mapping[str, str], system: File = SYSTEM_FILE) -> Tree:
    """Read all layers.

    Raises:
        ConfigError: a file cannot be read, or is no TOML.
    """
    layers: list[Layer] = []
    if named is not None:
        layers.append(read_file(File(named).expanduser()))
    else:
        usual = [file for file in (system, user_file(environ)) if file is not None]
        layers += [read_file(file) for file in usual if os.path.lexists(file)]
    layers.append(read_variables(environ))
    return merge(layers)


def read_file(path: File) -> Layer:
    """A file as a layer.

    Raises:
        ConfigError: it cannot be read, or is no TOML; the text says where.
    """
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
        text = data.decode()
    except OSError as error:
        raise ConfigError(f"{path}: the configuration cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a text in UTF-8, so no TOML") from None
    if len(data) > SIZE_LIMIT:
        raise ConfigError(f"{path}: too large for a configuration: there may be {SIZE_LIMIT} bytes")
    try:
        tree = tomllib.loads(text)
        found = positions(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        line, column = (int(at[1]), int(at[2])) if at and at[1] else (text.count("\n") + 1, 1)
        said = f"this is no TOML: {_AT_LINE.sub('', str(error))}"
        raise ConfigTroubles([Trouble(Where(str(path), line, column), "", said)]) from None
    except RecursionError:
        raise ConfigError(f"{path}: this is no TOML: it is nested too deep") from None
    return Layer(tree, {key: Where(str(path), *place) for key, place in found.items()}, str(path), text)


def read_variables(environ: Mapping[str, str]) -> Layer:
    """The environment as a layer: `EVERTURN_SERVER__PORT=8001` is `port` of `[server]`.

    Raises:
        ConfigError: one variable is beneath another.
    """
    tree: dict[str, Any] = {}
    places: dict[Path, Where] = {}
    for name in sorted(environ):
        if VARIABLE.fullmatch(name) is None:
            continue
        path = tuple(name.removeprefix("EVERTURN_").lower().split("__"))
        table: Any = tree
        for end, piece in enumerate(path[:-1], 1):
            places.setdefault(path[:end], Where(name))
            table = table.setdefault(piece, {})
            if isinstance(table, str):
                raise ConfigError(f"{name}: there is another variable for what it would be a part of")
        table[path[-1]] = FromVariable(environ[name])
        places[path] = Where(name)
    return Layer(tree, places)


def merge(layers: list[Layer]) -> Tree:
    """All layers in one: later ones win, and rules add up."""
    values: dict[str, Any] = {}
    places: dict[Path, Where] = {}
    for layer in layers:
        _merge(values, layer.tree, places, layer.places, (), ())
    files = [layer for layer in layers if layer.path]
    return Tree(values, places, tuple(file.path for file in files), tuple(file.text for file in files))


def _merge(
    into: dict[str, Any], new: dict[str, Any], places: dict[Path, Where], found: dict[Path, Where], to: Path, at: Path
) -> None:
    for key, value in new.items():
        old = into.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            places.setdefault((*to, key), found.get((*at, key), Where("")))
            _merge(cast("dict[str, Any]", old), cast("dict[str, Any]", value), places, found, (*to, key), (*at, key))
            continue
        shift = 0
        if key == "permissions" and isinstance(value, list) and isinstance(old, list):
            rows = cast("list[Any]", old)
            shift, into[key] = len(rows), [*rows, *cast("list[Any]", value)]
        else:
            into[key] = _copy(value)
            for path in [path for path in places if path[: len(to) + 1] == (*to, key)]:
                del places[path]
        _take(places, found, (*to, key), (*at, key), shift)


def _take(places: dict[Path, Where], found: dict[Path, Where], to: Path, at: Path, shift: int) -> None:
    """Take over the places beneath a key; items of a list are counted on."""
    for path, place in found.items():
        if path[: len(at)] == at:
            rest = path[len(at) :]
            if shift and rest and isinstance(rest[0], int):
                rest = (rest[0] + shift, *rest[1:])
            places.setdefault((*to, *rest), place)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(one) for key, one in cast("dict[str, Any]", value).items()}
    return [_copy(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value
