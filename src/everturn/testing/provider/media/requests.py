"""Media requests: reads the bytes of a request for images or audio into a body, as JSON would have it, and its files.

A form becomes a dict: fields are strings, a file is a description of it, and `image[]` is a list under `image`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from everturn.testing.provider.faults import Refused
from everturn.testing.provider.media.multipart import Field, read_form
from everturn.testing.provider.request_body import decode

Media = Literal["images", "edits", "transcriptions", "speech"]
MEDIA: dict[str, Media] = {
    "/v1/images/generations": "images",
    "/v1/images/edits": "edits",
    "/v1/audio/transcriptions": "transcriptions",
    "/v1/audio/speech": "speech",
}
PATHS: dict[Media, str] = {media: path for path, media in MEDIA.items()}


class Upload(Struct, frozen=True):
    """A file of a form, with the name that error messages use for it."""

    param: str
    field: str
    filename: str
    content_type: str
    data: bytes


class MediaRequest(Struct, frozen=True):
    """A request for media."""

    media: Media
    body: dict[str, Any]
    files: tuple[Upload, ...] = ()

    def files_in(self, field: str) -> list[Upload]:
        """The files that were sent under this name."""
        return [file for file in self.files if file.field == field]


def read_media_request(media: Media, headers: Mapping[str, str], raw: bytes) -> MediaRequest:
    """Read a request.

    Raises:
        Refused: it cannot be read.
    """
    content_type = headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    wanted = "application/json" if media in ("images", "speech") else "multipart/form-data"
    if kind != wanted:
        text = (
            f"Unsupported content type: '{kind}'. This API method only accepts '{wanted}' requests, but you specified "
            f"the header 'Content-Type: {content_type}'. Please try again with a supported content type."
        )
        raise Refused(text, None, "unsupported_content_type")
    if kind == "application/json":
        return MediaRequest(media, decode("responses", raw))
    return _form(media, read_form(content_type, raw))


def _form(media: Media, fields: list[Field]) -> MediaRequest:
    body: dict[str, Any] = {}
    files: list[Upload] = []
    for field in fields:
        name = field.name.removesuffix("[]")
        param = name
        value = _described(field)
        if field.name == name:
            if name in body:
                raise _twice(name)
            body[name] = value
        else:
            values = body.setdefault(name, [])
            if not isinstance(values, list):
                raise _twice(name)
            param = f"{name}[{len(values)}]"  # pyright: ignore[reportUnknownArgumentType]
            values.append(value)  # pyright: ignore[reportUnknownMemberType]
        if field.filename is not None:
            files.append(Upload(param, name, field.filename, field.content_type, field.data))
    return MediaRequest(media, body, tuple(files))


def _described(field: Field) -> Any:
    if field.filename is None:
        return field.data.decode("utf-8", "replace")
    return {
        "filename": field.filename,
        "content_type": field.content_type,
        "size": len(field.data),
        "sha256": hashlib.sha256(field.data).hexdigest(),
    }


def _twice(name: str) -> Refused:
    text = (
        f"Duplicate parameter: '{name}'. You provided multiple values for this parameter, whereas only one is allowed. "
        f"If you are trying to provide a list of values, use the array syntax instead e.g. '{name}[]=<value>'."
    )
    return Refused(text, name, "duplicate_parameter")
