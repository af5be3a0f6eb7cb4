"""Files of the provider: the files APIs of OpenAI, Anthropic and Gemini. A file belongs to the API key that uploaded it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal, cast
from urllib.parse import parse_qs

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.testing.provider.answers import Answer, make_answer
from everturn.testing.provider.connection import Request
from everturn.testing.provider.faults import Format, Refused, error_body
from everturn.testing.provider.media.multipart import read_form

FilesFormat = Literal["responses", "messages", "gemini"]
CREATED: Final = 1_800_000_000
GEMINI_SECONDS: Final = 172_800
_LIFETIMES: Final[Mapping[str, tuple[int, int]]] = {"responses": (3600, 2_592_000), "messages": (3600, 7_776_000)}
_AZURE_PURPOSES: Final = frozenset(("assistants", "batch", "fine-tune", "evals"))  # those of all its references
_PURPOSES: Final = _AZURE_PURPOSES | {"vision", "user_data"}
_AZURE_PATH: Final = re.compile(r"/openai(/v1)?/files(/[^/]+)?")
_GEMINI_NAME: Final = re.compile(r"files/[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


class ProviderFile(Struct, frozen=True):
    """An uploaded file."""

    id: str
    format: FilesFormat
    key: str  # the API key that uploaded it
    name: str
    media_type: str
    data: bytes
    seconds: int = 0  # for which it is kept; 0: until it is deleted
    purpose: str = ""


class FileCabinet:
    """The files that clients have uploaded."""

    def __init__(self) -> None:
        self.files: dict[str, ProviderFile] = {}
        self._open: dict[str, ProviderFile] = {}  # resumable uploads
        self.uploads = 0  # how many there were
        self.is_closed = False  # it takes no files, and deletes none
        self.refused = 0  # uploads that it did not take

    def answer(self, request: Request, key: str, url: str) -> Answer | None:
        """The answer to a request to a files API; None for any other request."""
        path, is_google, purposes = request.path, "x-goog-api-key" in request.headers, _PURPOSES
        if is_google and (path.startswith(("/upload/v1beta/files", "/v1beta/files/"))):
            format: FilesFormat = "gemini"
        elif (azure := _AZURE_PATH.fullmatch(path)) is not None:
            if not azure[1] and "api-version" not in parse_qs(request.query):
                return make_answer(
                    404, error_body("responses", "", Refused("Resource not found", code="404", status=404))
                )
            format, purposes = "responses", _AZURE_PURPOSES
            request = replace(request, path=f"/v1/files{azure[2] or ''}")
        elif path == "/v1/files" or path.startswith("/v1/files/"):
            format = "messages" if "anthropic-version" in request.headers else "responses"
        else:
            return None
        if self.is_closed:
            self.refused += request.method == "POST"
            closed = Refused("Files are not available for this account.", status=400)
            return make_answer(400, error_body(format, "", closed))
        try:
            found = self._google(request, key, url) if format == "gemini" else self._own(request, key, format, purposes)
        except Refused as refused:
            return make_answer(refused.status, error_body(format, "", refused))
        return found if isinstance(found, Answer) else make_answer(200, msgspec.json.encode(found))

    def check(self, format: Format, body: dict[str, Any], key: str) -> None:
        """Refuse a request that names a file which this key has not uploaded.

        Raises:
            Refused: there is no such file.
        """
        for field, named in _references(body):
            name = named.rsplit("/", 1)[-1]
            file = self.files.get(f"files/{name}" if field == "fileUri" else name)
            if file is not None and file.key == key and _is_of(file.format, format):
                continue
            if format == "gemini":
                text = f"You do not have permission to access the File {name} or it may not exist."
                raise Refused(text, status=403)
            if format == "messages":
                raise Refused(f"File not found: {name}", kind="not_found_error", status=404)
            raise Refused(f"No such File object: {name}", field, status=404)

    def _own(self, request: Request, key: str, format: FilesFormat, purposes: frozenset[str]) -> Any:
        if request.method == "POST" and request.path == "/v1/files":
            return self._show(self._add(_read_upload(request, key, format, self._new_id(format), purposes)))
        if request.method == "GET" and request.path == "/v1/files":
            most = int((parse_qs(request.query).get("limit") or ["20"])[0])
            own = [file for file in self.files.values() if (file.key, file.format) == (key, format)]
            return {"data": [self._show(file) for file in reversed(own)][:most], "has_more": len(own) > most}
        return self._one(request, key, format, request.path.removeprefix("/v1/files/"))

    def _google(self, request: Request, key: str, url: str) -> Any:
        headers = request.headers
        if request.method == "POST" and headers.get("x-goog-upload-command") == "start":
            about = cast("dict[str, Any]", msgspec.json.decode(request.body, type=dict[str, Any]).get("file") or {})
            name = str(about.get("name") or f"files/f-{len(self.files)}")
            if _GEMINI_NAME.fullmatch(name) is None:
                raise Refused(f"Invalid file name: {name}")
            if name in self.files:
                raise Refused(f"The resource {name} already exists", status=409)
            kind, length = headers.get("x-goog-upload-header-content-type", ""), about.get("sizeBytes")
            if length != headers.get("x-goog-upload-header-content-length"):
                raise Refused("The size of the file is not that of the headers.")
            upload = f"u{len(self._open) + 1}"
            file = ProviderFile(name, "gemini", key, str(about.get("displayName", "")), kind, b"", GEMINI_SECONDS)
            self._open[upload] = file
            place = f"{url}/upload/v1beta/files?upload_id={upload}"
            return make_answer(200, b"{}", {"x-goog-upload-url": place, "x-goog-upload-status": "active"})
        if request.method == "POST":
            waiting = self._open.pop((parse_qs(request.query).get("upload_id") or [""])[0], None)
            if waiting is None or headers.get("x-goog-upload-command") != "upload, finalize":
                raise Refused("Upload has already been terminated.")
            return {"file": self._show(self._add(replace(waiting, data=request.body)), url)}
        found = self._one(request, key, "gemini", request.path.removeprefix("/v1beta/"))
        return self._show(found, url) if isinstance(found, ProviderFile) else found

    def _one(self, request: Request, key: str, format: FilesFormat, name: str) -> Any:
        file = self.files.get(name)
        if file is None or file.key != key or file.format != format:
            if format == "gemini":
                raise Refused(f"You do not have permission to access the File {name} or it may not exist.", status=403)
            raise Refused(f"No such File object: {name}", kind="not_found_error", status=404)
        if request.method == "DELETE":
            del self.files[name]
            return {} if format == "gemini" else {"id": name, "deleted": True, "type": "file_deleted"}
        return file if format == "gemini" else self._show(file)

    def _new_id(self, format: FilesFormat) -> str:
        return f"{'file_011' if format == 'messages' else 'file-'}{self.uploads + 1:06}"

    def _add(self, file: ProviderFile) -> ProviderFile:
        self.files[file.id] = file
        self.uploads += 1
        return file

    def _show(self, file: ProviderFile, url: str = "") -> dict[str, Any]:
        end = CREATED + file.seconds
        if file.format == "responses":
            about = {"id": file.id, "object": "file", "bytes": len(file.data), "created_at": CREATED}
            return {
                **about,
                "filename": file.name,
                "purpose": file.purpose,
                "expires_at": end if file.seconds else None,
            }
        if file.format == "messages":
            about = {"id": file.id, "type": "file", "filename": file.name, "mime_type": file.media_type}
            shown = _rfc3339(end) if file.seconds else None
            return {**about, "size_bytes": len(file.data), "created_at": _rfc3339(CREATED), "expires_at": shown}
        about = {"name": file.id, "displayName": file.name, "mimeType": file.media_type, "state": "ACTIVE"}
        return {**about, "uri": f"{url}/v1beta/{file.id}", "expirationTime": _rfc3339(end)}


def _read_upload(request: Request, key: str, format: FilesFormat, id: str, purposes: frozenset[str]) -> ProviderFile:
    fields = {field.name: field for field in read_form(request.headers.get("content-type", ""), request.body)}
    file = fields.pop("file", None)
    if file is None or file.filename is None:
        raise Refused("'file' is a required property")
    purpose = ""
    if format == "responses":
        purpose = fields.pop("purpose").data.decode() if "purpose" in fields else ""
        if purpose not in purposes:
            raise Refused(f"'{purpose}' is not one of the purposes")
        if (anchor := fields.pop("expires_after[anchor]", None)) is not None and anchor.data != b"created_at":
            raise Refused("expires_after.anchor must be 'created_at'")
    lifetime = fields.pop("expires_after[seconds]" if format == "responses" else "expires_in_seconds", None)
    seconds = int(lifetime.data) if lifetime is not None else 0
    least, most = _LIFETIMES[format]
    if seconds and not least <= seconds <= most:
        raise Refused(f"the lifetime must be between {least} and {most} seconds")
    if fields:
        raise Refused(f"Unknown field: {sorted(fields)[0]}")
    return ProviderFile(id, format, key, file.filename, file.content_type, file.data, seconds, purpose)


# Where results of the provider's own tools name the provider's files.
_PROVIDER_FIELDS = frozenset(("annotations", "results", "outputs"))
_FILE_FIELDS = frozenset(("file_id", "fileUri"))


def _references(body: dict[str, Any]) -> list[tuple[str, str]]:
    """The files that a body names, in no particular order. A loop and not a recursion: it visits each value of each request."""
    found: list[tuple[str, str]] = []
    containers: list[dict[str, Any] | list[Any]] = [body]
    while containers:
        container = containers.pop()
        if isinstance(container, list):
            containers += [item for item in container if isinstance(item, dict | list)]
            continue
        for name, item in container.items():
            if isinstance(item, str):
                if name in _FILE_FIELDS:
                    found.append((name, item))
            elif isinstance(item, dict | list) and name not in _PROVIDER_FIELDS:
                containers.append(cast("dict[str, Any] | list[Any]", item))
    return found


def _is_of(files: FilesFormat, format: Format) -> bool:
    return files == format or (files == "responses" and format == "chat")


def _rfc3339(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")
