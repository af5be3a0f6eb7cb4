"""A file in a message → what the vendor takes it as; a file the model cannot read becomes a note that says so."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Literal

from everturn.core.canonical import clean
from everturn.core.parts import FilePart

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/toml"})

FileKind = Literal["image", "audio", "pdf", "text", "unread"]


def kind_of(file: FilePart, inputs: frozenset[str], files: Mapping[str, bytes]) -> FileKind:
    """What a model with these inputs reads a file as."""
    if not files.get(file.blob):  # gone, or empty, which no vendor takes for a picture
        return "unread"
    if file.media_type in IMAGES:
        return "image" if "image" in inputs else "unread"
    if file.media_type in AUDIO:
        return "audio" if "audio" in inputs else "unread"
    if file.media_type == "application/pdf":
        return "pdf" if "pdf" in inputs else "unread"
    if file.media_type.startswith("text/") or file.media_type in TEXT_TYPES:
        return "text"
    return "unread"


def as_note(file: FilePart) -> str:
    """What a model is told of a file it cannot read."""
    return (
        f"[a file that cannot be shown to you: {file.name or 'without a name'}, {file.media_type}, {file.size} bytes]"
    )


def as_text(file: FilePart, files: Mapping[str, bytes]) -> str:
    """A text file, with its name."""
    return f"[{file.name or file.media_type}]\n{clean(files[file.blob].decode('utf-8', 'replace'))}"


def as_base64(file: FilePart, files: Mapping[str, bytes]) -> str:
    """A file's bytes, for a field that wants them bare."""
    return base64.b64encode(files[file.blob]).decode()


def as_data_url(file: FilePart, files: Mapping[str, bytes]) -> str:
    """A file's bytes, for a field that wants a URL."""
    return f"data:{file.media_type};base64,{as_base64(file, files)}"
