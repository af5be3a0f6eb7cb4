"""Files of the Gemini API: a resumable upload in one piece. Google deletes them after 48 hours; the name is ours.

A request names a file by its URI.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast
from urllib.parse import urlsplit

import msgspec

from everturn.errors import ModelError
from everturn.models.endpoint import Endpoint
from everturn.models.uploads.file_api import (
    RefusedUpload,
    UploadedFile,
    decode_answer,
    raise_refusal,
    stem_of,
    to_seconds,
)

POLLS: Final = 20  # times that a file is asked for until it is processed
PAUSE: Final = 0.5  # seconds in between


class GeminiFiles:
    """The files API of Gemini."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    async def upload(self, name: str, media_type: str, data: bytes) -> UploadedFile:
        """Upload a file, and wait until it is processed."""
        endpoint = self._endpoint
        parts = urlsplit(endpoint.url)
        start = f"{parts.scheme}://{parts.netloc}/upload{parts.path}/files"
        about = {"name": _resource(name), "displayName": name, "mimeType": media_type, "sizeBytes": str(len(data))}
        headers = {
            "content-type": "application/json",
            "x-goog-upload-protocol": "resumable",
            "x-goog-upload-command": "start",
            "x-goog-upload-header-content-length": str(len(data)),
            "x-goog-upload-header-content-type": media_type,
        }
        reply, answer = await endpoint.call("POST", start, msgspec.json.encode({"file": about}), headers)
        if reply.status != 200:
            raise_refusal(endpoint, reply, answer)
        url = reply.headers.get("x-goog-upload-url", "")
        if not url:
            raise ModelError(f"{endpoint.place} named no address for the upload", kind="response")
        headers = {"x-goog-upload-offset": "0", "x-goog-upload-command": "upload, finalize"}
        reply, answer = await endpoint.call("POST", url, data, {**headers, "content-type": media_type})
        file = cast("dict[str, Any]", decode_answer(endpoint, reply, answer).get("file") or {})
        for _ in range(POLLS):
            if file.get("state", "ACTIVE") != "PROCESSING":
                break
            await asyncio.sleep(PAUSE)
            reply, answer = await endpoint.call("GET", f"/{_resource(name)}")
            file = decode_answer(endpoint, reply, answer)
        if (made := _uploaded(file)) is None:
            raise RefusedUpload(f"the file is {file.get('state')}")
        return made

    async def find(self, name: str) -> UploadedFile | None:
        """Ask for a file by its name."""
        reply, answer = await self._endpoint.call("GET", f"/{_resource(name)}")
        if reply.status in (403, 404):  # Google says the same of a file of others and of none
            return None
        return _uploaded(decode_answer(self._endpoint, reply, answer))

    async def delete(self, reference: str) -> None:
        """Delete a file."""
        reply, answer = await self._endpoint.call("DELETE", f"/files/{reference.rsplit('/', 1)[-1]}")
        if reply.status not in (403, 404):
            decode_answer(self._endpoint, reply, answer)


def _resource(name: str) -> str:
    return f"files/{stem_of(name).lower()[:40].strip('-')}"


def _uploaded(file: dict[str, Any]) -> UploadedFile | None:
    if file.get("state", "ACTIVE") != "ACTIVE" or not file.get("uri"):
        return None
    return UploadedFile(str(file["uri"]), to_seconds(str(file.get("expirationTime") or "")))
