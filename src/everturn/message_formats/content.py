"""Message content: reads texts, data URLs and base64 in other libraries' messages, and writes files as they expect them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast
from urllib.parse import unquote_to_bytes

import msgspec

from everturn.core.canonical_json import encode_canonical, replace_surrogates
from everturn.core.parts import FilePart, NoticePart, ProviderToolPart, TextPart, provider_tool_note
from everturn.core.requests import RequestCall, RequestMessage, RequestPart
from everturn.errors import ConfigError
from everturn.message_formats.conversation import ConversationBuilder, UserPart
from everturn.models.formats.notices import notice_text
from everturn.models.media.file_types import FileType, detect_type

Json = dict[str, Any]

_MEDIA_TYPE: Final = re.compile(r"[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*")
_DATA_URL: Final = re.compile(r"data:([^,]*),(.*)", re.DOTALL)
UNKNOWN_TYPE: Final = "application/octet-stream"


def as_object(value: object, position: int) -> Json:
    """A message as a JSON object: a mapping, or a model of a vendor's SDK.

    Raises:
        ConfigError: it is neither.
    """
    if not isinstance(value, Mapping) and callable(dump := getattr(value, "model_dump", None)):
        value = dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    raise ConfigError(
        f"message {position} is a {type(value).__name__}; a message must be an object with a role or a kind"
    )


def as_mapping(value: object) -> Json:
    """A JSON object inside a message; a value that is none is empty."""
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}


def as_list(value: object) -> list[Json]:
    """The objects of a list; a value that is not a list has none."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        return []
    return [_content_object(item) for item in cast("Iterable[object]", value)]


def _content_object(item: object) -> Json:
    """One piece of content: a text alone is a text part, and what is no object is of a type that nobody knows."""
    if isinstance(item, str):
        return {"type": "text", "text": item}
    try:
        piece = as_object(item, 0)
    except ConfigError:
        return {"type": type(item).__name__}
    return {**piece, "type": as_text(piece["type"])} if "type" in piece else piece


def as_text(value: object) -> str:
    """A value as text: a text as it is, anything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return replace_surrogates(value)
    try:
        return replace_surrogates(encode_canonical(value))
    except (TypeError, ValueError, UnicodeError, msgspec.MsgspecError, RecursionError):
        return replace_surrogates(str(value))


def as_arguments(value: object) -> str:
    """The arguments of a call as the text a model wrote."""
    return "{}" if value is None or value == "" else as_text(value)


def text_part(value: object) -> TextPart:
    """A text part."""
    return TextPart(as_text(value))


def left_out(builder: ConversationBuilder, kind: str, where: str = "") -> NoticePart:
    """Report content that is not imported, and leave a notice of it for the model."""
    text = f"{kind} was not imported" + (f": {where}" if where else "")
    builder.warn(text)
    return NoticePart(
        "import", replace_surrogates(f"Here was content that was left out when the conversation was imported: {text}")
    )


def file_from_url(builder: ConversationBuilder, url: object, kind: str, name: str = "") -> UserPart:
    """A file from a data URL. Any other URL is not fetched: a list that somebody sent must not choose what we request."""
    match = _DATA_URL.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        return left_out(builder, kind, as_text(url)[:2000])
    head, body = match.groups()
    media_type, *options = head.split(";")
    if "base64" in (option.strip().lower() for option in options):
        return file_from_base64(builder, body, media_type, kind, name)
    return _file(builder, unquote_to_bytes(body), media_type, kind, name)


def file_from_base64(
    builder: ConversationBuilder, data: object, media_type: object, kind: str, name: str = ""
) -> UserPart:
    """A file from base64, of either alphabet."""
    try:
        text = "".join(as_text(data).split()).translate(str.maketrans("-_", "+/"))
        content = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except (binascii.Error, ValueError):
        return left_out(builder, f"{kind} that is not base64")
    return _file(builder, content, media_type, kind, name)


def _file(builder: ConversationBuilder, content: bytes, media_type: object, kind: str, name: str) -> UserPart:
    if not content:
        return left_out(builder, f"{kind} that is empty")
    media_type = as_text(media_type).strip().lower()
    if not _MEDIA_TYPE.fullmatch(media_type):
        media_type = UNKNOWN_TYPE
    if not _is_content_of(media_type, content):
        builder.warn(f"{kind} says that it is {media_type}, and its content is not")
        media_type = UNKNOWN_TYPE
    return builder.add_file(content, media_type, name)


def _is_content_of(media_type: str, content: bytes) -> bool:
    """Whether content can be of this type: vendors refuse a whole request because of one image that is none."""
    if media_type == "application/pdf":
        return content.startswith(b"%PDF-")
    if media_type.startswith("image/"):
        return detect_type(content) == FileType(media_type)
    return not media_type.startswith("audio/") or detect_type(content).media_type.startswith("audio/")


# Writing -------------------------------------------------------------------------------------------------------------


def plain_text(part: RequestPart) -> str:
    """The text of a part, as a model reads it; a notice is marked as one."""
    if isinstance(part, NoticePart):
        return notice_text(part)
    if isinstance(part, ProviderToolPart):
        return provider_tool_note(part) + "\n\n"
    return part.text if isinstance(part, TextPart) else ""


def file_note(file: FilePart) -> str:
    """The text in place of a file that a format cannot hold, or whose content is gone."""
    return f"[file {file.name or file.blob[:12]!r}, {file.media_type}, {file.size} bytes: not exported]"


def data_url(file: FilePart, content: bytes) -> str:
    """A file as a data URL."""
    return f"data:{file.media_type};base64,{base64.b64encode(content).decode()}"


class ExportedCallIds:
    """The ids of calls in an export: those of the provider where they are unique, and ours otherwise."""

    def __init__(self, history: Iterable[RequestMessage]) -> None:
        self._ids: dict[str, str] = {}
        taken: set[str] = set()
        for message in history:
            for part in message.parts:
                if isinstance(part, RequestCall):
                    name = part.provider_id if part.provider_id and part.provider_id not in taken else part.call
                    self._ids[part.call] = name
                    taken.add(name)

    def __getitem__(self, call: str) -> str:
        return self._ids.get(call, call)
