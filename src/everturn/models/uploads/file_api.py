"""Files API of a vendor: uploads a file, finds one by the name that Everturn gave it, and deletes one.

A file is uploaded with a lifetime, so that the vendor deletes what Everturn cannot, such as after a crash.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, NoReturn, Protocol

import msgspec
from msgspec import Struct

from everturn.errors import ModelError
from everturn.models.endpoint import Endpoint
from everturn.transport import HttpResponse

LIFETIME: Final = 86_400  # seconds for which a vendor keeps a file, where that can be chosen
PAGE: Final = 100  # newest files among which one is looked for by its name


class UploadedFile(Struct, frozen=True):
    """A file at a vendor: how a request names it, and when it is deleted (0: never)."""

    reference: str
    expires: float = 0.0


class RefusedUpload(Exception):
    """The vendor does not take this file: it is sent inline."""


class FileApi(Protocol):
    """A files API, with the API key of one model."""

    async def upload(self, name: str, media_type: str, data: bytes) -> UploadedFile:
        """Upload a file.

        Raises:
            RefusedUpload: the vendor does not take it.
            ModelError: the upload failed.
        """
        ...

    async def find(self, name: str) -> UploadedFile | None:
        """The file with this name, if the vendor has it."""
        ...

    async def delete(self, reference: str) -> None:
        """Delete a file; one that is gone counts as deleted.

        Raises:
            ModelError: the vendor did not delete it.
        """
        ...


def decode_answer(endpoint: Endpoint, reply: HttpResponse, body: bytes) -> dict[str, Any]:
    """The JSON object of a response.

    Raises:
        ModelError: the response has another status than 200, or is none.
    """
    if reply.status != 200:
        raise_refusal(endpoint, reply, body)
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError:
        raise ModelError(f"{endpoint.place} returned no JSON for a file", kind="response") from None


def raise_refusal(endpoint: Endpoint, reply: HttpResponse, body: bytes) -> NoReturn:
    """Raise the error of a response.

    Raises:
        RefusedUpload: the file is the reason, or the vendor has no such API.
        ModelError: any other reason.
    """
    error = endpoint.response_error(reply, body)
    if reply.status in (400, 404, 405, 413, 415, 422):
        raise RefusedUpload(endpoint.redact(str(error))) from None
    raise error


def file_name(upload: str, media_type: str) -> str:
    """The name of an upload at a vendor: by it an upload is found again of which only the start is known."""
    ends = {"application/pdf": "pdf", "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}
    return f"{upload.replace('_', '-')}.{ends.get(media_type, 'bin')}"


def stem_of(name: object) -> str:
    """The name of a file without its ending: an upload has one ending."""
    return str(name).partition(".")[0]


def to_seconds(time: str) -> float:
    """Seconds since 1970 of a time as RFC 3339 writes it; 0 if it is none."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return 0.0
