"""Files of OpenAI and Azure OpenAI: `/files`. With OpenAI, images are uploaded for `vision`, all others as `user_data`.

Azure OpenAI has the same API. Its references disagree about `vision` and `user_data`; all of them have `assistants`.
"""

from __future__ import annotations

from typing import Any, cast

from everturn.models.endpoint import Endpoint
from everturn.models.multipart import MultipartFile, encode
from everturn.models.uploads.file_api import LIFETIME, PAGE, UploadedFile, decode_answer, stem_of


class OpenAiFiles:
    """The files API of OpenAI. `purpose` is that of every file; "": it depends on the file."""

    def __init__(self, endpoint: Endpoint, purpose: str = "") -> None:
        self._endpoint, self._purpose = endpoint, purpose

    async def upload(self, name: str, media_type: str, data: bytes) -> UploadedFile:
        """Upload a file."""
        fields = [
            ("purpose", self._purpose or ("vision" if media_type.startswith("image/") else "user_data")),
            ("expires_after[anchor]", "created_at"),
            ("expires_after[seconds]", str(LIFETIME)),
        ]
        body, content_type = encode(fields, [MultipartFile("file", name, media_type, data)])
        reply, answer = await self._endpoint.call("POST", "/files", body, {"content-type": content_type})
        return _uploaded(decode_answer(self._endpoint, reply, answer))

    async def find(self, name: str) -> UploadedFile | None:
        """Look for a file among the newest ones."""
        reply, answer = await self._endpoint.call("GET", f"/files?limit={PAGE}&order=desc")
        files = cast("list[dict[str, Any]]", decode_answer(self._endpoint, reply, answer).get("data") or [])
        return next((_uploaded(file) for file in files if stem_of(file.get("filename")) == stem_of(name)), None)

    async def delete(self, reference: str) -> None:
        """Delete a file."""
        reply, answer = await self._endpoint.call("DELETE", f"/files/{reference}")
        if reply.status != 404:
            decode_answer(self._endpoint, reply, answer)


def _uploaded(file: dict[str, Any]) -> UploadedFile:
    return UploadedFile(str(file["id"]), float(file.get("expires_at") or 0))
