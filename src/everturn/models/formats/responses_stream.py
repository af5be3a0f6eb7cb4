"""OpenAI Responses stream: decodes its events into chunks."""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
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
    TextEndChunk,
    UsageChunk,
)
from everturn.core.parts import Finish, Opaque, ProviderToolPart, Usage
from everturn.models.failures import stream_error
from everturn.models.formats import responses_server_tools as hosted_tools
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently, truncated_error
from everturn.models.profile import Origin, Profile

_INCOMPLETE: Mapping[str, Finish] = {"max_output_tokens": "length", "content_filter": "content_filter"}


class _ResponsesUsageDetails(Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None  # of models that charge for it
    reasoning_tokens: int | None = None


class _ResponsesUsage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _ResponsesUsageDetails | None = None
    output_tokens_details: _ResponsesUsageDetails | None = None


class _Incomplete(Struct, gc=False):
    reason: str | None = None


class _Response(Struct, gc=False):
    usage: _ResponsesUsage | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None


class _ResponsesEvent(Struct, gc=False):
    type: str = ""
    delta: Any = None
    output_index: int | None = None
    summary_index: int | None = None
    item: dict[str, Any] | None = None
    annotation: dict[str, Any] | None = None
    response: _Response | None = None
    error: Any = None
    message: Any = None
    code: Any = None


_decode = msgspec.json.Decoder(_ResponsesEvent).decode


class ResponsesDecoder:
    """Decodes one answer: items, each of which is added, streamed and done."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._slots: dict[int, int] = {}  # output index of a call -> its slot
        self._grown: set[int] = set()  # the slots whose arguments were streamed
        self._has_refused = False
        self._is_after_text = False  # the last item was a text
        self._hosted_calls = 0
        self._fees: Counter[str] = Counter()  # calls that cost a fee, by the field of the usage
        self._finish: tuple[Finish, str] | None = None
        self._usage: _ResponsesUsage | None = None
        self.is_done = False
        self._readers: Mapping[str, Callable[[_ResponsesEvent, list[Chunk]], None]] = {
            "response.output_text.delta": self._say,
            "response.function_call_arguments.delta": self._grow,
            "response.reasoning_summary_text.delta": self._reason,
            "response.reasoning_text.delta": self._reason,
            "response.reasoning_summary_part.added": self._part,
            "response.refusal.delta": self._refuse,
            "response.output_text.annotation.added": self._cite,
            "response.output_item.added": self._item,
            "response.output_item.done": self._item,
            "response.completed": self._complete,
            "response.incomplete": self._break_off,
            "response.failed": self._fail,
        }

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Decode one event."""
        try:
            event = _decode(data)
        except DECODE_ERRORS:
            event = decode_leniently(data, _ResponsesEvent)
        read = self._readers.get(event.type)
        if read is not None:
            read(event, out)
        elif event.type == "error" or event.error:
            raise stream_error(event.error or {"code": event.code, "message": event.message}, self._origin.names)

    def end(self, out: list[Chunk]) -> None:
        """End the stream: append the usage and the finish reason."""
        if self._usage is not None:
            out.append(UsageChunk(replace(_to_usage(self._usage), provider_calls=self._hosted_calls, **self._fees)))
        if self._finish is None:
            raise truncated_error()
        out.append(FinishChunk(*self._finish))

    def _grow(self, event: _ResponsesEvent, out: list[Chunk]) -> None:
        slot = self._slots.get(event.output_index or 0)
        if slot is not None and event.delta and isinstance(event.delta, str):
            self._grown.add(slot)
            out.append(CallChunk(slot, event.delta))

    def _say(self, event: _ResponsesEvent, out: list[Chunk]) -> None:
        if event.delta and isinstance(event.delta, str):
            out.append(TextChunk(event.delta))

    def _reason(self, event: _ResponsesEvent, out: list[Chunk]) -> None:
        if event.delta and isinstance(event.delta, str):
            out.append(ReasoningChunk(event.delta))

    def _part(self, event: _ResponsesEvent, out: list[Chunk]) -> None:
        if event.summary_index:
            out.append(ReasoningChunk("\n\n"))

    def _refuse(self, event: _ResponsesEvent, out: list[Chunk]) -> None:
        self._has_refused = True
        self._say(event, out)

    def _cite(self, event: _ResponsesEvent, out: list[Chunk]) -> None:
        if event.annotation is not None:
            out.append(CitationChunk(hosted_tools.read_annotation(event.annotation)))

    def _hosted(self, item: dict[str, Any], out: list[Chunk]) -> None:
        out.append(ProviderToolChunk(hosted_tools.read_item(item, self._origin.issuer)))
        self._hosted_calls += item["type"] != "mcp_list_tools"
        if field := hosted_tools.fee_of(item):
            self._fees[field] += 1
        if (image := item.get("result")) and item["type"] == "image_generation_call" and isinstance(image, str):
            media_type = f"image/{item.get('output_format') or 'png'}"
            with suppress(ValueError):
                out.append(FileChunk(b64decode(image, validate=True), media_type))

    def _item(self, event: _ResponsesEvent, out: list[Chunk]) -> None:
        index, item = event.output_index or 0, event.item or {}
        is_done = event.type == "response.output_item.done"
        match item.get("type"):
            case "message":
                if not is_done and self._is_after_text:  # its annotations count from its own beginning
                    out.append(TextEndChunk())
            case kind if kind in hosted_tools.ITEMS:
                if is_done:
                    self._hosted(item, out)
                else:  # what it was asked is said when it is done
                    part = ProviderToolPart(hosted_tools.ITEMS[item["type"]], "called", str(item.get("id") or ""))
                    out.append(ProviderToolChunk(part, is_started=True))
            case "function_call":
                if index not in self._slots:
                    self._slots[index] = len(self._slots)
                    name = str(item.get("name") or "")
                    call = str(item.get("call_id") or "")
                    out.append(CallChunk(self._slots[index], "", self._names.get(name, name), call))
                slot = self._slots[index]
                if is_done and slot not in self._grown and (whole := item.get("arguments")):
                    out.append(CallChunk(slot, whole if isinstance(whole, str) else encode_canonical(whole)))
            case "reasoning":
                if is_done and (sealed := item.get("encrypted_content")):
                    summary: Any = item.get("summary") or []  # required, even if empty
                    data = encode_canonical({"type": "reasoning", "summary": summary, "encrypted_content": sealed})
                    out.append(OpaqueChunk(Opaque(self._origin.issuer, data), "reasoning"))
            case _:
                pass
        self._is_after_text = item.get("type") == "message"

    def _complete(self, event: _ResponsesEvent, _: list[Chunk]) -> None:
        reason: Finish = "tool_calls" if self._slots else "refusal" if self._has_refused else "stop"
        self._finish_with(event, reason, "completed")

    def _break_off(self, event: _ResponsesEvent, _: list[Chunk]) -> None:
        details = event.response.incomplete_details if event.response is not None else None
        raw = (details.reason if details is not None else None) or "incomplete"
        self._finish_with(event, _INCOMPLETE.get(raw, "other"), raw)

    def _finish_with(self, event: _ResponsesEvent, reason: Finish, raw: str) -> None:
        self._usage = event.response.usage if event.response is not None else None
        self._finish = reason, raw
        self.is_done = True

    def _fail(self, event: _ResponsesEvent, _: list[Chunk]) -> None:
        error = event.response.error if event.response is not None else None
        raise stream_error(error or "the response failed without a word", self._origin.names)


def _to_usage(usage: _ResponsesUsage) -> Usage:
    input_details, output_details = usage.input_tokens_details, usage.output_tokens_details
    return Usage(
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        cached=(input_details.cached_tokens if input_details else None) or 0,
        written=(input_details.cache_write_tokens if input_details else None) or 0,
        reasoning=(output_details.reasoning_tokens if output_details else None) or 0,
    )
