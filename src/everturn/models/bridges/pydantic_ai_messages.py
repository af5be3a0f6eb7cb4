"""A neutral request → the messages of pydantic-ai, which takes them to any vendor.

So they keep the rules of the strictest: a user begins and ends, no text is blank, every call has its result right behind
it, and a thought goes back with its seal or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import msgspec

from everturn.core.canonical import clean
from everturn.core.history import as_object
from everturn.core.parts import FilePart, NoticePart, Opaque, ReasoningPart, TextPart
from everturn.core.requests import ModelRequest, RequestCall, RequestPart, RequestResult
from everturn.models.formats.files import as_note, as_text, handed_on, kind_of
from everturn.models.formats.names import CallIds, Names
from everturn.models.formats.tidy import NOTHING, result_text, tidy
from everturn.models.formats.words import GO_ON, notice


class Writer:
    """A neutral request → the messages of pydantic-ai."""

    def __init__(self, said: Any, request: ModelRequest, inputs: frozenset[str], issuer: str, names: Names) -> None:
        self._said, self._request, self._inputs = said, request, inputs
        self._issuer, self._names, self._ids = issuer, names, CallIds("ours")

    def messages(self) -> list[Any]:
        """All of them: a user begins and ends, and nothing is empty."""
        said = self._said
        written: list[Any] = []
        for message in handed_on(tidy(self._request.messages), self._inputs, self._request.files):
            if message.role == "assistant":
                if parts := self._assistant(message.parts):
                    written.append(said.ModelResponse(parts))
            elif message.role == "tool":
                written.append(said.ModelRequest([self._result(cast("RequestResult", part)) for part in message.parts]))
            else:
                written.append(said.ModelRequest([said.UserPromptPart(self._user(message.parts))]))
        go_on = said.ModelRequest([said.UserPromptPart(GO_ON)])
        if written and written[0].kind == "response":
            written.insert(0, go_on)
        if not written or written[-1].kind == "response":
            written.append(go_on)
        if self._request.system.strip():
            written.insert(0, said.ModelRequest([said.SystemPromptPart(clean(self._request.system))]))
        return written

    def _user(self, parts: Sequence[RequestPart]) -> Any:
        content: list[Any] = []
        for part in parts:
            match part:
                case TextPart(text=text):
                    content += [clean(text)] if text.strip() else []
                case NoticePart():
                    content.append(clean(notice(part)))
                case FilePart():
                    content.append(self._file(part))
                case _:
                    pass
        return content[0] if len(content) == 1 and isinstance(content[0], str) else content or NOTHING

    def _file(self, file: FilePart) -> Any:
        files = self._request.files
        match kind_of(file, self._inputs, files):
            case "text":
                return as_text(file, files)
            case "unread":
                return as_note(file)
            case _:
                return self._said.BinaryContent(files[file.blob], media_type=file.media_type)

    def _assistant(self, parts: Sequence[RequestPart]) -> list[Any]:
        written = [made for part in parts if (made := self._made(part)) is not None]
        while written and written[-1].part_kind == "thinking":
            written.pop()  # it was cut off before it came to anything; a thought may not stand last
        return written

    def _made(self, part: RequestPart) -> Any:
        said = self._said
        match part:
            case TextPart(text=text):
                return said.TextPart(clean(text.rstrip()), **self._opened(part.opaque)) if text.strip() else None
            case NoticePart():
                return said.TextPart(clean(notice(part)))
            case FilePart():
                return said.TextPart(as_note(part))
            case ReasoningPart(text=text):
                # Without its seal (another's, or cut off before it came) a thought is refused.
                opened = self._opened(part.opaque)
                return said.ThinkingPart(clean(text), **opened) if opened else None
            case RequestCall():
                name = self._names.wire(part.name)
                id = self._ids.add(part, name)
                return said.ToolCallPart(name, clean(as_object(part.arguments)), id, **self._opened(part.opaque))
            case RequestResult():
                return None

    def _opened(self, opaque: Opaque | None) -> dict[str, Any]:
        return msgspec.json.decode(opaque.data) if opaque is not None and opaque.issuer == self._issuer else {}

    def _result(self, result: RequestResult) -> Any:
        text = clean(result_text(result))
        content: Any = [text, *map(self._file, result.files)] if result.files else text
        outcome = "failed" if result.is_error else "success"
        name, id = self._names.wire(result.name), self._ids.wire(result.call)
        return self._said.ToolReturnPart(name, content, id, outcome=outcome)
