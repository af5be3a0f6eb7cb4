"""Media jobs: what the modalities share. A job builds posts from a request, and decodes their responses into chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import Chunk
from everturn.core.parts import TextPart, Usage
from everturn.core.requests import ModelRequest
from everturn.models.formats.params import RESERVED, refuse_reserved


class MediaPost(Struct, frozen=True):
    """A POST request, ready to be sent."""

    path: str
    body: bytes
    content_type: str


class MediaJob(Struct, frozen=True):
    """One modality: how to build its posts (request, parameters, model) and read a response (body, content type)."""

    build: Callable[[ModelRequest, Mapping[str, Any], str], Sequence[MediaPost]]
    read: Callable[[bytes, str], list[Chunk]]


def message_text(request: ModelRequest) -> str:
    """Return the text of the message."""
    return "".join(part.text for part in request.messages[-1].parts if isinstance(part, TextPart)).strip()


def refuse_reserved_params(params: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse parameters that the request would overwrite.

    Raises:
        ModelError: one of them was given; the message says where it belongs.
    """
    refuse_reserved(params, {name: RESERVED.get(name, "it is the text of your message") for name in names})


def form_fields(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield parameters as form fields."""
    for name, value in params.items():
        if isinstance(value, list):
            yield from ((f"{name}[]", _text(item)) for item in cast("list[object]", value))
        else:
            yield name, _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode_canonical(value)


def read_usage(usage: object) -> Usage | None:
    """Return the usage, if the response has it."""
    if not isinstance(usage, dict):
        return None
    fields = cast("dict[str, Any]", usage)
    input_tokens, output_tokens = fields.get("input_tokens"), fields.get("output_tokens")
    if not isinstance(input_tokens, int) and not isinstance(output_tokens, int):
        return None
    return Usage(
        input_tokens if isinstance(input_tokens, int) else 0, output_tokens if isinstance(output_tokens, int) else 0
    )
