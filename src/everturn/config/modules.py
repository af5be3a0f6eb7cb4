"""Configured modules: imports the modules, and runs the files, that a configuration names."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from everturn.config.errors import nearest
from everturn.errors import ConfigError
from everturn.tools.tool_files import module_name_of


def load_module(place: str, folder: Path | None) -> ModuleType:
    """Import a module, or run a file, which is relative to a folder.

    Raises:
        ConfigError: there is none, or it fails.
    """
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        if folder is None and not os.path.isabs(place):
            raise ConfigError(
                "a relative file name works only in a file; in an environment variable, write the whole path"
            )
        return _run((folder or Path("/")) / place)
    except ConfigError:
        raise
    except ModuleNotFoundError as error:
        file = f"{place}.py"
        hint = f"; for the file {file} beside the configuration, write '{file}'" if _is_beside(file, folder) else ""
        raise ConfigError(f"{place}: there is no module {error.name}{hint}") from None
    except (Exception, SystemExit) as error:
        raise ConfigError(f"{place} cannot be loaded: {type(error).__name__}: {error}") from None


def _is_beside(file: str, folder: Path | None) -> bool:
    return folder is not None and (folder / file).is_file()


def load_object(word: str, folder: Path | None) -> Any:
    """Return what `module:name` or `file.py:name` names.

    Raises:
        ConfigError: there is none; the message names the nearest one that there is.
    """
    place, colon, name = word.rpartition(":")
    if not colon or not name.isidentifier():
        raise ConfigError(f"{word!r} is not the name of an object; write 'mypackage.module:name', or 'file.py:name'")
    module = load_module(place, folder)
    if not hasattr(module, name):
        public = [known for known in vars(module) if not known.startswith("_")]
        raise ConfigError(f"{place} has no {name!r}; {nearest(name, public)}")
    return getattr(module, name)


def _run(path: Path) -> ModuleType:
    name = module_name_of(path)
    if name in sys.modules:  # a file that is named twice runs once
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ConfigError(f"there is no file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are resolved there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
