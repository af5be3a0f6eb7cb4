"""Words, or words and pictures → pictures: OpenAI's `/images/generations` and `/images/edits`."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.chunks import Chunk, FileChunk, UsageChunk
from everturn.core.parts import FilePart
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.formats.loose import BROKEN, loosely
from everturn.models.formats.params import encode as encode_json
from everturn.models.media.kinds import extension, look
from everturn.models.media.multipart import Upload, encode
from everturn.models.media.work import Asked, Work, counted, fields_of, refuse_ours, said


class _Picture(Struct):
    b64_json: str | None = None
    url: str | None = None


class _Pictures(Struct):
    data: list[_Picture] | None = None
    usage: Any = None


_decode = msgspec.json.Decoder(_Pictures).decode


def generate(request: ModelRequest, params: Mapping[str, Any], model: str) -> Sequence[Asked]:
    """Ask for pictures of what was said."""
    refuse_ours(params, ("model", "prompt"))
    body = {**params, "model": model, "prompt": said(request)}
    return [Asked("/images/generations", encode_json(body), "application/json")]


def edit(request: ModelRequest, params: Mapping[str, Any], model: str) -> Sequence[Asked]:
    """Ask for pictures like those that came, but for what was said."""
    pictures = [part for part in request.messages[-1].parts if isinstance(part, FilePart)]
    field = "image" if len(pictures) == 1 else "image[]"
    files = [
        Upload(
            field, f"image-{number}.{extension(picture.media_type)}", picture.media_type, request.files[picture.blob]
        )
        for number, picture in enumerate(pictures, 1)
        if picture.blob in request.files
    ]
    if not files:
        raise ModelError("the picture to be edited is gone; attach it again", kind="request")
    refuse_ours(params, ("model", "prompt"))
    fields = fields_of({**params, "model": model, "prompt": said(request)})
    return [Asked("/images/edits", *encode(list(fields), files))]


def read(body: bytes, _: str) -> list[Chunk]:
    """Read the pictures."""
    try:
        answer = _decode(body)
    except BROKEN:
        answer = loosely(body, _Pictures)
    chunks: list[Chunk] = [_picture(one, number) for number, one in enumerate(answer.data or (), 1)]
    if not chunks:
        raise ModelError("the server answered without a picture", kind="response")
    if (usage := counted(answer.usage)) is not None:
        chunks.append(UsageChunk(usage))
    return chunks


def _picture(picture: _Picture, number: int) -> FileChunk:
    text = picture.b64_json or ""
    if picture.url is not None and picture.url.startswith("data:"):
        text = picture.url.partition(",")[2]
    elif picture.url and not text:
        # Whatever stands there may lead anywhere, our own network included.
        raise ModelError(
            'the server gave the address of a picture and not the picture; ask with params={"response_format": "b64_json"}',
            kind="response",
        )
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    seen = look(data)
    if not seen.media_type.startswith("image/") or not seen.is_whole:
        raise ModelError(f"picture {number} that the server sent is broken, or none", kind="response")
    name = "image" if number == 1 else f"image-{number}"
    return FileChunk(data, seen.media_type, f"{name}.{extension(seen.media_type)}")


GENERATE, EDIT = Work(generate, read), Work(edit, read)
