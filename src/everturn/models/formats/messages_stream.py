"""The events of an Anthropic Messages stream → chunks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from everturn.core.canonical import canonical
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, Opaque, Usage
from everturn.models.failures import in_band
from everturn.models.formats.loose import BROKEN, cut_off, loosely
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


class _Delta(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Block(Struct, gc=False):
    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Message(Struct, gc=False):
    usage: _Usage | None = None


class _Event(Struct, gc=False):
    type: str = ""
    index: int | None = None
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_Event).decode


class MessagesDecoder:
    """Reads one answer. Blocks come one after the other, and each says when it stops."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._slots: dict[int, int] = {}  # the block of a call -> its slot
        self._signature: list[str] = []
        self._usage = _Usage()
        self._stop = ""
        self.is_done = False
        self._readers: Mapping[str, Callable[[_Event, list[Chunk]], None]] = {
            "content_block_delta": self._grow,
            "content_block_start": self._start,
            "content_block_stop": self._seal,
            "message_start": self._begin,
            "message_delta": self._tell,
            "message_stop": self._stop_reading,
        }

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Read one event."""
        try:
            event = _decode(data)
        except BROKEN:
            event = loosely(data, _Event)
        read = self._readers.get(event.type)
        if read is not None:
            read(event, out)
        elif event.type == "error" or event.error:  # the second is a proxy's, in its own form
            raise in_band(event.error or "an error without a word", self._origin.names)

    def end(self, out: list[Chunk]) -> None:
        """The stream is over."""
        if (usage := _counted(self._usage)) != Usage():
            out.append(UsageChunk(usage))
        if not self._stop:
            raise cut_off()
        reason: Finish = FINISHES.get(self._stop, "other")
        if reason == "stop" and self._slots:
            reason = "tool_calls"
        out.append(FinishChunk(reason, self._stop))

    def _begin(self, event: _Event, out: list[Chunk]) -> None:
        if event.message is not None and event.message.usage is not None:
            self._count(event.message.usage)
            out.append(UsageChunk(_counted(self._usage)))  # now, for it may break off before it is told again

    def _tell(self, event: _Event, _: list[Chunk]) -> None:
        self._count(event.usage)
        if event.delta is not None and event.delta.stop_reason:
            self._stop = event.delta.stop_reason

    def _stop_reading(self, _event: _Event, _: list[Chunk]) -> None:
        self.is_done = True

    def _start(self, event: _Event, out: list[Chunk]) -> None:
        block = event.content_block or _Block()
        match block.type:
            case "tool_use":
                slot = self._slots[event.index or 0] = len(self._slots)
                name = block.name or ""
                # The input is {} here and streams on; a server that sends it whole sends it only here.
                whole = canonical(block.input) if block.input else ""
                out.append(CallChunk(slot, whole, self._names.get(name, name), block.id or ""))
            case "text":
                if block.text:
                    out.append(TextChunk(block.text))
            case "thinking":
                self._signature = [block.signature] if block.signature else []
                if block.thinking:
                    out.append(ReasoningChunk(block.thinking))
            case "redacted_thinking":
                sealed = canonical({"type": "redacted_thinking", "data": block.data or ""})
                out.append(OpaqueChunk(Opaque(self._origin.issuer, sealed), "reasoning"))
            case _:
                pass  # what a server's own tools do is not ours to show

    def _grow(self, event: _Event, out: list[Chunk]) -> None:
        delta = event.delta or _Delta()
        if delta.text:
            out.append(TextChunk(delta.text))
        elif delta.partial_json:
            if (slot := self._slots.get(event.index or 0)) is not None:
                out.append(CallChunk(slot, delta.partial_json))
        elif delta.thinking:
            out.append(ReasoningChunk(delta.thinking))
        elif delta.signature:
            self._signature.append(delta.signature)

    def _seal(self, _: _Event, out: list[Chunk]) -> None:
        if self._signature:
            sealed = canonical({"signature": "".join(self._signature)})
            out.append(OpaqueChunk(Opaque(self._origin.issuer, sealed), "reasoning"))
            self._signature = []

    def _count(self, usage: _Usage | None) -> None:
        """Take what is told; the later events count anew, and leave out what they do not count."""
        for field in _Usage.__struct_fields__ if usage is not None else ():
            if (count := getattr(usage, field)) is not None:
                setattr(self._usage, field, count)


def _counted(usage: _Usage) -> Usage:
    """Sum it up: here the tokens of the cache are counted beside the input, elsewhere as a part of it."""
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage(
        input=(usage.input_tokens or 0) + cached + written,
        output=usage.output_tokens or 0,
        cached=cached,
        written=written,
    )
