"""SSE frames of the chat protocols: a `data:` line with JSON, and nothing else."""

from __future__ import annotations

from typing import Any

import msgspec

from everturn.core.canonical_json import parse_json

DONE = b"data: [DONE]\n\n"

_encode = msgspec.json.Encoder().encode


def encode_frame(value: dict[str, Any]) -> bytes:
    """One frame."""
    return b"data: " + _encode(value) + b"\n\n"


def without_empty(**fields: Any) -> dict[str, Any]:
    """The fields that are neither None nor ""; False and 0 are kept."""
    return {name: value for name, value in fields.items() if value is not None and value != ""}


def parse_arguments(arguments: str) -> Any:
    """The arguments of a call as a value; the text itself if it is not JSON."""
    try:
        return parse_json(arguments or "{}")
    except ValueError:
        return arguments
