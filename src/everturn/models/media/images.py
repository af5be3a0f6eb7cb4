"""Image models: image generation and editing with OpenAI's `/images/generations` and `/images/edits`."""

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
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently
from everturn.models.formats.params import encode_body as encode_json
from everturn.models.media.file_types import detect_type, extension
from everturn.models.media.job import MediaJob, MediaPost, form_fields, message_text, read_usage, refuse_reserved_params
from everturn.models.multipart import MultipartFile, encode


class _Picture(Struct):
    b64_json: str | None = None
    url: str | None = None


class _Pictures(Struct):
    data: list[_Picture] | None = None
    usage: Any = None


_decode = msgspec.json.Decoder(_Pictures).decode


def generate(request: ModelRequest, params: Mapping[str, Any], model: str) -> Sequence[MediaPost]:
    """Build the request that generates images from the text of the message."""
    refuse_reserved_params(params, ("model", "prompt"))
    body = {**params, "model": model, "prompt": message_text(request)}
    return [MediaPost("/images/generations", encode_json(body), "application/json")]


def edit(request: ModelRequest, params: Mapping[str, Any], model: str) -> Sequence[MediaPost]:
    """Build the request that edits the images of the message."""
    pictures = [part for part in request.messages[-1].parts if isinstance(part, FilePart)]
    field = "image" if len(pictures) == 1 else "image[]"
    files = [
        MultipartFile(
            field, f"image-{number}.{extension(picture.media_type)}", picture.media_type, request.files[picture.blob]
        )
        for number, picture in enumerate(pictures, 1)
        if picture.blob in request.files
    ]
    if not files:
        raise ModelError("the image to edit no longer exists; attach it again", kind="request")
    refuse_reserved_params(params, ("model", "prompt"))
    fields = form_fields({**params, "model": model, "prompt": message_text(request)})
    return [MediaPost("/images/edits", *encode(list(fields), files))]


def read_images(body: bytes, _: str) -> list[Chunk]:
    """Decode the images of a response."""
    try:
        answer = _decode(body)
    except DECODE_ERRORS:
        answer = decode_leniently(body, _Pictures)
    chunks: list[Chunk] = [_picture(picture, number) for number, picture in enumerate(answer.data or (), 1)]
    if not chunks:
        raise ModelError("the response contains no image", kind="response")
    if (usage := read_usage(answer.usage)) is not None:
        chunks.append(UsageChunk(usage))
    return chunks


def _picture(picture: _Picture, number: int) -> FileChunk:
    text = picture.b64_json or ""
    if picture.url is not None and picture.url.startswith("data:"):
        text = picture.url.partition(",")[2]
    elif picture.url and not text:
        # The URL may lead anywhere, our own network included.
        raise ModelError(
            'the response contains the URL of an image instead of the image; send params={"response_format": "b64_json"}',
            kind="response",
        )
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    seen = detect_type(data)
    if not seen.media_type.startswith("image/") or not seen.is_whole:
        raise ModelError(f"picture {number} of the response is damaged or not an image", kind="response")
    name = "image" if number == 1 else f"image-{number}"
    return FileChunk(data, seen.media_type, f"{name}.{extension(seen.media_type)}")


GENERATE, EDIT = MediaJob(generate, read_images), MediaJob(edit, read_images)
