"""Tool loader of the command line: `--tools` names files and modules, and this module imports the tools in them. It
parses `--budget`, too.

Loading a file runs it: people must trust it as they trust any program that they start.
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

from everturn.core.options import Budget
from everturn.core.ports import Tool
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError
from everturn.running.permissions import is_selected
from everturn.tools.groups import ToolGroup
from everturn.tools.tool_files import module_name_of

LoadedTool = Tool | ToolGroup


def load_tools(words: Iterable[str]) -> list[Any]:
    """Return the tools and groups of files or modules: all of each, or the one named behind a colon.

    Groups are enabled, because naming their file on the command line asks for them.

    Raises:
        ConfigError: the file or module does not exist, fails, or contains no tool.
    """
    loaded: list[Any] = []
    for source in words:
        for item in _load_source(source):
            if not any(item is other for other in loaded):  # a module may bind one tool to two names
                loaded.append(item)
    return [item.enabled() if isinstance(item, ToolGroup) else item for item in loaded]


def tools_in(loaded: Iterable[Any]) -> dict[str, Tool]:
    """Return the tools by name, including those of groups."""
    flat = (tool for item in loaded for tool in (item.tools if isinstance(item, ToolGroup) else (item,)))
    return {tool.spec.name: tool for tool in flat}


def check_manual(patterns: Sequence[str], loaded: Iterable[Any]) -> None:
    """Refuse a pattern that matches no tool: the tool that the person meant to run manually would run without them."""
    names = tools_in(loaded)
    for pattern in patterns:
        if not any(is_selected(name, [pattern]) for name in names):
            available = f"there are: {', '.join(names)}" if names else "there are no tools; --tools brings some"
            raise ConfigError(f"--manual {pattern}: no tool has a name like that; {available}")


def parse_budget(text: str) -> Budget:
    """Parse a budget from the command line: `cost=1.00,calls=40`.

    Raises:
        ConfigError: the limit does not exist, or its value is not a number above 0.
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
            raise ConfigError(f"--budget {text}: {name} must be a number, as in {name}=40") from None
        if not 0 < limits[name] < float("inf"):
            raise ConfigError(f"--budget {text}: {name} must be a number above 0; leave it out for no limit")
    return Budget(**limits)


def _load_source(source: str) -> list[LoadedTool]:
    module_name, name = _split(source)
    module = _load(module_name)
    tools = {key: item for key, item in vars(module).items() if _is_tool(item)}
    if not name:
        if not tools:
            raise ConfigError(f"--tools {source}: there is no tool in it; put @tool above a function")
        return list(tools.values())
    item: Any = vars(module).get(name, next((tool for tool in tools.values() if _name(tool) == name), None))
    if item is None or not _is_tool(item):
        why = "is not a tool; put @tool above it" if item is not None else "is not in it"
        raise ConfigError(f"--tools {source}: {name} {why}; there are: {', '.join(tools) or 'none'}")
    return [item]


def _split(source: str) -> tuple[str, str]:
    module_name, colon, name = source.rpartition(":")
    return (module_name, name) if colon and name.isidentifier() and not Path(source).exists() else (source, "")


def _is_tool(item: Any) -> bool:
    return isinstance(item, ToolGroup) or (not isinstance(item, type) and isinstance(_spec(item), ToolSpec))


def _spec(item: Any) -> object:
    try:
        return getattr(item, "spec", None)
    except Exception:  # a property of another object raised; then it is not a tool
        return None


def _name(item: LoadedTool) -> str:
    return item.name if isinstance(item, ToolGroup) else item.spec.name


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
        raise ConfigError(f"--tools {place}: it cannot be loaded{_line(error, path)}: {_error_text(error)}") from None
    finally:
        sys.path.pop(0)


def _run(path: Path) -> ModuleType:
    name = module_name_of(path)
    if name in sys.modules:  # a file that is named twice runs once
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"--tools {path}: this is not a Python file; its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints are resolved through sys.modules
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _line(error: BaseException, path: Path) -> str:
    """Return the line of the file that raised the error."""
    if isinstance(error, SyntaxError) and error.lineno:
        return f" (line {error.lineno})"
    line, trace = "", error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename).name == path.name:
            line = f" (line {trace.tb_lineno})"
        trace = trace.tb_next
    return line


def _error_text(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text if isinstance(error, ConfigError) else f"{type(error).__name__}{f': {text}' if text else ''}"
