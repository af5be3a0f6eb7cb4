"""Notices: texts that the runtime adds to a conversation where a format has no other field for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from everturn.core.canonical_json import encode_canonical
from everturn.core.parts import NoticePart

CONTINUE = "Go on."  # for a history that ends with an assistant message, where the format requires a user message
INTERRUPTED = "(interrupted)"  # for an interrupted assistant message that must not be empty


def schema_instruction(schema: Mapping[str, Any]) -> str:
    """Return the instruction for a schema that the server does not enforce."""
    return (
        "Your answer in the end, when no more calls are needed, must be JSON that fits this schema, and nothing else:\n"
        + encode_canonical(schema)
    )


def notice_text(part: NoticePart) -> str:
    """Return a message of the runtime, marked so that the model does not take it for the user's."""
    return f"<notice kind={part.kind!r}>\n{part.text}\n</notice>"
