"""Tools that are made again and again, for one world after another: what describes them is made once.

The schema of a tool's arguments takes some milliseconds of processor time. Crash tests start thousands of processes, each
with tools of its own, whose functions differ in nothing but the world that they change.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import CodeType
from typing import Any, Unpack

from everturn import tool
from everturn.tools.function import FunctionTool
from everturn.tools.tool_options import ToolOptions

_described: dict[tuple[str, CodeType, str], FunctionTool[..., Any]] = {}


def repeated_tool(**choices: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], FunctionTool[..., Any]]:
    """As `tool`, for a function within a function: closures of one code have one signature, one docstring and one spec."""

    def make(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        code: CodeType = function.__code__
        key = code.co_filename, code, repr(choices)  # equal codes of two files are two tools
        if key not in _described:
            _described[key] = tool(**choices)(function)
        made = copy.copy(_described[key])
        vars(made).update(function=function, _validated={})
        return made

    return make
