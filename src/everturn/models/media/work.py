"""What the modalities share: a request is turned into posts, and the answer to each into chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from everturn.core.canonical import canonical
from everturn.core.chunks import Chunk
from everturn.core.parts import TextPart, Usage
from everturn.core.requests import ModelRequest
from everturn.models.formats.params import RESERVED, refuse


class Asked(Struct, frozen=True):
    """A post, ready to go out."""

    path: str
    body: bytes
    content_type: str


class Work(Struct, frozen=True):
    """How one modality asks (request, parameters, model) and reads (body, content type)."""

    ask: Callable[[ModelRequest, Mapping[str, Any], str], Sequence[Asked]]
    read: Callable[[bytes, str], list[Chunk]]


def said(request: ModelRequest) -> str:
    """The words of the message that is worked on."""
    return "".join(part.text for part in request.messages[-1].parts if isinstance(part, TextPart)).strip()


def refuse_ours(params: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse parameters that the request would overwrite.

    Raises:
        ModelError: and it says where they belong.
    """
    refuse(params, {name: RESERVED.get(name, "it is the text of your message") for name in names})


def fields_of(params: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Parameters as the fields of a form."""
    for name, value in params.items():
        if isinstance(value, list):
            yield from ((f"{name}[]", _text(one)) for one in cast("list[object]", value))
        else:
            yield name, _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else canonical(value)


def counted(usage: object) -> Usage | None:
    """Tokens, where they were counted."""
    if not isinstance(usage, dict):
        return None
    fields = cast("dict[str, Any]", usage)
    read, written = fields.get("input_tokens"), fields.get("output_tokens")
    if not isinstance(read, int) and not isinstance(written, int):
        return None
    return Usage(read if isinstance(read, int) else 0, written if isinstance(written, int) else 0)
