"""The two tools every peer registers in its own way. They cost nothing, and count how often they ran."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

Function = Callable[..., Awaitable[str]]

RAN = {"lookup": 0, "write_file": 0}
FACT = "The airspeed of an unladen European swallow is about 11 metres per second; it was first measured in 2003. " * 2


async def lookup(query: str) -> str:
    """Look up a fact.

    Args:
        query: What to look up.
    """
    RAN["lookup"] += 1
    return FACT


async def write_file(path: str, content: str) -> str:
    """Write a file.

    Args:
        path: Where to write.
        content: What to write.
    """
    RAN["write_file"] += 1
    return "ok"


TOOLS: dict[str, Function] = {"lookup": lookup, "write_file": write_file}
ARGUMENTS = {
    "lookup": {"query": "What to look up."},
    "write_file": {"path": "Where to write.", "content": "What to write."},
}


def specs(tools: Sequence[str]) -> list[dict[str, Any]]:
    """The tools as a request names them, for the loops written by hand."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": (TOOLS[name].__doc__ or "").partition("\n")[0],
                "parameters": {
                    "type": "object",
                    "properties": {
                        key: {"type": "string", "description": text} for key, text in ARGUMENTS[name].items()
                    },
                    "required": list(ARGUMENTS[name]),
                    "additionalProperties": False,
                },
            },
        }
        for name in tools
    ]
