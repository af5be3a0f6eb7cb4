"""OpenAI: reads Chat Completions messages and Responses items, and writes Chat Completions messages.

Chat Completions has no field for a failed call: its result is a text like any other, so an export does not keep which
calls failed.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

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
    data_url,
    file_from_base64,
    file_from_url,
    file_note,
    left_out,
    plain_text,
    text_part,
)
from everturn.message_formats.conversation import AnswerPart, ConversationBuilder, ImportedCall, UserPart
from everturn.models.formats.files import AUDIO, IMAGES

TEXT_TYPES: Final = frozenset(("text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text"))
_AUDIO_TYPES: Final = {"wav": "audio/wav", "mp3": "audio/mpeg"}


def read_openai(messages: Iterable[object], builder: ConversationBuilder) -> None:
    """Read Chat Completions messages, Responses items, or both mixed.

    Raises:
        ConfigError: something in the list is not a message.
    """
    for position, item in enumerate(messages):
        builder.position = position
        message = as_object(item, position)
        if message.get("role") is None and "type" in message:
            _read_item(message, builder)
        else:
            _read_message(message, builder)


def _read_message(message: Json, builder: ConversationBuilder) -> None:
    content = message.get("content")
    match message.get("role"):
        case "system" | "developer":
            builder.add_system(_text_of(content))
        case "user":
            builder.add_user(_user_parts(content, builder))
        case "assistant":
            builder.add_answer(_answer_parts(message, builder))
        case "tool" | "function":
            name = as_text(message.get("name"))
            _read_result(as_text(message.get("tool_call_id")), content, builder, name)
        case role:
            raise ConfigError(
                f"message {builder.position} has the role {role!r}; OpenAI has system, developer, user, assistant and tool"
            )


def _read_item(item: Json, builder: ConversationBuilder) -> None:
    """Read an item of the Responses API that has no role."""
    call = as_text(item.get("call_id") or item.get("id"))
    match item.get("type"):
        case "function_call":
            builder.add_answer([_call(call, item.get("name"), item.get("arguments"))])
        case "custom_tool_call":
            builder.add_answer([_call(call, item.get("name"), {"input": item.get("input")})])
        case "function_call_output" | "custom_tool_call_output":
            _read_result(call, item.get("output"), builder)
        case "reasoning":
            texts = [*as_list(item.get("summary")), *as_list(item.get("content"))]
            builder.add_answer([ReasoningPart(as_text(text.get("text"))) for text in texts])
        case kind:
            builder.warn(f"an item of type {kind!r} was left out")


def _read_result(call: str, content: object, builder: ConversationBuilder, name: str = "") -> None:
    parts = as_list(content)
    if not parts or any("type" not in part for part in parts):
        builder.add_result(call, as_text(content), name=name)
        return
    read = [_user_part(part, builder) for part in parts]
    texts = [part.text for part in read if not isinstance(part, FilePart)]
    builder.add_result(call, "".join(texts), name=name, files=[part for part in read if isinstance(part, FilePart)])


def _text_of(content: object) -> str:
    if content is None or isinstance(content, str):
        return as_text(content)
    parts = as_list(content)
    if not parts or any(part.get("type") not in TEXT_TYPES for part in parts):
        return as_text(content)
    return "".join(as_text(part.get("text", part.get("refusal"))) for part in parts)


def _user_parts(content: object, builder: ConversationBuilder) -> list[UserPart]:
    if content is None or isinstance(content, str):
        return [text_part(content)]
    return [_user_part(part, builder) for part in as_list(content)]


def _user_part(part: Json, builder: ConversationBuilder) -> UserPart:
    kind = part.get("type")
    if kind in TEXT_TYPES:
        return text_part(part.get("text", part.get("refusal")))
    if kind in ("image_url", "input_image"):
        image = part.get("image_url")
        return file_from_url(builder, as_mapping(image).get("url", image), "an image")
    if kind == "input_audio" and (audio := as_mapping(part.get("input_audio"))):
        media_type = _AUDIO_TYPES.get(as_text(audio.get("format")), "")
        return file_from_base64(builder, audio.get("data"), media_type, "audio")
    if kind in ("file", "input_file"):
        file = as_mapping(part.get("file", part))
        if file.get("file_data") is not None:
            return file_from_url(builder, file["file_data"], "a file", as_text(file.get("filename")))
        return left_out(builder, "a file that is stored at OpenAI")
    return left_out(builder, f"content of type {kind!r}")


def _answer_parts(message: Json, builder: ConversationBuilder) -> list[AnswerPart]:
    parts: list[AnswerPart] = []
    for key in ("reasoning_content", "reasoning"):
        if isinstance(thought := message.get(key), str):
            parts.append(ReasoningPart(as_text(thought)))
            break
    content = message.get("content")
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content):
        if part.get("type") in TEXT_TYPES:
            parts.append(text_part(part.get("text", part.get("refusal"))))
        else:
            left_out(builder, f"content of type {part.get('type')!r}")
    parts.append(text_part(message.get("refusal")))
    for call in as_list(message.get("tool_calls")):
        custom = as_mapping(call.get("custom"))
        if function := as_mapping(call.get("function")):
            parts.append(_call(as_text(call.get("id")), function.get("name"), function.get("arguments")))
        elif custom:
            parts.append(_call(as_text(call.get("id")), custom.get("name"), {"input": custom.get("input")}))
        else:
            left_out(builder, f"a call of type {call.get('type')!r}")
    if function := as_mapping(message.get("function_call")):
        parts.append(_call("", function.get("name"), function.get("arguments")))
    return parts


def _call(call: str, name: object, arguments: object) -> ImportedCall:
    return ImportedCall(call, as_text(name), as_arguments(arguments))


# Writing -------------------------------------------------------------------------------------------------------------


def write_openai(history: Sequence[RequestMessage], files: Mapping[str, bytes]) -> list[Json]:
    """Write a history as Chat Completions messages."""
    ids = ExportedCallIds(history)
    messages: list[Json] = []
    for message in history:
        if message.role == "tool":
            messages += [
                {"role": "tool", "tool_call_id": ids[part.call], "content": part.text}
                for part in message.parts
                if isinstance(part, RequestResult)
            ]
        elif message.role == "assistant":
            messages += _write_answer(message, ids)
        else:
            messages.append({"role": "user", "content": _write_user(message, files)})
    return messages


def _write_answer(message: RequestMessage, ids: ExportedCallIds) -> list[Json]:
    """Write an answer; one that is reasoning alone has no form here."""
    text = "".join(file_note(part) if isinstance(part, FilePart) else plain_text(part) for part in message.parts)
    calls = [
        {"id": ids[part.call], "type": "function", "function": {"name": part.name, "arguments": part.arguments}}
        for part in message.parts
        if isinstance(part, RequestCall)
    ]
    if calls:
        return [{"role": "assistant", "content": text or None, "tool_calls": calls}]
    return [{"role": "assistant", "content": text}] if text else []


def _write_user(message: RequestMessage, files: Mapping[str, bytes]) -> str | list[Json]:
    if not any(isinstance(part, FilePart) for part in message.parts) and len(message.parts) == 1:
        return plain_text(message.parts[0])
    return [
        _write_file(part, files) if isinstance(part, FilePart) else {"type": "text", "text": plain_text(part)}
        for part in message.parts
    ]


def _write_file(file: FilePart, files: Mapping[str, bytes]) -> Json:
    content = files.get(file.blob)
    if content is None:
        return {"type": "text", "text": file_note(file)}
    if file.media_type in IMAGES:
        return {"type": "image_url", "image_url": {"url": data_url(file, content)}}
    if file.media_type in AUDIO:
        audio = {"data": base64.b64encode(content).decode(), "format": AUDIO[file.media_type]}
        return {"type": "input_audio", "input_audio": audio}
    return {"type": "file", "file": {"filename": file.name or "file", "file_data": data_url(file, content)}}
