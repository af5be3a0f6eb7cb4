"""Pydantic AI: reads `ModelMessage` lists, as objects or as the JSON of `ModelMessagesTypeAdapter`, and writes that JSON.

ModelMessagesTypeAdapter.validate_python(await chat.export_messages(format="pydantic_ai"))
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from everturn.core.parts import FilePart, ProviderToolPart, ReasoningPart, TextPart, provider_tool_note
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

FAILED_OUTCOMES = ("failed", "retried", "interrupted", "denied")


def is_model_message(value: object) -> bool:
    """Whether a value is a message object of Pydantic AI."""
    return type(value).__module__.split(".")[0] == "pydantic_ai"


def read_pydantic_ai(messages: Sequence[object], builder: ConversationBuilder) -> None:
    """Read a `ModelMessage` list.

    Raises:
        ConfigError: something in the list is not a message.
    """
    if any(map(is_model_message, messages)):
        adapter: Any = import_module("pydantic_ai.messages").ModelMessagesTypeAdapter
        messages = adapter.dump_python(list(messages), mode="json")
    for position, item in enumerate(messages):
        builder.position = position
        message = as_object(item, position)
        parts = as_list(message.get("parts"))
        match message.get("kind"):
            case "request":
                builder.add_system(as_text(message.get("instructions")))
                _read_request(parts, builder)
            case "response":
                builder.add_answer(_answer_parts(parts, builder), as_text(message.get("model_name")))
            case kind:
                raise ConfigError(f"message {position} has the kind {kind!r}; Pydantic AI has request and response")


def _read_request(parts: Iterable[Json], builder: ConversationBuilder) -> None:
    user: list[UserPart] = []
    for part in parts:
        content, call = part.get("content"), as_text(part.get("tool_call_id"))
        match part.get("part_kind"):
            case "system-prompt" | "instruction":
                builder.add_system(as_text(content))
            case "user-prompt":
                user += _user_parts(content, builder)
            case "tool-return":
                failed = part.get("outcome") in FAILED_OUTCOMES
                builder.add_result(call, as_text(content), name=as_text(part.get("tool_name")), is_error=failed)
            case "retry-prompt" if part.get("tool_name"):
                builder.add_result(call, as_text(content), name=as_text(part.get("tool_name")), is_error=True)
            case (
                "retry-prompt" | "retry-feedback"
            ):  # the answer was invalid: what the model was told, as a user message
                user.append(text_part(content))
            case kind:
                user.append(left_out(builder, f"a part of kind {kind!r}"))
    builder.add_user(user)


def _user_parts(content: object, builder: ConversationBuilder) -> list[UserPart]:
    if content is None or isinstance(content, str):
        return [text_part(content)]
    parts: list[UserPart] = []
    for item in as_list(content):
        match item.get("kind", item.get("type")):
            case "text":
                parts.append(text_part(item.get("text")))
            case "text-content" | "structured-content":
                parts.append(text_part(item.get("content")))
            case "binary":
                parts.append(file_from_base64(builder, item.get("data"), item.get("media_type"), "a file"))
            case "cache-point":
                pass
            case kind:
                parts.append(left_out(builder, f"content of kind {kind!r}", as_text(item.get("url"))[:2000]))
    return parts


def _answer_parts(parts: Iterable[Json], builder: ConversationBuilder) -> list[AnswerPart]:
    answer: list[AnswerPart] = []
    for part in parts:
        match part.get("part_kind"):
            case "text":
                answer.append(text_part(part.get("content")))
            case "thinking":
                answer.append(ReasoningPart(as_text(part.get("content"))))
            case "tool-call":
                call, name = as_text(part.get("tool_call_id")), as_text(part.get("tool_name"))
                answer.append(ImportedCall(call, name, as_arguments(part.get("args"))))
            case "file":
                binary = as_mapping(part.get("content"))
                file = file_from_base64(builder, binary.get("data"), binary.get("media_type"), "a file")
                if isinstance(file, FilePart):
                    answer.append(file)
            case kind:
                left_out(builder, f"a part of kind {kind!r}")
    return answer


# Writing -------------------------------------------------------------------------------------------------------------


def write_pydantic_ai(history: Sequence[RequestMessage], files: Mapping[str, bytes]) -> list[Json]:
    """Write a history as the JSON of `ModelMessagesTypeAdapter`."""
    ids = ExportedCallIds(history)
    messages: list[Json] = []
    for message in history:
        if message.role == "assistant":
            parts = [_write_answer_part(part, ids, files) for part in message.parts]
            messages.append({"kind": "response", "parts": parts})
        elif message.role == "tool":
            parts = [_write_result(part, ids) for part in message.parts if isinstance(part, RequestResult)]
            messages.append({"kind": "request", "parts": parts})
        else:
            content = [
                _write_file(part, files) if isinstance(part, FilePart) else plain_text(part) for part in message.parts
            ]
            text = content[0] if len(content) == 1 and isinstance(content[0], str) else content
            messages.append({"kind": "request", "parts": [{"part_kind": "user-prompt", "content": text}]})
    return messages


def _write_result(result: RequestResult, ids: ExportedCallIds) -> Json:
    return {
        "part_kind": "tool-return",
        "tool_name": result.name,
        "content": result.text,
        "tool_call_id": ids[result.call],
        "outcome": "failed" if result.is_error else "success",
    }


def _write_answer_part(part: object, ids: ExportedCallIds, files: Mapping[str, bytes]) -> Json:
    match part:
        case RequestCall(call=call, name=name, arguments=arguments):
            return {"part_kind": "tool-call", "tool_name": name, "args": arguments, "tool_call_id": ids[call]}
        case ReasoningPart(text=text):
            return {"part_kind": "thinking", "content": text}
        case FilePart():
            file = _write_file(part, files)
            if isinstance(file, str):
                return {"part_kind": "text", "content": file}
            return {"part_kind": "file", "content": file}
        case TextPart(text=text):
            return {"part_kind": "text", "content": text}
        case ProviderToolPart():
            return {"part_kind": "text", "content": provider_tool_note(part)}
        case _:
            return {"part_kind": "text", "content": ""}


def _write_file(file: FilePart, files: Mapping[str, bytes]) -> Json | str:
    content = files.get(file.blob)
    if content is None:
        return file_note(file)
    return {"kind": "binary", "data": base64.b64encode(content).decode(), "media_type": file.media_type}
