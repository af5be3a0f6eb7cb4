"""A file in a message → what the vendor takes it as; a file the model cannot read becomes a note that says so."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Literal

from everturn.core.canonical import clean
from everturn.core.parts import FilePart, TextPart
from everturn.core.requests import RequestMessage, RequestPart

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/toml"})

BROUGHT = "[files that the answer above brought]"

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


def handed_on(
    messages: Sequence[RequestMessage], inputs: frozenset[str], files: Mapping[str, bytes]
) -> Sequence[RequestMessage]:
    """Messages in which files the model itself has made stand behind its answers, for a format whose answers hold none.

    Without this a model could not see the picture it, or another, has made a moment ago.
    """
    if not any(type(part) is FilePart for message in messages if message.role == "assistant" for part in message.parts):
        return messages
    handed: list[RequestMessage] = []
    made: list[RequestPart] = []  # by the answer before; what its calls came to stands in between
    for message in messages:
        if made and message.role != "tool":
            handed.append(RequestMessage("user", (TextPart(BROUGHT), *made)))
            made = []
        if message.role == "assistant":
            own = [part for part in message.parts if isinstance(part, FilePart)]
            seen = [part for part in own if kind_of(part, inputs, files) != "unread"]
            made += seen
            parts = (
                TextPart(f"[{_in_a_line(part.name) or 'a file'}: see below]") if part in seen else part
                for part in message.parts
            )
            message = RequestMessage(message.role, tuple(parts), message.name, message.hint_size)
        handed.append(message)
    return [*handed, RequestMessage("user", (TextPart(BROUGHT), *made))] if made else handed


def as_note(file: FilePart) -> str:
    """What a model is told of a file it cannot read."""
    name, kind = _in_a_line(file.name), _in_a_line(file.media_type)
    return f"[a file that cannot be shown to you: {name or 'without a name'}, {kind}, {file.size} bytes]"


def as_text(file: FilePart, files: Mapping[str, bytes]) -> str:
    """A text file, with its name."""
    return f"[{_in_a_line(file.name or file.media_type)}]\n{clean(files[file.blob].decode('utf-8', 'replace'))}"


def _in_a_line(text: str) -> str:
    """A name that somebody else chose, without what would end its line."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def as_base64(file: FilePart, files: Mapping[str, bytes]) -> str:
    """A file's bytes, for a field that wants them bare."""
    return base64.b64encode(files[file.blob]).decode()


def as_data_url(file: FilePart, files: Mapping[str, bytes]) -> str:
    """A file's bytes, for a field that wants a URL."""
    return f"data:{file.media_type};base64,{as_base64(file, files)}"
