"""The tools `read_result`, which reads a range of a result that is not shown whole, and `list_results`, which lists these."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any, Final

from everturn.core.canonical_json import JsonObject
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments

DEFAULT_RANGE_LENGTH = 10_000  # characters, by default
MAX_RANGE_LENGTH = 40_000  # characters per call
_REFERENCE: Final = re.compile(r"\$ref\{([^{}:]+)(?::\d+:\d+)?\}")  # a truncated result names itself like this

_SPEC: Final = ToolSpec(
    "read_result",
    "Read a range of an earlier result that was too long to be shown as a whole.",
    {
        "type": "object",
        "properties": {
            "call": {"type": "string", "description": "the call, as in $ref{call}"},
            "start": {"type": "integer", "minimum": 0, "default": 0, "description": "the first character, from 0"},
            "length": {"type": "integer", "minimum": 1, "maximum": MAX_RANGE_LENGTH, "default": DEFAULT_RANGE_LENGTH},
        },
        "required": ["call"],
        "additionalProperties": False,
    },
    read_only=True,
    approval="auto",
    repeatable=True,
    limit=MAX_RANGE_LENGTH + 500,  # the result of this tool is never truncated itself
    origin="builtin",
)


_LIST_SPEC: Final = ToolSpec(
    "list_results",
    "List the earlier results that are not shown, or not as a whole: call, tool, size and first line, the newest first.",
    {
        "type": "object",
        "properties": {
            "start": {"type": "integer", "minimum": 0, "default": 0, "description": "the first of the list, from 0"}
        },
        "additionalProperties": False,
    },
    read_only=True,
    approval="auto",
    repeatable=True,
    origin="builtin",
)


class ListResultsTool:
    """Lists the results on its branch that a model cannot read in its request."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return _LIST_SPEC

    def validate(self, arguments: JsonObject) -> None:
        """Check the start of the list."""
        if unknown := arguments.keys() - {"start"}:
            raise BadArguments(f"list_results accepts start, not {', '.join(sorted(unknown))}")
        _number(arguments, "start", 0, 0, "results")

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[str]:
        """List them."""
        return context.list_results(_number(arguments, "start", 0, 0, "results"))


class ReadResultTool:
    """Reads ranges of the results on its branch."""

    @property
    def spec(self) -> ToolSpec:
        """The tool's specification."""
        return _SPEC

    def validate(self, arguments: JsonObject) -> None:
        """Check that there is a call id and a valid range."""
        _range(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[str]:
        """Read the range."""
        call, start, length = _range(arguments)
        match = _REFERENCE.fullmatch(call)
        return context.read(match[1] if match else call, start, length)


def _range(arguments: JsonObject) -> tuple[str, int, int]:
    known: Any = _SPEC.schema["properties"]
    if unknown := arguments.keys() - known.keys():
        raise BadArguments(f"read_result accepts call, start and length, not {', '.join(sorted(unknown))}")
    call = arguments.get("call")
    if not isinstance(call, str) or not call:
        raise BadArguments("read_result needs `call`, the id of the call whose result to read, as text")
    start, length = _number(arguments, "start", 0, 0), _number(arguments, "length", DEFAULT_RANGE_LENGTH, 1)
    return call, start, min(length, MAX_RANGE_LENGTH)


def _number(arguments: JsonObject, name: str, default: int, least: int, unit: str = "characters") -> int:
    value = arguments.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadArguments(f"{name} is a number of {unit}, at least {least}; it was {value!r}"[:200])
    return value
