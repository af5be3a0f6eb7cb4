"""Values → messages of an event stream, as the protocols of faces write them: `data:` and JSON, nothing else."""

from __future__ import annotations

from typing import Any

import msgspec

from everturn.core.canonical import parse

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.Encoder().encode


def frame(value: dict[str, Any]) -> bytes:
    """One message."""
    return b"data: " + _encode(value) + b"\n\n"


def given(**fields: Any) -> dict[str, Any]:
    """Only what there is something to say in; False and 0 are something."""
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def value_of(arguments: str) -> Any:
    """The arguments of a call as a value; as the text they are when they are no JSON."""
    try:
        return parse(arguments or "{}")
    except ValueError:
        return arguments
