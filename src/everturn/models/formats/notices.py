"""Notices: texts that the runtime adds to a conversation where a format has no other field for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from everturn.core.canonical_json import encode_canonical
from everturn.core.parts import FilePart, NoticePart, TextPart
from everturn.core.requests import RequestPart

Json = dict[str, Any]
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


def user_content(
    parts: Iterable[RequestPart], text: Callable[[str], Json], file: Callable[[FilePart], Json]
) -> Iterator[Json]:
    """Yield the parts of a user message: `text` and `file` build the format's objects for them."""
    for part in parts:
        match part:
            case TextPart(text=words):
                if words:
                    yield text(words)
            case NoticePart():
                yield text(notice_text(part))
            case FilePart():
                yield file(part)
            case _:
                pass
