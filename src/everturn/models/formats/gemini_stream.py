"""Gemini stream: decodes the events of `streamGenerateContent` into chunks.

The stream has no end marker: an answer is complete when it has a finish reason and the connection closes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ProviderToolChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from everturn.core.parts import Finish, Opaque, Usage
from everturn.errors import ModelError
from everturn.models.failures import read_error, stream_error
from everturn.models.formats.gemini_server_tools import (
    PARTS,
    as_list,
    as_object,
    read_citations,
    read_fetches,
    read_part,
    read_searches,
)
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently, truncated_error
from everturn.models.profile import Origin, Profile
from everturn.transport.limits import WHOLE_LINE_LIMITS, StreamLimits
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
    "MODEL_ARMOR": "content_filter",
    "ESCALATION": "content_filter",
    "CONTINUATION": "length",
}  # all others (LANGUAGE, OTHER, NO_IMAGE, …) are `other`
BROKEN_CALLS = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"})
MISSING_SIGNATURE = "MISSING_THOUGHT_SIGNATURE"
UNSPECIFIED = "FINISH_REASON_UNSPECIFIED"


class _GeminiCall(Struct, gc=False, rename="camel"):
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
    function_call: _GeminiCall | None = None
    inline_data: _Data | None = None
    executable_code: Any = None
    code_execution_result: Any = None
    tool_call: Any = None
    tool_response: Any = None


class _Content(Struct, gc=False):
    parts: list[_Part] | None = None


class _Candidate(Struct, gc=False, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = None
    grounding_metadata: Any = None
    url_context_metadata: Any = None


class _GeminiUsage(Struct, gc=False, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Feedback(Struct, gc=False, rename="camel"):
    block_reason: str | None = None


class _GeminiEvent(Struct, gc=False, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _GeminiUsage | None = None
    prompt_feedback: _Feedback | None = None
    error: Any = None
    response_id: str | None = None


_BARE = re.compile(rb'[\[\s]*\{\s*"error"')
_decode = msgspec.json.Decoder(_GeminiEvent).decode


class GeminiReader(SseReader):
    """Reads SSE events large enough for an image, and the bare JSON errors that Google writes between them."""

    def __init__(self, limits: StreamLimits | None = None) -> None:
        super().__init__(limits or WHOLE_LINE_LIMITS)

    def _data(self, events: list[bytes]) -> list[bytes]:
        return super()._data([b"data: " + e.replace(b"\n", b" ") if _BARE.match(e) else e for e in events])


class GeminiDecoder:
    """Decodes one answer. All parts but text arrive whole, and any part may have a signature."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        # Gemini 2 charges for an answer with searches, later ones for each search (genai-prices 0.2.1 has both fees).
        self._is_billed_once = profile.provider_tools != "mixed"
        self._calls = 0
        self._server_parts: list[str] = []  # the names of the built-in tools that were called, in parts
        self._codes = 0  # parts with code
        self._grounding: dict[str, Any] = {}
        self._fetched: dict[str, Any] = {}
        # What was said, for the ranges of citations, in UTF-8. Not a list of pieces, nor a StringIO, which keeps up to
        # 100,000 of them: a string of one character takes 50 bytes.
        self._text = bytearray()
        self._said = 0  # characters of it
        self._runs = [0]  # where text begins, and begins again behind other parts
        self._response = ""
        self._usage: _GeminiUsage | None = None
        self._finish = self._message = self._blocked = ""
        self.is_done = False

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Decode one event."""
        try:
            event = _decode(data)
        except DECODE_ERRORS:
            if data == b"[DONE]":  # sent by a proxy
                self.is_done = True
                return
            event = self._loosely(data)
        if event.error:
            raise stream_error(event.error, self._origin.names)
        if event.usage_metadata is not None:
            self._count(event.usage_metadata)
        self._response = event.response_id or self._response
        for candidate in event.candidates or ():
            if candidate.index:
                continue  # the request asked for several answers; a turn has one
            if candidate.content is not None:
                for part in candidate.content.parts or ():
                    if part.text and not part.thought and part.thought_signature is None:  # the common case
                        self._say(part.text, out)
                    else:
                        self._take(part, out)
            self._note_metadata(candidate)
            if candidate.finish_reason and candidate.finish_reason != UNSPECIFIED:
                self._end_with(candidate.finish_reason, candidate.finish_message or "")
        if event.prompt_feedback is not None and event.prompt_feedback.block_reason:
            self._blocked = event.prompt_feedback.block_reason

    def end(self, out: list[Chunk]) -> None:
        """End the stream: append citations, the usage and the finish reason."""
        calls = self._end_tools(out)
        if self._usage is not None:
            searches = len(as_list(self._grounding.get("webSearchQueries"))) or self._server_parts.count("web_search")
            if self._is_billed_once:
                searches = min(searches, 1)
            out.append(UsageChunk(replace(_to_usage(self._usage), provider_calls=calls, web_searches=searches)))
        if not self._finish:
            if self._blocked:  # the prompt was blocked, and there is no answer
                out.append(FinishChunk("content_filter", self._blocked))
                return
            raise truncated_error()
        if self._finish in BROKEN_CALLS:  # reported to the model like any failed call, so that it tries again
            out.append(CallChunk(self._calls, self._message or self._finish, "malformed_call"))
            out.append(FinishChunk("tool_calls", self._finish))
            return
        reason: Finish = FINISHES.get(self._finish, "other")
        out.append(FinishChunk("tool_calls" if reason == "stop" and self._calls else reason, self._finish))

    def _loosely(self, data: bytes) -> _GeminiEvent:
        if data.lstrip().startswith(b"["):  # Google also sends errors in lists
            code, text = read_error(data)
            if code or text:
                raise stream_error({"code": code, "message": text}, self._origin.names)
        return decode_leniently(data, _GeminiEvent)

    def _end_with(self, reason: str, message: str) -> None:
        if reason == MISSING_SIGNATURE:
            raise stream_error({"code": 400, "message": f"thought_signature: {message or reason}"}, self._origin.names)
        self._finish, self._message = reason, message or self._message

    def _take(self, part: _Part, out: list[Chunk]) -> None:
        if part.text:
            if part.thought:
                out.append(ReasoningChunk(part.text))
            else:
                self._say(part.text, out)
        elif part.function_call is not None:
            self._call(part.function_call, out)
        elif part.inline_data is not None:
            if part.thought or not part.inline_data.data:
                return  # a draft of the image
            out.append(FileChunk(part.inline_data.data, part.inline_data.mime_type or "application/octet-stream"))
        else:
            values = (part.executable_code, part.code_execution_result, part.tool_call, part.tool_response)
            found = {name: value for name, value in zip(PARTS, values, strict=True) if value is not None}
            if found:
                self._take_tool(part, found, out)
                return
        if part.thought_signature:
            self._seal(part, part.thought_signature, out)

    def _say(self, text: str, out: list[Chunk]) -> None:
        self._text += text.encode("utf-8", "surrogatepass")
        self._said += len(text)
        out.append(TextChunk(text))

    def _take_tool(self, part: _Part, found: dict[str, Any], out: list[Chunk]) -> None:
        """A part of a built-in tool, with its signature."""
        if part.thought is not None:
            found["thought"] = part.thought
        if part.thought_signature:
            found["thoughtSignature"] = part.thought_signature
        self._codes += part.executable_code is not None
        made = read_part(found, self._origin.issuer, f"code-{self._response}-{self._codes}")
        if made.state == "called":
            self._server_parts.append(made.name)
        self._runs.append(self._said)
        out.append(ProviderToolChunk(made))

    def _note_metadata(self, candidate: _Candidate) -> None:
        """Keep metadata: any event may have some, and the last word on a field counts."""
        self._grounding |= {name: value for name, value in as_object(candidate.grounding_metadata).items() if value}
        self._fetched |= as_object(candidate.url_context_metadata)

    def _end_tools(self, out: list[Chunk]) -> int:
        """Report what only metadata says, and the citations; return how many calls there were."""
        calls, issuer = len(self._server_parts), self._origin.issuer
        if self._grounding:
            text = self._text.decode("utf-8", "surrogatepass")
            for citation in read_citations(self._grounding, text, self._runs):
                out.append(CitationChunk(citation, in_answer=True))
        for part, count in read_searches(self._grounding, issuer):
            if part.name not in self._server_parts:
                calls += count
                out.append(ProviderToolChunk(part))
        if self._fetched and "web_fetch" not in self._server_parts:
            for page in read_fetches(self._fetched, issuer):
                calls += 1
                out.append(ProviderToolChunk(page))
        return calls

    def _seal(self, part: _Part, signature: str, out: list[Chunk]) -> None:
        data: dict[str, str] = {"thoughtSignature": signature}
        if part.inline_data is not None and not part.text:
            data["on"] = "file"  # a FilePart has no opaque data, so an empty text after it has
        opaque = Opaque(self._origin.issuer, encode_canonical(data))
        if part.function_call is not None and not part.text:
            out.append(OpaqueChunk(opaque, "call", self._calls - 1))
        else:
            out.append(OpaqueChunk(opaque, "reasoning" if part.thought else "text"))

    def _call(self, call: _GeminiCall, out: list[Chunk]) -> None:
        if call.partial_args or call.will_continue:
            raise ModelError(
                "the server sends the arguments of a call in pieces; leave `streamFunctionCallArguments` out of "
                "the parameters",
                kind="response",
            )
        name, args = call.name or "", call.args
        arguments = args if isinstance(args, str) else encode_canonical({} if args is None else args)
        out.append(CallChunk(self._calls, arguments, self._names.get(name, name), call.id or ""))
        self._calls += 1

    def _count(self, usage: _GeminiUsage) -> None:
        """Merge usage: each event has new totals, and may leave fields out."""
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


def _to_usage(usage: _GeminiUsage) -> Usage:
    """Convert usage: Gemini counts thoughts beside the output, and the input of its own tools beside the prompt."""
    thoughts = usage.thoughts_token_count or 0
    return Usage(
        input=(usage.prompt_token_count or 0) + (usage.tool_use_prompt_token_count or 0),
        output=(usage.candidates_token_count or 0) + thoughts,
        cached=usage.cached_content_token_count or 0,
        reasoning=thoughts,
    )
