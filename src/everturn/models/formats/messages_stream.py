"""Anthropic Messages stream: decodes its events into chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.canonical_json import encode_canonical, parse_object
from everturn.core.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    FinishChunk,
    OpaqueChunk,
    ProviderToolChunk,
    ReasoningChunk,
    TextChunk,
    TextEndChunk,
    UsageChunk,
)
from everturn.core.parts import Finish, Opaque, Usage
from everturn.models.failures import stream_error
from everturn.models.formats import messages_server_tools as server_tools
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently, truncated_error
from everturn.models.profile import Origin, Profile

FINISHES: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "paused",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class _MessagesDelta(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None
    citation: dict[str, Any] | None = None


class _MessagesBlock(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    citations: Any = None


class _ServerToolUsage(Struct, gc=False):
    web_search_requests: int | None = None
    web_fetch_requests: int | None = None


class _MessagesUsage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    server_tool_use: _ServerToolUsage | None = None


class _MessagesMessage(Struct, gc=False):
    usage: _MessagesUsage | None = None


class _MessagesEvent(Struct, gc=False):
    type: str = ""
    index: int | None = None
    delta: _MessagesDelta | None = None
    content_block: _MessagesBlock | None = None
    message: _MessagesMessage | None = None
    usage: _MessagesUsage | None = None
    error: Any = None


class _RawStart(Struct, gc=False):
    content_block: dict[str, Any] = {}


_decode = msgspec.json.Decoder(_MessagesEvent).decode


class MessagesDecoder:
    """Decodes one answer. Content blocks arrive one after the other, and each has a stop event."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._slots: dict[int, int] = {}  # the block of a call -> its slot
        self._signature: list[str] = []
        self._is_after_text = False  # the last block was a text
        self._text_size = 0  # of the text block that streams
        self._citations: list[dict[str, Any]] = []  # of that block
        self._start_event = b""  # the event that started the last block
        self._server_calls = 0
        self._server_call: tuple[dict[str, Any], list[str]] | None = None  # the call that streams, and its input
        self._usage = _MessagesUsage()
        self._stop = ""
        self.is_done = False
        self._readers: Mapping[str, Callable[[_MessagesEvent, list[Chunk]], None]] = {
            "content_block_delta": self._grow,
            "content_block_start": self._start,
            "content_block_stop": self._seal,
            "message_start": self._begin,
            "message_delta": self._tell,
            "message_stop": self._stop_reading,
        }

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Decode one event."""
        try:
            event = _decode(data)
        except DECODE_ERRORS:
            event = decode_leniently(data, _MessagesEvent)
        if event.type == "content_block_start":
            self._start_event = data
        read = self._readers.get(event.type)
        if read is not None:
            read(event, out)
        elif event.type == "error" or event.error:  # a proxy sends errors in its own form
            raise stream_error(event.error or "an error without a word", self._origin.names)

    def end(self, out: list[Chunk]) -> None:
        """End the stream: append the usage and the finish reason."""
        if (usage := _to_usage(self._usage)) != Usage():
            # The API reports searches and pages, and not the runs of code.
            out.append(UsageChunk(replace(usage, provider_calls=max(usage.provider_calls, self._server_calls))))
        if not self._stop:
            raise truncated_error()
        reason: Finish = FINISHES.get(self._stop, "other")
        if reason == "stop" and self._slots:
            reason = "tool_calls"
        out.append(FinishChunk(reason, self._stop))

    def _begin(self, event: _MessagesEvent, out: list[Chunk]) -> None:
        if event.message is not None and event.message.usage is not None:
            self._count(event.message.usage)
            out.append(
                UsageChunk(_to_usage(self._usage))
            )  # now, because the stream may break off before the next usage

    def _tell(self, event: _MessagesEvent, _: list[Chunk]) -> None:
        self._count(event.usage)
        if event.delta is not None and event.delta.stop_reason:
            self._stop = event.delta.stop_reason

    def _stop_reading(self, _event: _MessagesEvent, _: list[Chunk]) -> None:
        self.is_done = True

    def _start(self, event: _MessagesEvent, out: list[Chunk]) -> None:
        block = event.content_block or _MessagesBlock()
        match block.type:
            case "tool_use":
                slot = self._slots[event.index or 0] = len(self._slots)
                name = block.name or ""
                # The input is {} here and is streamed; a server that sends it whole sends it only here.
                whole = encode_canonical(block.input) if block.input else ""
                out.append(CallChunk(slot, whole, self._names.get(name, name), block.id or ""))
            case "text":
                if self._is_after_text:  # its citations are those of this block alone
                    out.append(TextEndChunk())
                self._text_size = len(block.text or "")
                self._citations = list(block.citations or ())
                if block.text:
                    out.append(TextChunk(block.text))
            case "thinking":
                self._signature = [block.signature] if block.signature else []
                if block.thinking:
                    out.append(ReasoningChunk(block.thinking))
            case "redacted_thinking":
                sealed = encode_canonical({"type": "redacted_thinking", "data": block.data or ""})
                out.append(OpaqueChunk(Opaque(self._origin.issuer, sealed), "reasoning"))
            case server_tools.CALL:
                self._server_call = self._raw_block(), []
            case kind if kind in server_tools.RESULTS:
                out.append(ProviderToolChunk(server_tools.read_result(self._raw_block(), self._origin.issuer)))
            case _:
                pass
        self._is_after_text = block.type == "text"

    def _raw_block(self) -> dict[str, Any]:
        """The last block as it was sent: it has to go back like this."""
        return decode_leniently(self._start_event, _RawStart).content_block

    def _grow(self, event: _MessagesEvent, out: list[Chunk]) -> None:
        delta = event.delta or _MessagesDelta()
        if delta.text:
            out.append(TextChunk(delta.text))
            self._text_size += len(delta.text)
        elif delta.partial_json:
            if self._server_call is not None:
                self._server_call[1].append(delta.partial_json)
            if (slot := self._slots.get(event.index or 0)) is not None:
                out.append(CallChunk(slot, delta.partial_json))
        elif delta.thinking:
            out.append(ReasoningChunk(delta.thinking))
        elif delta.signature:
            self._signature.append(delta.signature)
        elif delta.citation:
            self._citations.append(delta.citation)

    def _seal(self, _: _MessagesEvent, out: list[Chunk]) -> None:
        if self._signature:
            sealed = encode_canonical({"signature": "".join(self._signature)})
            out.append(OpaqueChunk(Opaque(self._origin.issuer, sealed), "reasoning"))
            self._signature = []
        if self._citations:
            out += [CitationChunk(server_tools.read_citation(raw, self._text_size)) for raw in self._citations]
            sealed = encode_canonical({"citations": self._citations})
            out.append(OpaqueChunk(Opaque(self._origin.issuer, sealed), "text"))
            self._citations = []
        if self._server_call is not None:
            block, pieces = self._server_call
            self._server_call = None
            if pieces:
                block["input"] = parse_object("".join(pieces)) or {}
            self._server_calls += 1
            out.append(ProviderToolChunk(server_tools.read_call(block, self._origin.issuer)))

    def _count(self, usage: _MessagesUsage | None) -> None:
        """Merge usage: later events have new totals, and leave other fields out."""
        for field in _MessagesUsage.__struct_fields__ if usage is not None else ():
            if (count := getattr(usage, field)) is not None:
                setattr(self._usage, field, count)


def _to_usage(usage: _MessagesUsage) -> Usage:
    """Convert usage: Anthropic counts cached tokens beside the input, others as a part of it."""
    used = usage.server_tool_use
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage(
        input=(usage.input_tokens or 0) + cached + written,
        output=usage.output_tokens or 0,
        cached=cached,
        written=written,
        provider_calls=(used.web_search_requests or 0) + (used.web_fetch_requests or 0) if used is not None else 0,
        web_searches=(used.web_search_requests or 0) if used is not None else 0,
    )
