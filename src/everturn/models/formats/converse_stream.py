"""Amazon Bedrock Converse stream: decodes its events into chunks. The transport has made JSON of their frames."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    FinishChunk,
    OpaqueChunk,
    ReasoningChunk,
    TextChunk,
    TextEndChunk,
    UsageChunk,
)
from everturn.core.parts import Citation, Finish, Opaque, Usage
from everturn.models.failures import stream_error
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently, truncated_error
from everturn.models.profile import Origin, Profile

FINISHES: Final[Mapping[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
# An exception in a stream → the status that it would have had as a response.
EXCEPTIONS: Final[Mapping[str, int]] = {
    "internalServerException": 500,
    "modelStreamErrorException": 500,
    "modelTimeoutException": 408,
    "serviceUnavailableException": 503,
    "throttlingException": 429,
    "validationException": 400,
}
UNMODELED: Final = "error"


class _ConverseReasoning(Struct, gc=False, rename="camel"):
    text: str | None = None
    signature: str | None = None
    redacted_content: str | None = None


class _ConverseToolUse(Struct, gc=False, rename="camel"):
    tool_use_id: str | None = None
    name: str | None = None
    input: str | None = None
    type: str | None = None


class _ConverseDelta(Struct, gc=False, rename="camel"):
    text: str | None = None
    tool_use: _ConverseToolUse | None = None
    reasoning_content: _ConverseReasoning | None = None
    citation: dict[str, Any] | None = None


class _ConverseStart(Struct, gc=False, rename="camel"):
    tool_use: _ConverseToolUse | None = None


class _ConverseBlock(Struct, gc=False, rename="camel"):
    content_block_index: int = 0
    start: _ConverseStart | None = None
    delta: _ConverseDelta | None = None


class _ConverseStop(Struct, gc=False, rename="camel"):
    stop_reason: str | None = None


class _ConverseUsage(Struct, gc=False, rename="camel"):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_write_input_tokens: int | None = None


class _ConverseMetadata(Struct, gc=False, rename="camel"):
    usage: _ConverseUsage | None = None


class _ConverseEvent(Struct, gc=False, rename="camel"):
    content_block_delta: _ConverseBlock | None = None
    content_block_start: _ConverseBlock | None = None
    content_block_stop: _ConverseBlock | None = None
    message_stop: _ConverseStop | None = None
    metadata: _ConverseMetadata | None = None


_decode = msgspec.json.Decoder(_ConverseEvent).decode


class ConverseDecoder:
    """Decodes one answer. Blocks arrive one after the other; only calls are announced, but each block has a stop."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._slots: dict[int, int] = {}  # the block of a call -> its slot
        self._signature: list[str] = []
        self._redacted: list[str] = []
        self._text_block = -1  # the last block, if it is a text
        self._text_size = 0
        self._citations: list[dict[str, Any]] = []  # of that text
        self._usage: Usage | None = None
        self._stop = ""
        self.is_done = False

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Decode one event."""
        try:
            event = _decode(data)
        except DECODE_ERRORS:
            event = decode_leniently(data, _ConverseEvent)
        if event.content_block_delta is not None:
            self._grow(event.content_block_delta, out)
        elif event.content_block_start is not None:
            self._start(event.content_block_start, out)
        elif event.content_block_stop is not None:
            self._seal(out)
        elif event.message_stop is not None:
            self._stop = event.message_stop.stop_reason or ""
        elif event.metadata is not None:
            self._usage = _read_usage(event.metadata.usage)
            self.is_done = True
        else:
            self._check_exception(data)

    def end(self, out: list[Chunk]) -> None:
        """End the stream: append the usage and the finish reason."""
        if self._usage is not None and self._usage != Usage():
            out.append(UsageChunk(self._usage))
        if not self._stop:
            raise truncated_error()
        reason: Finish = FINISHES.get(self._stop, "other")
        if reason == "stop" and self._slots:
            reason = "tool_calls"
        out.append(FinishChunk(reason, self._stop))

    def _check_exception(self, data: bytes) -> None:
        """Raise the error that an event reports; any other event is one that nobody needs."""
        event = decode_leniently(data, dict[str, Any])
        for name, value in event.items():
            fields = _object(value)
            message = fields.get("message") or fields.get("originalMessage") or name
            if name == UNMODELED:
                raise stream_error({**fields, "message": message}, self._origin.names)
            if name in EXCEPTIONS or name.endswith("Exception"):
                raise stream_error({"code": EXCEPTIONS.get(name, 500), "message": message}, self._origin.names)

    def _start(self, event: _ConverseBlock, out: list[Chunk]) -> None:
        called = event.start.tool_use if event.start is not None else None
        if called is None or called.type == "server_tool_use":  # a tool that Bedrock runs
            return
        slot = self._slots[event.content_block_index] = len(self._slots)
        name = called.name or ""
        out.append(CallChunk(slot, "", self._names.get(name, name), called.tool_use_id or ""))
        self._text_block = -1

    def _grow(self, event: _ConverseBlock, out: list[Chunk]) -> None:
        delta, index = event.delta or _ConverseDelta(), event.content_block_index
        if delta.text:
            if self._text_block not in (-1, index):
                out.append(TextEndChunk())
            if self._text_block != index:
                self._text_block, self._text_size = index, 0
            self._text_size += len(delta.text)
            out.append(TextChunk(delta.text))
        elif delta.tool_use is not None:
            if delta.tool_use.input and (slot := self._slots.get(index)) is not None:
                out.append(CallChunk(slot, delta.tool_use.input))
        elif (reasoning := delta.reasoning_content) is not None:
            self._text_block = -1
            if reasoning.text:
                out.append(ReasoningChunk(reasoning.text))
            if reasoning.signature:
                self._signature.append(reasoning.signature)
            if reasoning.redacted_content:
                self._redacted.append(reasoning.redacted_content)
        elif delta.citation is not None:
            self._citations.append(delta.citation)

    def _seal(self, out: list[Chunk]) -> None:
        """A block has ended: its signature, its redacted reasoning, its citations."""
        if self._signature:
            self._add_opaque({"signature": "".join(self._signature)}, out)
            self._signature = []
        if self._redacted:
            self._add_opaque({"type": "redacted_thinking", "data": _join_blobs(self._redacted)}, out)
            self._redacted = []
        out += [CitationChunk(_read_citation(raw, self._text_size)) for raw in self._citations]
        self._citations = []

    def _add_opaque(self, data: Mapping[str, str], out: list[Chunk]) -> None:
        out.append(OpaqueChunk(Opaque(self._origin.issuer, encode_canonical(data)), "reasoning"))


def _join_blobs(pieces: Sequence[str]) -> str:
    """Join base64 texts into that of all their bytes; what is no base64 is kept as it is."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece, validate=True) for piece in pieces)).decode()
    except ValueError:
        return "".join(pieces)


def _read_citation(raw: dict[str, Any], size: int) -> Citation:
    url = _object(_object(raw.get("location")).get("web")).get("url")
    contents = raw.get("sourceContent")
    pieces = cast("list[object]", contents) if isinstance(contents, list) else []
    quote = "".join(str(_object(piece).get("text") or "") for piece in pieces)
    return Citation(0, size, str(url or raw.get("source") or ""), str(raw.get("title") or ""), quote)


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _read_usage(usage: _ConverseUsage | None) -> Usage | None:
    """Convert usage: what was read from a cache or written to one is counted beside the input."""
    if usage is None:
        return None
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_write_input_tokens or 0
    return Usage(
        input=(usage.input_tokens or 0) + cached + written,
        output=usage.output_tokens or 0,
        cached=cached,
        written=written,
    )
