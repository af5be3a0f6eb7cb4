"""Configured plugins: creates the plugins of `plugins`, from modules and files as `[tools] python` names them.

Naming a module runs it: the author of the configuration trusts it as any program.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from everturn.config.decode import dotted
from everturn.config.errors import nearest
from everturn.config.load import LoadedConfig
from everturn.config.modules import load_module
from everturn.config.schema import PluginEntry
from everturn.config.secrets import TextWithRefs
from everturn.config.toml_positions import KeyPath
from everturn.core.hooks import HOOKS, Plugin
from everturn.errors import ConfigError
from everturn.running.plugin_table import PluginTable


def create_plugins(
    loaded: LoadedConfig,
    environ: Mapping[str, str],
    path: KeyPath = ("plugins",),
    entries: Iterable[str | PluginEntry] | None = None,
) -> list[object]:
    """Create the configured plugins, in their order: those of the whole configuration, or `entries` at another key.

    Raises:
        ConfigError: one cannot be created; the message says which, where it is named, and what to do.
    """
    plugins: list[object] = []
    for at, entry in enumerate(loaded.config.plugins if entries is None else entries):
        where = loaded.tree.where((*path, at))
        word, options = (entry, {}) if isinstance(entry, str) else (entry.plugin, entry.options)
        try:
            resolved = {name: _resolved(value, environ) for name, value in options.items()}
            plugins.append(load_plugin(word, resolved, Path(where.source).resolve().parent if where.line else None))
        except ConfigError as error:
            raise ConfigError(f"{where}: {dotted((*path, at))}: {error}") from None
    return plugins


def load_plugin(word: str, options: Mapping[str, Any], folder: Path | None) -> object:
    """Return the plugin `module:Name` or `file.py:Name`: an object, or the object that a class makes with the options.

    Raises:
        ConfigError: there is none, or it cannot be made.
    """
    place, colon, name = word.rpartition(":")
    if not colon or not name.isidentifier():
        found = ", ".join(_plugins_in(load_module(word, folder))) or "none"
        raise ConfigError(f"name the plugin after a colon, as 'mypackage.audit:Audit'; in {word} there are: {found}")
    module = load_module(place, folder)
    if not hasattr(module, name):
        raise ConfigError(f"{place} has no {name!r}; {nearest(name, _plugins_in(module))}")
    plugin = getattr(module, name)
    if inspect.isclass(plugin) or inspect.isroutine(plugin):
        plugin = _made(plugin, name, options, word)
    elif options:
        raise ConfigError(f"{name} is an object and takes no options; name its class, {type(plugin).__name__}")
    PluginTable([plugin])  # it has hooks, and none that is misspelled
    return plugin


def _made(make: Any, name: str, options: Mapping[str, Any], word: str) -> object:
    try:
        inspect.signature(make).bind(**options)
    except ValueError:  # a class of C has no signature; calling it will tell
        pass
    except TypeError as error:
        raise ConfigError(
            f"{name} cannot be created: {error}; write {{ plugin = {word!r}, options = {{ … }} }} with its arguments"
        ) from None
    try:
        return make(**options)
    except Exception as error:
        raise ConfigError(f"{name} cannot be created: {type(error).__name__}: {error}") from None


def _plugins_in(module: ModuleType) -> list[str]:
    """The names in a module that look like plugins: classes and objects with a hook."""
    return [
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and thing is not Plugin and any(hook in dir(thing) for hook in HOOKS)
    ]


def _resolved(value: Any, environ: Mapping[str, str]) -> Any:
    return str(TextWithRefs(value).resolved(environ)) if isinstance(value, str) else value
