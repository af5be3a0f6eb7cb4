"""Pydantic AI messages: converts a neutral request into the messages of pydantic-ai, for any vendor.

So they follow the rules of the strictest: a user message begins and ends, no text is blank, every call has its result
right after it, and reasoning goes back with its signature or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from everturn.core.canonical_json import replace_surrogates
from everturn.core.history import arguments_as_object
from everturn.core.parts import FilePart, NoticePart, Opaque, ProviderToolPart, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult
from everturn.models.formats.files import as_note, as_text, file_kind, move_files_to_user
from everturn.models.formats.notices import CONTINUE, notice_text
from everturn.models.formats.provider_tools import as_text as provider_tool_as_text
from everturn.models.formats.tool_names import CallIds, ToolNames
from everturn.models.formats.valid_history import EMPTY_TEXT, repair_history, result_text


class PydanticMessageWriter:
    """Converts a neutral request into the messages of pydantic-ai; `said` is its messages module."""

    def __init__(
        self, message_types: Any, request: ModelRequest, inputs: frozenset[str], issuer: str, names: ToolNames
    ) -> None:
        self._types, self._request, self._inputs = message_types, request, inputs
        self._issuer, self._names, self._ids = issuer, names, CallIds("ours")

    def messages(self) -> list[Any]:
        """Return all messages: a user message begins and ends, and none is empty."""
        types = self._types
        written: list[Any] = []
        for message in move_files_to_user(repair_history(self._request.messages), self._inputs, self._request.files):
            if message.role == "assistant":
                if parts := self._assistant(message.parts):
                    written.append(types.ModelResponse(parts))
            elif message.role == "tool":
                written.append(
                    types.ModelRequest([self._result(cast("RequestResult", part)) for part in message.parts])
                )
            else:
                written.append(types.ModelRequest([types.UserPromptPart(self._user(message.parts))]))
        go_on = types.ModelRequest([types.UserPromptPart(CONTINUE)])
        if written and written[0].kind == "response":
            written.insert(0, go_on)
        if not written or written[-1].kind == "response":
            written.append(go_on)
        if self._request.system.strip():
            written.insert(0, types.ModelRequest([types.SystemPromptPart(replace_surrogates(self._request.system))]))
        return written

    def _user(self, parts: Sequence[RequestPart]) -> Any:
        content: list[Any] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    content += [replace_surrogates(text)] if text.strip() else []
                case NoticePart():
                    content.append(replace_surrogates(notice_text(part)))
                case FilePart():
                    content.append(self._file(part))
                case _:
                    pass
        return content[0] if len(content) == 1 and isinstance(content[0], str) else content or EMPTY_TEXT

    def _file(self, file: FilePart) -> Any:
        files = self._request.files
        match file_kind(file, self._inputs, files):
            case "text":
                return as_text(file, files)
            case "unread":
                return as_note(file)
            case _:
                return self._types.BinaryContent(files[file.blob], media_type=file.media_type)

    def _assistant(self, parts: Sequence[RequestPart]) -> list[Any]:
        written = [made for part in parts if (made := self._made(part)) is not None]
        while written and written[-1].part_kind == "thinking":
            written.pop()  # the answer was cut off; reasoning must not be last
        return written

    def _made(self, part: RequestPart) -> Any:
        types = self._types
        match part:
            case TextPart(text=text):
                return (
                    types.TextPart(replace_surrogates(text.rstrip()), **self._opened(part.opaque))
                    if text.strip()
                    else None
                )
            case NoticePart():
                return types.TextPart(replace_surrogates(notice_text(part)))
            case ProviderToolPart():
                return types.TextPart(replace_surrogates(provider_tool_as_text(part)))
            case FilePart():
                return types.TextPart(as_note(part))
            case ReasoningPart(text=text):
                # Vendors refuse reasoning without its signature (of another model, or cut off before it arrived).
                opened = self._opened(part.opaque)
                return types.ThinkingPart(replace_surrogates(text), **opened) if opened else None
            case RequestCall():
                name = self._names.wire(part.name)
                id = self._ids.add(part, name)
                return types.ToolCallPart(
                    name, replace_surrogates(arguments_as_object(part.arguments)), id, **self._opened(part.opaque)
                )
            case RequestResult():
                return None

    def _opened(self, opaque: Opaque | None) -> dict[str, Any]:
        return msgspec.json.decode(opaque.data) if opaque is not None and opaque.issuer == self._issuer else {}

    def _result(self, result: RequestResult) -> Any:
        text = replace_surrogates(result_text(result))
        content: Any = [text, *map(self._file, result.files)] if result.files else text
        outcome = "failed" if result.is_error else "success"
        name, id = self._names.wire(result.name), self._ids.wire(result.call)
        return self._types.ToolReturnPart(name, content, id, outcome=outcome)
