"""Attachments: stores a file in order to send it, with the text of a document beside it."""

from __future__ import annotations

import asyncio
import mimetypes
from pathlib import Path

from everturn.core.canonical_json import replace_surrogates
from everturn.core.context.documents import document_type, page_count
from everturn.core.parts import FilePart
from everturn.core.store_ports import Store
from everturn.core.tenants.encryption import blobs_of_tenant
from everturn.errors import ConfigError


async def store_attachment(
    store: Store, tenant: str, file: bytes | Path | str, media_type: str = "", name: str = ""
) -> FilePart:
    """Store a file, or these bytes; the text of a PDF or Office file is read, in a process of its own.

    Raises:
        ConfigError: the file is empty.
    """
    if not isinstance(file, bytes):
        file = Path(file)
        name = name or file.name
        data = await asyncio.to_thread(file.read_bytes)
    else:
        data = file
    if not data:
        raise ConfigError(f"{name or 'the file'} is empty; there is nothing to send")
    name = replace_surrogates(name)
    media_type = media_type or _guess_media_type(name, data)
    text, pages = b"", 0
    if document := document_type(media_type, name):
        from everturn.documents.extraction import extract_text

        media_type, text = document, await extract_text(data, document)
        pages = page_count(text)
    with blobs_of_tenant(tenant):
        blob = await store.put_blob(data)
        text_blob = await store.put_blob(text) if text else ""
    return FilePart(blob, media_type, len(data), name, text_blob, pages)


def _guess_media_type(name: str, data: bytes) -> str:
    """The media type of a file, by its name or its first bytes; valid UTF-8 counts as text."""
    from everturn.models.media.file_types import detect_type

    guess = mimetypes.guess_type(name)[0] or detect_type(data).media_type or "application/octet-stream"
    if guess != "application/octet-stream" and not guess.startswith(("video/", "application/x-")):
        return guess
    try:
        return "text/plain" if b"\0" not in data and data.decode() else guess
    except UnicodeDecodeError:
        return guess
