"""What a command line says of tools → the tools, or one line that says what to do instead.

To load a file is to run it: whoever names one trusts it as they trust any program.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

from everturn.core.options import Budget
from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError
from everturn.tools.groups import Group
from everturn.turn.permit import is_selected

Found = Tool | Group


def load_tools(words: Iterable[str]) -> list[Any]:
    """The tools and groups of some files or modules: all of each, or (behind a colon) the one that is named.

    A group is switched on: whoever names its file on the command line wants it.

    Raises:
        ConfigError: there is no such file or module, it fails, or there is no tool in it.
    """
    found: list[Any] = []
    for word in words:
        for thing in _named(word):
            if not any(thing is other for other in found):  # a file may have two names for one tool
                found.append(thing)
    return [thing.enabled() if isinstance(thing, Group) else thing for thing in found]


def tools_in(found: Iterable[Any]) -> dict[str, Tool]:
    """The tools by their names, those of groups with them."""
    flat = (tool for thing in found for tool in (thing.tools if isinstance(thing, Group) else (thing,)))
    return {tool.spec.name: tool for tool in flat}


def check_by_hand(patterns: Sequence[str], found: Iterable[Any]) -> None:
    """Refuse a pattern that no tool fits: what a person wanted to do themselves would run without them."""
    names = tools_in(found)
    for pattern in patterns:
        if not any(is_selected(name, [pattern]) for name in names):
            there = f"there are: {', '.join(names)}" if names else "there are no tools; --tools brings some"
            raise ConfigError(f"--by-hand {pattern}: no tool has a name like that; {there}")


def read_budget(text: str) -> Budget:
    """A budget as it is written on a command line: `cost=1.00,calls=40`.

    Raises:
        ConfigError: there is no such limit, or it is no number.
    """
    limits: dict[str, Any] = {}
    for pair in filter(None, text.split(",")):
        name, _, number = (piece.strip() for piece in pair.partition("="))
        if name not in Budget.__struct_fields__:
            raise ConfigError(
                f"--budget {text}: there is no {name!r}; there are: {', '.join(Budget.__struct_fields__)}"
            )
        try:
            limits[name] = float(number) if name in ("cost", "seconds") else int(number)
        except ValueError:
            raise ConfigError(f"--budget {text}: {name} is a number, as in {name}=40") from None
        if not 0 < limits[name] < float("inf"):
            raise ConfigError(f"--budget {text}: {name} is a number above 0; leave it out for no limit")
    return Budget(**limits)


def _named(word: str) -> list[Found]:
    place, name = _split(word)
    module = _load(place)
    there = {key: thing for key, thing in vars(module).items() if _is_tool(thing)}
    if not name:
        if not there:
            raise ConfigError(f"--tools {word}: there is no tool in it; put @tool above a function")
        return list(there.values())
    thing: Any = vars(module).get(name, next((one for one in there.values() if _name(one) == name), None))
    if thing is None or not _is_tool(thing):
        why = "is not a tool; put @tool above it" if thing is not None else "is not in it"
        raise ConfigError(f"--tools {word}: {name} {why}; there are: {', '.join(there) or 'none'}")
    return [thing]


def _split(word: str) -> tuple[str, str]:
    place, colon, name = word.rpartition(":")
    return (place, name) if colon and name.isidentifier() and not Path(word).exists() else (word, "")


def _is_tool(thing: Any) -> bool:
    return isinstance(thing, Group) or (not isinstance(thing, type) and isinstance(_spec(thing), ToolSpec))


def _spec(thing: Any) -> object:
    try:
        return getattr(thing, "spec", None)
    except Exception:  # somebody's property, and not ours to mind
        return None


def _name(thing: Found) -> str:
    return thing.name if isinstance(thing, Group) else thing.spec.name


def _load(place: str) -> ModuleType:
    path = Path(os.path.expanduser(place))
    is_file = place.endswith(".py") or os.sep in place
    if is_file and not path.is_file():
        raise ConfigError(f"--tools {place}: there is no such file")
    sys.path.insert(0, str(path.resolve().parent) if is_file else os.getcwd())
    try:
        return _run(path) if is_file else importlib.import_module(place)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.split(".")[0] == place.split(".")[0]:
            raise ConfigError(f"--tools {place}: there is no such module; a file is named with its .py") from None
        raise ConfigError(f"--tools {place}: it needs {error.name}, which is not installed here") from None
    except (Exception, SystemExit) as error:
        raise ConfigError(f"--tools {place}: it cannot be loaded{_line(error, path)}: {_said(error)}") from None
    finally:
        sys.path.pop(0)


def _run(path: Path) -> ModuleType:
    name = f"everturn_tools_{path.stem}_{crc32(os.fsencode(path.resolve())):x}"
    if name in sys.modules:  # what is named twice is run once
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"--tools {path}: this is not a Python file; its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # annotations are looked up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _line(error: BaseException, path: Path) -> str:
    """Where in the file it went wrong."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f" (line {error.lineno})"
    found, trace = "", error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == path.name:
            found = f" (line {trace.tb_lineno})"
        trace = trace.tb_next
    return found


def _said(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ConfigError) else f"{type(error).__name__}{f': {text}' if text else ''}"
