"""Files in messages: how a model reads a file; a file that it cannot read becomes a text note."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec.structs import replace

from everturn.core.canonical_json import replace_surrogates
from everturn.core.context.documents import one_line, opening_text, plain_name
from everturn.core.parts import FilePart, TextPart
from everturn.core.requests import ModelRequest, RequestMessage, RequestPart, RequestResult
from everturn.models.profile import Profile

PDF = "application/pdf"
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
TEXT_TYPES = frozenset({"application/json", "application/xml", "application/yaml", "application/toml"})

FILES_NOTE = "[files that the answer above brought]"

FileKind = Literal["image", "audio", "pdf", "text", "unread"]


def file_kind(file: FilePart, inputs: frozenset[str], files: Mapping[str, bytes]) -> FileKind:
    """Return how a model with these inputs reads a file."""
    if not files.get(file.blob):  # missing, or empty, which no vendor accepts as an image
        return "unread"
    if file.media_type in IMAGES:
        return "image" if "image" in inputs else "unread"
    if file.media_type in AUDIO:
        return "audio" if "audio" in inputs else "unread"
    if file.media_type == PDF and "pdf" in inputs:
        return "pdf"
    if file.text in files:  # a document that the model reads as text
        return "text"
    if file.media_type.startswith("text/") or file.media_type in TEXT_TYPES:
        return "text"
    return "unread"


def fit_documents(request: ModelRequest, profile: Profile) -> Profile:
    """The profile for a request: with more pages or bytes of PDF files than the vendor takes, the model reads their text.

    A function of the request: a conversation that has grown over the limit stays over it.
    """
    if "pdf" not in profile.inputs or not (profile.pdf_pages or profile.pdf_bytes):
        return profile
    pages = size = 0
    for message in request.messages:
        for part in message.parts:
            for file in part.files if isinstance(part, RequestResult) else (part,):
                if isinstance(file, FilePart) and file.media_type == PDF and file.blob in request.files:
                    pages += file.pages
                    size += 0 if file.blob in request.references else file.size * 4 // 3
    is_over = 0 < profile.pdf_pages < pages or 0 < profile.pdf_bytes < size
    return replace(profile, inputs=profile.inputs - {"pdf"}) if is_over else profile


def move_files_to_user(
    messages: Sequence[RequestMessage], inputs: frozenset[str], files: Mapping[str, bytes]
) -> Sequence[RequestMessage]:
    """Move files of assistant messages into user messages after them, for a format whose assistant messages hold none.

    Without this a model could not see an image that it, or another model, has just made.
    """
    if not any(type(part) is FilePart for message in messages if message.role == "assistant" for part in message.parts):
        return messages
    moved: list[RequestMessage] = []
    made: list[RequestPart] = []  # files of the previous answer; its tool results come in between
    for message in messages:
        if made and message.role != "tool":
            moved.append(RequestMessage("user", (TextPart(FILES_NOTE), *made)))
            made = []
        if message.role == "assistant":
            files_of_message = [part for part in message.parts if isinstance(part, FilePart)]
            seen = [part for part in files_of_message if file_kind(part, inputs, files) != "unread"]
            made += seen
            parts = (
                TextPart(f"[{one_line(part.name) or 'a file'}: see below]") if part in seen else part
                for part in message.parts
            )
            message = RequestMessage(message.role, tuple(parts), message.name, message.hint_size)
        moved.append(message)
    return [*moved, RequestMessage("user", (TextPart(FILES_NOTE), *made))] if made else moved


def as_note(file: FilePart) -> str:
    """Return the note that replaces a file which the model cannot read."""
    name, kind = one_line(file.name), one_line(file.media_type)
    return f"[a file that cannot be shown to you: {name or 'without a name'}, {kind}, {file.size} bytes]"


def as_text(file: FilePart, files: Mapping[str, bytes]) -> str:
    """Return the content of a text file, or the first part of a document, with its name."""
    if file.text in files:
        return opening_text(plain_name(file), files[file.text])
    return f"[{plain_name(file)}]\n{replace_surrogates(files[file.blob].decode('utf-8', 'replace'))}"


def as_base64(file: FilePart, files: Mapping[str, bytes]) -> str:
    """Return a file's bytes as base64."""
    return base64.b64encode(files[file.blob]).decode()


def as_data_url(file: FilePart, files: Mapping[str, bytes]) -> str:
    """Return a file's bytes as a data URL."""
    return f"data:{file.media_type};base64,{as_base64(file, files)}"
