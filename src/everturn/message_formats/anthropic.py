"""Anthropic: reads and writes Messages with content blocks.

Thinking is read as reasoning without its signature, which only Anthropic can check, and is not exported: the API refuses
thinking that it did not sign.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from everturn.core.canonical_json import parse_object
from everturn.core.parts import FilePart, ReasoningPart
from everturn.core.requests import RequestCall, RequestMessage, RequestResult
from everturn.errors import ConfigError
from everturn.message_formats.content import (
    ExportedCallIds,
    Json,
    as_arguments,
    as_list,
    as_mapping,
    as_object,
    as_text,
    file_from_base64,
    file_note,
    left_out,
    plain_text,
    text_part,
)
from everturn.message_formats.conversation import AnswerPart, ConversationBuilder, ImportedCall, UserPart
from everturn.models.formats.files import IMAGES


def read_anthropic(messages: Iterable[object], builder: ConversationBuilder) -> None:
    """Read Messages.

    Raises:
        ConfigError: something in the list is not a message.
    """
    for position, item in enumerate(messages):
        builder.position = position
        message = as_object(item, position)
        content = message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)
        match message.get("role"):
            case "user":
                _read_user(blocks, builder)
            case "assistant":
                builder.add_answer(_answer_parts(blocks, builder), as_text(message.get("model")))
            case "system":
                builder.add_system(read_system(content))
            case role:
                raise ConfigError(f"message {position} has the role {role!r}; Anthropic has user and assistant")


def read_system(system: object) -> str:
    """The text of a `system` field, which is a text or a list of blocks."""
    return (
        as_text(system)
        if system is None or isinstance(system, str)
        else "\n\n".join(as_text(block.get("text")) for block in as_list(system))
    )


def _read_user(blocks: Iterable[Json], builder: ConversationBuilder) -> None:
    parts: list[UserPart] = []
    for block in blocks:
        if block.get("type") == "tool_result":
            _read_result(block, builder)
        else:
            parts.append(_user_part(block, builder))
    builder.add_user(parts)


def _read_result(block: Json, builder: ConversationBuilder) -> None:
    content = block.get("content")
    texts: list[str] = []
    files: list[FilePart] = []
    if content is None or isinstance(content, str):
        texts.append(as_text(content))
    else:
        for item in as_list(content):
            part = _user_part(item, builder)
            if isinstance(part, FilePart):
                files.append(part)
            else:
                texts.append(part.text)
    call, is_error = as_text(block.get("tool_use_id")), block.get("is_error") is True
    builder.add_result(call, "\n".join(texts), is_error=is_error, files=files)


def _user_part(block: Json, builder: ConversationBuilder) -> UserPart:
    kind, source = block.get("type"), as_mapping(block.get("source"))
    if kind == "text":
        return text_part(block.get("text"))
    if kind not in ("image", "document") or not source:
        return left_out(builder, f"content of type {kind!r}")
    description, name = "an image" if kind == "image" else "a document", as_text(block.get("title"))
    match source.get("type"):
        case "base64":
            return file_from_base64(builder, source.get("data"), source.get("media_type"), description, name)
        case "text":
            return builder.add_file(as_text(source.get("data")).encode() or b" ", "text/plain", name)
        case "content":
            inner: Any = source.get("content")
            return text_part(inner if isinstance(inner, str) else read_system(inner))
        case "url":
            return left_out(builder, description, as_text(source.get("url"))[:2000])
        case other:
            return left_out(builder, f"{description} by {other!r}")


def _answer_parts(blocks: Iterable[Json], builder: ConversationBuilder) -> list[AnswerPart]:
    parts: list[AnswerPart] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                parts.append(text_part(block.get("text")))
            case "thinking":
                parts.append(ReasoningPart(as_text(block.get("thinking"))))
            case "tool_use":
                call, name = as_text(block.get("id")), as_text(block.get("name"))
                parts.append(ImportedCall(call, name, as_arguments(block.get("input"))))
            case "redacted_thinking":
                pass  # nobody but Anthropic can read it
            case kind:
                left_out(builder, f"content of type {kind!r}")
    return parts


# Writing -------------------------------------------------------------------------------------------------------------


def write_anthropic(history: Sequence[RequestMessage], files: Mapping[str, bytes]) -> list[Json]:
    """Write a history as Messages."""
    ids = ExportedCallIds(history)
    messages: list[Json] = []
    for message in history:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [block for part in message.parts if (block := _write_part(part, ids, files, role)) is not None]
        if blocks:
            messages.append({"role": role, "content": blocks})
    return messages


def _write_part(part: object, ids: ExportedCallIds, files: Mapping[str, bytes], role: str) -> Json | None:
    match part:
        case RequestCall(call=call, name=name, arguments=arguments):
            return {"type": "tool_use", "id": ids[call], "name": name, "input": parse_object(arguments) or {}}
        case RequestResult(call=call, text=text, is_error=is_error, files=attached):
            content: list[Json] = [{"type": "text", "text": text}] if text else []
            content += [_write_file(file, files) for file in attached]
            result: Json = {"type": "tool_result", "tool_use_id": ids[call], "content": content}
            return {**result, "is_error": True} if is_error else result
        case FilePart():
            return _write_file(part, files) if role == "user" else {"type": "text", "text": file_note(part)}
        case ReasoningPart():
            return None
        case _:
            return {"type": "text", "text": plain_text(part)}  # pyright: ignore[reportArgumentType]


def _write_file(file: FilePart, files: Mapping[str, bytes]) -> Json:
    content = files.get(file.blob)
    source = {"type": "base64", "media_type": file.media_type, "data": base64.b64encode(content or b"").decode()}
    if content is not None and file.media_type in IMAGES:
        return {"type": "image", "source": source}
    title = {"title": file.name} if file.name else {}
    if content is not None and file.media_type == "application/pdf":
        return {"type": "document", "source": source, **title}
    if content is not None and file.media_type.startswith("text/"):
        text = {"type": "text", "media_type": "text/plain", "data": content.decode(errors="replace")}
        return {"type": "document", "source": text, **title}
    return {"type": "text", "text": file_note(file)}
