"""The events of a Gemini `streamGenerateContent` stream → chunks.

Nothing says that it is over: an answer is whole when it has told why it ended, and the connection closes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical import canonical
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from everturn.core.parts import Finish, Opaque, Usage
from everturn.errors import ModelError
from everturn.models.failures import in_band, read_error
from everturn.models.formats.loose import BROKEN, cut_off, loosely
from everturn.models.profile import Origin, Profile
from everturn.transport.limits import WHOLE, Limits
from everturn.transport.sse import SseReader

FINISHES: Mapping[str, Finish] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}  # all others (LANGUAGE, OTHER, NO_IMAGE, …) are `other`
BROKEN_CALLS = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
UNSEALED = "MISSING_THOUGHT_SIGNATURE"
UNSAID = "FINISH_REASON_UNSPECIFIED"


class _Call(Struct, gc=False, rename="camel"):
    name: str | None = None
    args: Any = None
    id: str | None = None
    partial_args: Any = None
    will_continue: bool | None = None


class _Data(Struct, gc=False, rename="camel"):
    mime_type: str | None = None
    data: bytes = b""  # base64


class _Part(Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _Call | None = None
    inline_data: _Data | None = None
    executable_code: Any = None
    code_execution_result: Any = None


class _Content(Struct, gc=False):
    parts: list[_Part] | None = None


class _Candidate(Struct, gc=False, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = None


class _Usage(Struct, gc=False, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Feedback(Struct, gc=False, rename="camel"):
    block_reason: str | None = None


class _Event(Struct, gc=False, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Usage | None = None
    prompt_feedback: _Feedback | None = None
    error: Any = None


_BARE = re.compile(rb'[\[\s]*\{\s*"error"')
_decode = msgspec.json.Decoder(_Event).decode


class GeminiReader(SseReader):
    """Reads events in which there is room for a picture, and an error that Google writes between them as it is."""

    def __init__(self, limits: Limits | None = None) -> None:
        super().__init__(limits or WHOLE)

    def _data(self, events: list[bytes]) -> list[bytes]:
        return super()._data([b"data: " + e.replace(b"\n", b" ") if _BARE.match(e) else e for e in events])


class GeminiDecoder:
    """Reads one answer. Every part comes whole but for text, and any part may hold a seal."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._calls = 0
        self._usage: _Usage | None = None
        self._finish = self._message = self._blocked = ""
        self.is_done = False

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Read one event."""
        try:
            event = _decode(data)
        except BROKEN:
            if data == b"[DONE]":  # a proxy's
                self.is_done = True
                return
            event = self._loosely(data)
        if event.error:
            raise in_band(event.error, self._origin.names)
        if event.usage_metadata is not None:
            self._count(event.usage_metadata)
        for candidate in event.candidates or ():
            if candidate.index:
                continue  # somebody asked for several answers; a turn has one
            if candidate.content is not None:
                for part in candidate.content.parts or ():
                    if part.text and not part.thought and part.thought_signature is None:  # what nearly every one is
                        out.append(TextChunk(part.text))
                    else:
                        self._take(part, out)
            if candidate.finish_reason and candidate.finish_reason != UNSAID:
                self._end_with(candidate.finish_reason, candidate.finish_message or "")
        if event.prompt_feedback is not None and event.prompt_feedback.block_reason:
            self._blocked = event.prompt_feedback.block_reason

    def end(self, out: list[Chunk]) -> None:
        """The stream is over."""
        if self._usage is not None:
            out.append(UsageChunk(_counted(self._usage)))
        if not self._finish:
            if self._blocked:  # the question was refused, and there is no answer
                out.append(FinishChunk("content_filter", self._blocked))
                return
            raise cut_off()
        if self._finish in BROKEN_CALLS:  # the model is told, as of any call that went wrong, and tries again
            out.append(CallChunk(self._calls, self._message or self._finish, "malformed_call"))
            out.append(FinishChunk("tool_calls", self._finish))
            return
        reason: Finish = FINISHES.get(self._finish, "other")
        out.append(FinishChunk("tool_calls" if reason == "stop" and self._calls else reason, self._finish))

    def _loosely(self, data: bytes) -> _Event:
        if data.lstrip().startswith(b"["):  # Google's errors come in lists, too
            code, text = read_error(data)
            if code or text:
                raise in_band({"code": code, "message": text}, self._origin.names)
        return loosely(data, _Event)

    def _end_with(self, reason: str, message: str) -> None:
        if reason == UNSEALED:
            raise in_band({"code": 400, "message": f"thought_signature: {message or reason}"}, self._origin.names)
        self._finish, self._message = reason, message or self._message

    def _take(self, part: _Part, out: list[Chunk]) -> None:
        if part.text:
            out.append((ReasoningChunk if part.thought else TextChunk)(part.text))
        elif part.function_call is not None:
            self._call(part.function_call, out)
        elif part.inline_data is not None:
            if part.thought or not part.inline_data.data:
                return  # a draft on the way to the picture
            out.append(FileChunk(part.inline_data.data, part.inline_data.mime_type or "application/octet-stream"))
        elif part.executable_code is not None or part.code_execution_result is not None:
            return  # what a server's own tools do is not ours to show; the model says what came of it
        if part.thought_signature:
            self._seal(part, part.thought_signature, out)

    def _seal(self, part: _Part, signature: str, out: list[Chunk]) -> None:
        sealed: dict[str, str] = {"thoughtSignature": signature}
        if part.inline_data is not None and not part.text:
            sealed["on"] = "file"  # it holds no seal with us, so an empty text behind it does
        opaque = Opaque(self._origin.issuer, canonical(sealed))
        if part.function_call is not None and not part.text:
            out.append(OpaqueChunk(opaque, "call", self._calls - 1))
        else:
            out.append(OpaqueChunk(opaque, "reasoning" if part.thought else "text"))

    def _call(self, call: _Call, out: list[Chunk]) -> None:
        if call.partial_args or call.will_continue:
            raise ModelError(
                "the server sends the arguments of a call in pieces, which it does only when asked to; "
                "leave `streamFunctionCallArguments` out",
                kind="response",
            )
        name, args = call.name or "", call.args
        arguments = args if isinstance(args, str) else canonical({} if args is None else args)
        out.append(CallChunk(self._calls, arguments, self._names.get(name, name), call.id or ""))
        self._calls += 1

    def _count(self, usage: _Usage) -> None:
        """Take what is told: each event counts anew, and may leave out what it does not count."""
        before = self._usage
        if before is not None:
            if usage.prompt_token_count is None:
                usage.prompt_token_count = before.prompt_token_count
            if usage.candidates_token_count is None:
                usage.candidates_token_count = before.candidates_token_count
            if usage.thoughts_token_count is None:
                usage.thoughts_token_count = before.thoughts_token_count
            if usage.cached_content_token_count is None:
                usage.cached_content_token_count = before.cached_content_token_count
            if usage.tool_use_prompt_token_count is None:
                usage.tool_use_prompt_token_count = before.tool_use_prompt_token_count
        self._usage = usage


def _counted(usage: _Usage) -> Usage:
    """Sum it up: here thoughts are counted beside the answer, and what its own tools read beside the question."""
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        input=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        output=(usage.candidates_token_count or 0) + thoughts,
        cached=usage.cached_content_token_count or 0,
        reasoning=thoughts,
    )
