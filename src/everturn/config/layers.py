"""Configuration layers: merges files and the environment into one tree of plain values, with the position of each.

Built-in defaults < /etc/everturn/everturn.toml < ~/.config/everturn/everturn.toml < the environment. A file that is
given by name replaces both files: a service then depends on one file alone. A file that merely is in the current folder
is never read, because another user may have put it there.

A later layer wins, key by key. Rules are the exception: the rules of all layers apply together, so that no file revokes
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

from everturn.config.decode import EnvironmentValue
from everturn.config.errors import ConfigProblem, ConfigProblems, SourcePosition
from everturn.config.toml_positions import KeyPath, find_positions
from everturn.errors import ConfigError

SYSTEM_FILE: Final = File("/etc/everturn/everturn.toml")
NAME: Final = "everturn.toml"
SIZE_LIMIT = 1_000_000  # bytes of a file
VARIABLE: Final = re.compile(r"EVERTURN_([A-Z0-9_]+?)__([A-Z0-9_]+)")
_AT_LINE: Final = re.compile(r" \(at line (\d+), column (\d+)\)| \(at end of document\)")


_BARE_VALUE: Final = re.compile(r"\s*([\w.-]+)\s*=\s*([A-Za-z_/~.][^\s\"'\[{#=]*)\s*(?:#.*)?")


class ConfigLayer(Struct, frozen=True):
    """One source: a file as it was read, or the environment (which has no path)."""

    tree: dict[str, Any]
    places: dict[KeyPath, SourcePosition]
    path: str = ""
    text: str = ""


class ConfigTree(Struct, frozen=True):
    """All layers merged."""

    values: dict[str, Any]
    places: dict[KeyPath, SourcePosition]
    files: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()  # their content, to detect changes

    def where(self, path: KeyPath) -> SourcePosition:
        """Return the position of a key; or, if it is not set, of the table it would be in."""
        for end in range(len(path), 0, -1):
            if (position := self.places.get(path[:end])) is not None:
                return position
        return SourcePosition(self.files[-1] if self.files else "the environment")


def user_file(environ: Mapping[str, str]) -> File | None:
    """Return the user's configuration file."""
    if base := environ.get("XDG_CONFIG_HOME"):
        return File(base) / "everturn" / NAME if os.path.isabs(base) else None
    home = environ.get("HOME")
    return File(home) / ".config" / "everturn" / NAME if home and os.path.isabs(home) else None


def load_layers(named: str | None, environ: Mapping[str, str], system: File = SYSTEM_FILE) -> ConfigTree:
    """Read and merge all layers.

    Raises:
        ConfigError: a file cannot be read, or is invalid TOML.
    """
    layers: list[ConfigLayer] = []
    if named is not None:
        layers.append(read_file(File(named).expanduser()))
    else:
        usual = [file for file in (system, user_file(environ)) if file is not None]
        layers += [read_file(file) for file in usual if os.path.lexists(file)]
    layers.append(read_variables(environ))
    return merge(layers)


def read_file(path: File) -> ConfigLayer:
    """Read a file as a layer.

    Raises:
        ConfigError: it cannot be read, or is invalid TOML; the message says where.
    """
    try:
        with path.open("rb") as file:
            data = file.read(SIZE_LIMIT + 1)
        text = data.decode()
    except OSError as error:
        raise ConfigError(f"{path}: the configuration cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: this is not UTF-8 text, so it is not valid TOML") from None
    if len(data) > SIZE_LIMIT:
        raise ConfigError(f"{path}: too large for a configuration: at most {SIZE_LIMIT} bytes")
    try:
        tree = tomllib.loads(text)
        key_positions = find_positions(text)
    except tomllib.TOMLDecodeError as error:
        at = _AT_LINE.search(str(error))
        line, column = (int(at[1]), int(at[2])) if at and at[1] else (text.count("\n") + 1, 1)
        message = f"this is not valid TOML: {_AT_LINE.sub('', str(error))}{_unquoted_text(text, line)}"
        raise ConfigProblems([ConfigProblem(SourcePosition(str(path), line, column), "", message)]) from None
    except RecursionError:
        raise ConfigError(f"{path}: this is not valid TOML: it is nested too deeply") from None
    return ConfigLayer(
        tree, {key: SourcePosition(str(path), *place) for key, place in key_positions.items()}, str(path), text
    )


def _unquoted_text(text: str, line: int) -> str:
    """What to do about `model = openai:gpt-5.2`: the most frequent error in TOML, whose message does not say it."""
    found = _BARE_VALUE.fullmatch(text.splitlines()[line - 1]) if line <= text.count("\n") + 1 and text else None
    return f'; write a text in quotes: {found[1]} = "{found[2]}"' if found else ""


def read_variables(environ: Mapping[str, str]) -> ConfigLayer:
    """Read the environment as a layer: `EVERTURN_SERVER__PORT=8001` is `port` of `[server]`.

    Raises:
        ConfigError: a variable is nested in another.
    """
    tree: dict[str, Any] = {}
    places: dict[KeyPath, SourcePosition] = {}
    for name in sorted(environ):
        if VARIABLE.fullmatch(name) is None:
            continue
        path = tuple(name.removeprefix("EVERTURN_").lower().split("__"))
        table: Any = tree
        for end, piece in enumerate(path[:-1], 1):
            places.setdefault(path[:end], SourcePosition(name))
            table = table.setdefault(piece, {})
            if isinstance(table, str):
                raise ConfigError(f"{name}: this variable conflicts with another one that sets the whole table")
        table[path[-1]] = EnvironmentValue(environ[name])
        places[path] = SourcePosition(name)
    return ConfigLayer(tree, places)


def merge(layers: list[ConfigLayer]) -> ConfigTree:
    """Merge all layers: later ones win, and rules add up."""
    values: dict[str, Any] = {}
    places: dict[KeyPath, SourcePosition] = {}
    for layer in layers:
        _merge(values, layer.tree, places, layer.places, (), ())
    files = [layer for layer in layers if layer.path]
    return ConfigTree(values, places, tuple(file.path for file in files), tuple(file.text for file in files))


def _merge(
    into: dict[str, Any],
    new: dict[str, Any],
    places: dict[KeyPath, SourcePosition],
    found: dict[KeyPath, SourcePosition],
    to: KeyPath,
    at: KeyPath,
) -> None:
    for key, value in new.items():
        old = into.get(key)
        if isinstance(value, dict) and isinstance(old, dict):
            places.setdefault((*to, key), found.get((*at, key), SourcePosition("")))
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


def _take(
    places: dict[KeyPath, SourcePosition], found: dict[KeyPath, SourcePosition], to: KeyPath, at: KeyPath, shift: int
) -> None:
    """Copy the positions below a key; list items are renumbered."""
    for path, place in found.items():
        if path[: len(at)] == at:
            rest = path[len(at) :]
            if shift and rest and isinstance(rest[0], int):
                rest = (rest[0] + shift, *rest[1:])
            places.setdefault((*to, *rest), place)


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in cast("dict[str, Any]", value).items()}
    return [_copy(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value
