"""References of a request: uploads the large files of its messages that the account does not have, and names the others."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from msgspec.structs import replace

from everturn import failpoints
from everturn.core.file_uploads import FileUpload, UploadRegister
from everturn.core.parts import FilePart
from everturn.core.requests import ModelRequest, RequestResult
from everturn.errors import ConfigError, ModelError
from everturn.models.endpoint import Endpoint
from everturn.models.formats.files import file_kind
from everturn.models.profile import FileApiName, Profile
from everturn.models.uploads.anthropic import AnthropicFiles
from everturn.models.uploads.file_api import FileApi, RefusedUpload, file_name
from everturn.models.uploads.gemini import GeminiFiles
from everturn.models.uploads.openai import OpenAiFiles

log = logging.getLogger(__name__)


def open_file_api(name: FileApiName, endpoint: Endpoint) -> FileApi:
    """The files API of a vendor."""
    match name:
        case "openai":
            return OpenAiFiles(endpoint)
        case "azure":
            return OpenAiFiles(endpoint, purpose="assistants")
        case "anthropic":
            return AnthropicFiles(endpoint)
        case "gemini":
            return GeminiFiles(endpoint)
        case "":
            raise ConfigError("upload_above: this vendor has no files API that is supported; files are sent inline")


class FileReferences:
    """The files of requests to one account that have more than `above` bytes."""

    def __init__(self, profile: Profile, endpoint: Endpoint, above: int) -> None:
        self._profile, self._account, self._above = profile, endpoint.account, above
        self._api = open_file_api(profile.file_api, endpoint)

    @property
    def account(self) -> str:
        """Who can read what is uploaded."""
        return self._account

    async def add_to(self, request: ModelRequest, profile: Profile) -> ModelRequest:
        """The request with the references of its large files; those that the account does not have are uploaded first.

        Raises:
            ModelError: an upload failed.
        """
        register, references = request.uploads, dict[str, str]()
        if register is None:
            return request
        for file in self._large_files(request, profile):
            upload = await self._ready(register, file, request.files[file.blob])
            if upload.state == "ready":
                references[file.blob] = upload.reference
        return replace(request, references=references) if references else request

    async def forget(self, request: ModelRequest, error: ModelError) -> bool:
        """Whether the error is about files that are gone: they are then uploaded again by the next request."""
        text, is_gone = str(error), False
        for blob, reference in request.references.items():
            if request.uploads is not None and reference.rsplit("/", 1)[-1] in text:
                upload = await request.uploads.find(blob, self._account)
                if upload is not None:
                    await request.uploads.change(replace(upload, state="gone", reference=""))
                is_gone = True
        return is_gone

    async def delete(self, upload: FileUpload) -> None:
        """Delete an upload at the vendor, also one of which only the start is known.

        Raises:
            ModelError: the vendor did not delete it.
        """
        reference = upload.reference
        try:
            if not reference and (found := await self._api.find(file_name(upload.id, ""))) is not None:
                reference = found.reference
            if reference:
                await self._api.delete(reference)
        except RefusedUpload as refused:
            raise ModelError(str(refused), kind="request") from None

    async def _ready(self, register: UploadRegister, file: FilePart, data: bytes) -> FileUpload:
        known = await register.find(file.blob, self._account)
        if known is not None and known.state != "started":
            return known
        found = None
        try:
            if known is not None:  # the process that began it died: the vendor may have it
                found = await self._api.find(file_name(known.id, file.media_type))
            upload = (
                known if known is not None and found is not None else await register.start(file.blob, self._account)
            )
            if found is None:
                failpoints.hit_failpoint("upload.started")
                found = await self._api.upload(file_name(upload.id, file.media_type), file.media_type, data)
                failpoints.hit_failpoint("upload.sent")
        except RefusedUpload as refused:
            log.warning("a file of %d bytes is sent inline: %s", len(data), refused)
            known = await register.find(file.blob, self._account)
            known = known or await register.start(file.blob, self._account)
            upload = replace(known, state="refused")
        else:
            upload = replace(upload, state="ready", reference=found.reference, expires=found.expires)
        await register.change(upload)
        failpoints.hit_failpoint("upload.written")
        return upload

    def _large_files(self, request: ModelRequest, profile: Profile) -> Iterator[FilePart]:
        seen = set[str]()
        # Chat Completions names no image by its id, and Azure has no purpose for images.
        kinds = ("pdf",) if profile.format == "chat" or profile.file_api == "azure" else ("image", "pdf")
        for message in request.messages:
            for part in message.parts:
                for file in part.files if isinstance(part, RequestResult) else (part,):
                    if isinstance(file, FilePart) and file.size > self._above and file.blob not in seen:
                        if file_kind(file, profile.inputs, request.files) in kinds:
                            seen.add(file.blob)
                            yield file
