"""Loading of the configuration: reads and validates files and the environment, and lists the result."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path as File
from typing import Any, cast

import msgspec
from msgspec import Struct

from everturn.config.check import check_config
from everturn.config.decode import ConfigDecoder, dotted
from everturn.config.errors import ConfigProblems
from everturn.config.layers import SYSTEM_FILE, ConfigTree, load_layers
from everturn.config.schema import Config
from everturn.config.toml_positions import KeyPath
from everturn.core.rules.policy import Rule
from everturn.core.tenants.saved_prompts import SavedPrompt


class LoadedConfig(Struct, frozen=True):
    """A valid configuration, as far as that can be checked without building anything."""

    config: Config
    tree: ConfigTree
    rules: tuple[Rule, ...] = ()
    systems: Mapping[str, str] = {}
    agent_rules: Mapping[str, tuple[Rule, ...]] = {}
    prompts: tuple[SavedPrompt, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were read; the last one wins."""
        return self.tree.files


def load_config(
    named: str | None = None, environ: Mapping[str, str] | None = None, system: File = SYSTEM_FILE
) -> LoadedConfig:
    """Read and validate everything: the named file or the usual ones, and the environment.

    Raises:
        ConfigError: something is invalid; the message has a line for each problem.
    """
    tree = load_layers(named, os.environ if environ is None else environ, system)
    reader = ConfigDecoder(tree.where, lambda path: path in tree.places)
    config = reader.struct(Config, tree.values)
    if config is None:
        raise ConfigProblems(reader.problems)
    checked = check_config(config, reader)
    if reader.problems:
        raise ConfigProblems(reader.problems)
    return LoadedConfig(config, tree, checked.rules, checked.systems, checked.agent_rules, checked.prompts)


def describe_config(loaded: LoadedConfig) -> list[str]:
    """Return the configuration, a line for each value with its position; secrets appear as references."""
    lines = [f"# {file}" for file in loaded.files] or [
        "# no file: every setting has its default; docs/deploy/configuration.md lists them"
    ]
    for path, value in _leaves(loaded.tree.values, ()):
        lines.append(f"{dotted(path)} = {_toml(path, value)}  # {loaded.tree.where(path)}")
    return lines


def _leaves(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict) and (value or not path):
        for key, item in cast("dict[str, Any]", value).items():
            yield from _leaves(item, (*path, key))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in cast("list[Any]", value)):
        for at, item in enumerate(cast("list[Any]", value)):
            yield from _leaves(item, (*path, at))
    else:
        yield path, value


def _toml(path: KeyPath, value: Any) -> str:
    if path[0] == "mcp" and any(key in path for key in ("args", "env", "headers", "url")):
        # Any value for a program or a server may contain a secret; only references are safe to show.
        references = [match[0] for match in re.finditer(r"\$\{[^}:]*(?::-)?[^}]*\}", str(value))]
        return f'"{"…".join(["", *references, ""])}"' if references else '"…"'
    try:
        return msgspec.json.encode(str(value) if isinstance(value, str) else value).decode()
    except TypeError:  # a date
        return str(value)
