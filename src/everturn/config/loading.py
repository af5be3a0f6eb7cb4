"""Files and the environment → what was configured, checked whole; and what is shown of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any, cast

import msgspec
from msgspec import Struct

from everturn.config.checking import check
from everturn.config.layers import SYSTEM_FILE, Tree, gather
from everturn.config.positions import Path
from everturn.config.reading import Reader, dotted
from everturn.config.schema import Config
from everturn.config.trouble import ConfigTroubles
from everturn.core.policy import Rule


class Loaded(Struct, frozen=True):
    """A configuration that makes sense, as far as that can be said without making something of it."""

    config: Config
    tree: Tree
    rules: tuple[Rule, ...] = ()
    systems: Mapping[str, str] = {}
    agent_rules: Mapping[str, tuple[Rule, ...]] = {}

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it was read from, the one that wins last."""
        return self.tree.files


def load(named: str | None = None, environ: Mapping[str, str] | None = None, system: File = SYSTEM_FILE) -> Loaded:
    """Read and check everything: a file that is named, or the usual ones; and the environment.

    Raises:
        ConfigError: something makes no sense; the text has a line for each thing that does not.
    """
    tree = gather(named, os.environ if environ is None else environ, system)
    reader = Reader(tree.where, lambda path: path in tree.places)
    config = reader.struct(Config, tree.values)
    if config is None:
        raise ConfigTroubles(reader.troubles)
    checked = check(config, reader)
    if reader.troubles:
        raise ConfigTroubles(reader.troubles)
    return Loaded(config, tree, checked.rules, checked.systems, checked.agent_rules)


def shown(loaded: Loaded) -> list[str]:
    """What was configured, a line for each value with its place; secrets are the references that are written."""
    lines = [f"# {file}" for file in loaded.files] or ["# no file; these are the defaults"]
    for path, value in _leaves(loaded.tree.values, ()):
        lines.append(f"{dotted(path)} = {_toml(path, value)}  # {loaded.tree.where(path)}")
    return lines


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and (value or not path):
        for key, one in cast("dict[str, Any]", value).items():
            yield from _leaves(one, (*path, key))
    elif isinstance(value, list) and any(isinstance(one, dict) for one in cast("list[Any]", value)):
        for at, one in enumerate(cast("list[Any]", value)):
            yield from _leaves(one, (*path, at))
    else:
        yield path, value


def _toml(path: Path, value: Any) -> str:
    if path[0] == "mcp" and any(key in path for key in ("args", "env", "headers", "url")):
        # A program or a server may be handed anything, in any place; only references are surely none.
        found = [one[0] for one in re.finditer(r"\$\{[^}:]*(?::-)?[^}]*\}", str(value))]
        return f'"{"…".join(["", *found, ""])}"' if found else '"…"'
    try:
        return msgspec.json.encode(str(value) if isinstance(value, str) else value).decode()
    except TypeError:  # a date
        return str(value)
