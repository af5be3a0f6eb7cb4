"""Anthropic Messages stream: decodes its events into chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, Opaque, Usage
from everturn.models.failures import stream_error
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently, truncated_error
from everturn.models.profile import Origin, Profile

FINISHES: Mapping[str, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "other",
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


class _MessagesBlock(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class _MessagesUsage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


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


_decode = msgspec.json.Decoder(_MessagesEvent).decode


class MessagesDecoder:
    """Decodes one answer. Content blocks arrive one after the other, and each has a stop event."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._slots: dict[int, int] = {}  # the block of a call -> its slot
        self._signature: list[str] = []
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
        read = self._readers.get(event.type)
        if read is not None:
            read(event, out)
        elif event.type == "error" or event.error:  # a proxy sends errors in its own form
            raise stream_error(event.error or "an error without a word", self._origin.names)

    def end(self, out: list[Chunk]) -> None:
        """End the stream: append the usage and the finish reason."""
        if (usage := _to_usage(self._usage)) != Usage():
            out.append(UsageChunk(usage))
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
                if block.text:
                    out.append(TextChunk(block.text))
            case "thinking":
                self._signature = [block.signature] if block.signature else []
                if block.thinking:
                    out.append(ReasoningChunk(block.thinking))
            case "redacted_thinking":
                sealed = encode_canonical({"type": "redacted_thinking", "data": block.data or ""})
                out.append(OpaqueChunk(Opaque(self._origin.issuer, sealed), "reasoning"))
            case _:
                pass  # server-side tools are not shown

    def _grow(self, event: _MessagesEvent, out: list[Chunk]) -> None:
        delta = event.delta or _MessagesDelta()
        if delta.text:
            out.append(TextChunk(delta.text))
        elif delta.partial_json:
            if (slot := self._slots.get(event.index or 0)) is not None:
                out.append(CallChunk(slot, delta.partial_json))
        elif delta.thinking:
            out.append(ReasoningChunk(delta.thinking))
        elif delta.signature:
            self._signature.append(delta.signature)

    def _seal(self, _: _MessagesEvent, out: list[Chunk]) -> None:
        if self._signature:
            sealed = encode_canonical({"signature": "".join(self._signature)})
            out.append(OpaqueChunk(Opaque(self._origin.issuer, sealed), "reasoning"))
            self._signature = []

    def _count(self, usage: _MessagesUsage | None) -> None:
        """Merge usage: later events have new totals, and leave other fields out."""
        for field in _MessagesUsage.__struct_fields__ if usage is not None else ():
            if (count := getattr(usage, field)) is not None:
                setattr(self._usage, field, count)


def _to_usage(usage: _MessagesUsage) -> Usage:
    """Convert usage: Anthropic counts cached tokens beside the input, others as a part of it."""
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage(
        input=(usage.input_tokens or 0) + cached + written,
        output=usage.output_tokens or 0,
        cached=cached,
        written=written,
    )
