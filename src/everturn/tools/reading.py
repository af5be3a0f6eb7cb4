"""`read_result`: a result that was too long to show → a range of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any, Final

from everturn.core.canonical import JsonObject
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments

PIECE = 10_000  # characters, unless more are asked for
LONGEST = 40_000  # characters at once
_REFERENCE: Final = re.compile(r"\$ref\{([^{}:]+)(?::\d+:\d+)?\}")  # as a result that was cut names itself

_SPEC: Final = ToolSpec(
    "read_result",
    "Read a range of an earlier result that was too long to be shown as a whole.",
    {
        "type": "object",
        "properties": {
            "call": {"type": "string", "description": "the call, as in $ref{call}"},
            "start": {"type": "integer", "minimum": 0, "default": 0, "description": "the first character, from 0"},
            "length": {"type": "integer", "minimum": 1, "maximum": LONGEST, "default": PIECE},
        },
        "required": ["call"],
        "additionalProperties": False,
    },
    effects="read",
    execute="auto",
    repeatable=True,
    limit=LONGEST + 500,  # what it brings is never cut in its turn
    origin="builtin",
)


class ReadResult:
    """Reads ranges of the results on its branch."""

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return _SPEC

    def validate(self, arguments: JsonObject) -> None:
        """Check that there is a call, and a range that can be."""
        _range(arguments)

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[str]:
        """Read the range."""
        call, start, length = _range(arguments)
        match = _REFERENCE.fullmatch(call)
        return context.read(match[1] if match else call, start, length)


def _range(arguments: JsonObject) -> tuple[str, int, int]:
    known: Any = _SPEC.schema["properties"]
    if unknown := arguments.keys() - known.keys():
        raise BadArguments(f"read_result takes call, start and length; there is no {', '.join(sorted(unknown))}")
    call = arguments.get("call")
    if not isinstance(call, str) or not call:
        raise BadArguments("read_result needs the call whose result it is to read, as text")
    start, length = _number(arguments, "start", 0, 0), _number(arguments, "length", PIECE, 1)
    return call, start, min(length, LONGEST)


def _number(arguments: JsonObject, name: str, default: int, least: int) -> int:
    value = arguments.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise BadArguments(f"{name} is a number of characters, at least {least}; it was {value!r}"[:200])
    return value
