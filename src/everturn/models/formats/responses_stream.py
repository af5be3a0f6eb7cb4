"""The events of an OpenAI Responses stream → chunks."""

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

_INCOMPLETE: Mapping[str, Finish] = {"max_output_tokens": "length", "content_filter": "content_filter"}


class _Details(Struct, gc=False):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _Details | None = None
    output_tokens_details: _Details | None = None


class _Incomplete(Struct, gc=False):
    reason: str | None = None


class _Response(Struct, gc=False):
    usage: _Usage | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None


class _Event(Struct, gc=False):
    type: str = ""
    delta: Any = None
    output_index: int | None = None
    summary_index: int | None = None
    item: dict[str, Any] | None = None
    response: _Response | None = None
    error: Any = None
    message: Any = None
    code: Any = None


_decode = msgspec.json.Decoder(_Event).decode


class ResponsesDecoder:
    """Reads one answer: items, each of which is added, grows and is done."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._slots: dict[int, int] = {}  # where a call stands in the output -> its slot
        self._grown: set[int] = set()  # the slots whose arguments have streamed
        self._has_refused = False
        self._finish: tuple[Finish, str] | None = None
        self._usage: _Usage | None = None
        self.is_done = False
        self._readers: Mapping[str, Callable[[_Event, list[Chunk]], None]] = {
            "response.output_text.delta": self._say,
            "response.function_call_arguments.delta": self._grow,
            "response.reasoning_summary_text.delta": self._reason,
            "response.reasoning_text.delta": self._reason,
            "response.reasoning_summary_part.added": self._part,
            "response.refusal.delta": self._refuse,
            "response.output_item.added": self._item,
            "response.output_item.done": self._item,
            "response.completed": self._complete,
            "response.incomplete": self._break_off,
            "response.failed": self._fail,
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
        elif event.type == "error" or event.error:
            raise in_band(event.error or {"code": event.code, "message": event.message}, self._origin.names)

    def end(self, out: list[Chunk]) -> None:
        """The stream is over."""
        if self._usage is not None:
            out.append(UsageChunk(_counted(self._usage)))
        if self._finish is None:
            raise cut_off()
        out.append(FinishChunk(*self._finish))

    def _grow(self, event: _Event, out: list[Chunk]) -> None:
        slot = self._slots.get(event.output_index or 0)
        if slot is not None and event.delta and isinstance(event.delta, str):
            self._grown.add(slot)
            out.append(CallChunk(slot, event.delta))

    def _say(self, event: _Event, out: list[Chunk]) -> None:
        if event.delta and isinstance(event.delta, str):
            out.append(TextChunk(event.delta))

    def _reason(self, event: _Event, out: list[Chunk]) -> None:
        if event.delta and isinstance(event.delta, str):
            out.append(ReasoningChunk(event.delta))

    def _part(self, event: _Event, out: list[Chunk]) -> None:
        if event.summary_index:
            out.append(ReasoningChunk("\n\n"))

    def _refuse(self, event: _Event, out: list[Chunk]) -> None:
        self._has_refused = True
        self._say(event, out)

    def _item(self, event: _Event, out: list[Chunk]) -> None:
        index, item = event.output_index or 0, event.item or {}
        is_done = event.type == "response.output_item.done"
        match item.get("type"):
            case "function_call":
                if index not in self._slots:
                    self._slots[index] = len(self._slots)
                    name = str(item.get("name") or "")
                    call = str(item.get("call_id") or "")
                    out.append(CallChunk(self._slots[index], "", self._names.get(name, name), call))
                slot = self._slots[index]
                if is_done and slot not in self._grown and (whole := item.get("arguments")):
                    out.append(CallChunk(slot, whole if isinstance(whole, str) else canonical(whole)))
            case "reasoning":
                if is_done and (sealed := item.get("encrypted_content")):
                    summary: Any = item.get("summary") or []  # required, even when there is none
                    kept = canonical({"type": "reasoning", "summary": summary, "encrypted_content": sealed})
                    out.append(OpaqueChunk(Opaque(self._origin.issuer, kept), "reasoning"))
            case _:
                pass

    def _complete(self, event: _Event, _: list[Chunk]) -> None:
        reason: Finish = "tool_calls" if self._slots else "refusal" if self._has_refused else "stop"
        self._finish_with(event, reason, "completed")

    def _break_off(self, event: _Event, _: list[Chunk]) -> None:
        details = event.response.incomplete_details if event.response is not None else None
        raw = (details.reason if details is not None else None) or "incomplete"
        self._finish_with(event, _INCOMPLETE.get(raw, "other"), raw)

    def _finish_with(self, event: _Event, reason: Finish, raw: str) -> None:
        self._usage = event.response.usage if event.response is not None else None
        self._finish = reason, raw
        self.is_done = True

    def _fail(self, event: _Event, _: list[Chunk]) -> None:
        error = event.response.error if event.response is not None else None
        raise in_band(error or "the response failed without a word", self._origin.names)


def _counted(usage: _Usage) -> Usage:
    read, made = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        cached=(read.cached_tokens if read else None) or 0,
        reasoning=(made.reasoning_tokens if made else None) or 0,
    )
