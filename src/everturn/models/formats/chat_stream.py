"""OpenAI Chat Completions stream: decodes its events into chunks, for every server that implements it more or less.

The hot path is `feed` with a piece of text: one decode, one chunk.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, OpaqueChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, Opaque, Usage
from everturn.models.failures import malformed_call, stream_error
from everturn.models.formats.call_slots import CallSlots
from everturn.models.formats.lenient_json import DECODE_ERRORS, decode_leniently, truncated_error
from everturn.models.formats.think_tags import ThinkTagReader
from everturn.models.profile import Origin, Profile

FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}

_PIECES = frozenset({"text", "summary", "data"})  # the streamed fields of opaque reasoning details


class _ChatFunction(Struct, gc=False):
    name: Any = None
    arguments: Any = None
    id: Any = None


class _ChatCall(Struct, gc=False):
    index: int | None = None
    id: Any = None
    function: _ChatFunction | None = None
    extra_content: Any = None


class _ChatDelta(Struct, gc=False):
    content: Any = None
    tool_calls: list[_ChatCall] | None = None
    reasoning_content: Any = None
    reasoning: Any = None
    reasoning_details: Any = None
    refusal: Any = None


class _ChatUsageDetails(Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class _ChatUsage(Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _ChatUsageDetails | None = None
    completion_tokens_details: _ChatUsageDetails | None = None
    prompt_cache_hit_tokens: int | None = None  # DeepSeek
    cached_tokens: int | None = None  # Kimi
    cost: float | None = None  # OpenRouter


class _Choice(Struct, gc=False):
    delta: _ChatDelta | None = None
    finish_reason: str | None = None
    index: int | None = 0
    usage: _ChatUsage | None = None  # Kimi


class _ChatEvent(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _ChatUsage | None = None
    error: Any = None


_decode = msgspec.json.Decoder(_ChatEvent).decode


class ChatDecoder:
    """Decodes one answer."""

    def __init__(self, profile: Profile, origin: Origin, names: Mapping[str, str]) -> None:
        self._origin, self._names = origin, names
        self._thinking = None if profile.think == "off" else ThinkTagReader(profile.think == "prefilled")
        self._slots = CallSlots()
        self._details: list[dict[str, Any]] = []
        self._usage: _ChatUsage | None = None
        self._finish = ""
        self._has_refused = False
        self.is_done = False

    def feed(self, data: bytes, out: list[Chunk]) -> None:
        """Decode one event."""
        if data == b"[DONE]":
            self.is_done = True
            return
        try:
            event = _decode(data)
        except DECODE_ERRORS:
            event = decode_leniently(data, _ChatEvent)
        if event.error:
            if (broken := malformed_call(data)) is not None:
                self._call([_ChatCall(function=_ChatFunction("malformed_call", broken))], out)
                self._finish, self.is_done = "tool_calls", True
                return
            raise stream_error(event.error, self._origin.names)
        if event.usage is not None:
            self._count(event.usage)
        for choice in event.choices or ():
            if choice.index:
                continue  # the request asked for several answers; a turn has one
            if choice.usage is not None:
                self._count(choice.usage)
            if choice.delta is not None:
                self._grow(choice.delta, out)
            if choice.finish_reason:
                if choice.finish_reason == "error":
                    raise stream_error("the provider says only: error", self._origin.names)
                self._finish = self._finish or choice.finish_reason

    def _grow(self, delta: _ChatDelta, out: list[Chunk]) -> None:
        if delta.reasoning_content or delta.reasoning or delta.reasoning_details:
            self._reason(delta, out)
        content = delta.content
        if content:
            if self._thinking is None and type(content) is str:
                out.append(TextChunk(content))
            else:
                self._say(content, out)
        if delta.tool_calls:
            self._call(delta.tool_calls, out)
        if delta.refusal and isinstance(delta.refusal, str):
            self._has_refused = True
            out.append(TextChunk(delta.refusal))

    def end(self, out: list[Chunk]) -> None:
        """End the stream: append what is pending, the usage and the finish reason."""
        if self._thinking is not None:
            self._thinking.end(out)
        if self._details:
            out.append(OpaqueChunk(Opaque(self._origin.issuer, encode_canonical(_joined(self._details))), "reasoning"))
        if self._usage is not None:
            out.append(UsageChunk(_to_usage(self._usage)))
        if not self._finish:
            raise truncated_error()
        reason: Finish = FINISHES.get(self._finish, "other")
        if reason == "stop":
            # Some servers report "stop" although there are calls; some models report a refusal only in a field.
            reason = "tool_calls" if len(self._slots) else "refusal" if self._has_refused else "stop"
        out.append(FinishChunk(reason, self._finish))

    def _count(self, usage: _ChatUsage) -> None:
        """Keep the last count: some servers send running totals, and some a zero before or after the real one."""
        if self._usage is None or usage.prompt_tokens or usage.completion_tokens:
            self._usage = usage

    def _say(self, content: object, out: list[Chunk]) -> None:
        if isinstance(content, list):  # parts, some of which may be reasoning
            for part in cast("list[Any]", content):
                if isinstance(part, dict):
                    self._say_part(cast("dict[str, Any]", part), out)
        elif isinstance(content, str):
            thinking = self._thinking
            if thinking is None:
                out.append(TextChunk(content))
                return
            thinking.feed(content, out)
            if thinking.is_over:
                self._thinking = None

    def _say_part(self, part: dict[str, Any], out: list[Chunk]) -> None:
        if isinstance(text := part.get("text"), str):
            out.append(TextChunk(text))
        thought = part.get("thinking")
        for piece in cast("list[Any]", thought) if isinstance(thought, list) else (thought,):
            text = cast("dict[str, Any]", piece).get("text") if isinstance(piece, dict) else piece
            if isinstance(text, str):
                out.append(ReasoningChunk(text))

    def _reason(self, delta: _ChatDelta, out: list[Chunk]) -> None:
        """Read reasoning from its own fields; where two fields have it, they have the same."""
        if self._thinking is not None:
            self._thinking.end(out)  # then think tags in the text are plain text
            self._thinking = None
        text = delta.reasoning_content or delta.reasoning
        if text and isinstance(text, str):
            out.append(ReasoningChunk(text))
        details: object = delta.reasoning_details
        if isinstance(details, list):
            for detail in cast("list[Any]", details):
                if isinstance(detail, dict):
                    self._keep(cast("dict[str, Any]", detail))

    def _keep(self, detail: dict[str, Any]) -> None:
        """Join the pieces of opaque reasoning: the next request must send them back as one."""
        pieces = {key: [value] if key in _PIECES and isinstance(value, str) else value for key, value in detail.items()}
        last = self._details[-1] if self._details else None
        is_other = last is None or (last.get("type"), last.get("index")) != (detail.get("type"), detail.get("index"))
        if last is None or is_other or (detail.get("id") and last.get("id") and detail["id"] != last["id"]):
            self._details.append(pieces)
            return
        for key, value in pieces.items():
            if isinstance(value, list) and isinstance(last.get(key), list):
                last[key] += value
            elif value is not None:
                last[key] = value

    def _call(self, calls: list[_ChatCall], out: list[Chunk]) -> None:
        for call in calls:
            function = call.function
            if function is None:
                continue
            arguments, name = function.arguments, function.name
            if type(arguments) is not str:
                arguments = "" if arguments is None else encode_canonical(arguments)
            name = self._named(name) if name and isinstance(name, str) else ""
            call_id = call.id or function.id or ""
            if type(call_id) is not str:
                call_id = str(call_id)
            slot = self._slots.find(call.index, call_id, name, arguments)
            out.append(CallChunk(slot, arguments, name, call_id))
            if call.extra_content is not None:
                opaque = Opaque(self._origin.issuer, encode_canonical(call.extra_content))
                out.append(OpaqueChunk(opaque, "call", slot))

    def _named(self, name: str) -> str:
        # gpt-oss servers leak the channel into the name: `search<|channel|>commentary`.
        name = name.split("<|", 1)[0].strip()
        return self._names.get(name, name)


def _joined(details: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            key: "".join(map(str, cast("list[Any]", value))) if key in _PIECES and isinstance(value, list) else value
            for key, value in detail.items()
        }
        for detail in details
    ]


def _to_usage(usage: _ChatUsage) -> Usage:
    prompt_details, completion_details = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input=usage.prompt_tokens or 0,
        output=usage.completion_tokens or 0,
        cached=(prompt_details.cached_tokens if prompt_details else None)
        or usage.prompt_cache_hit_tokens
        or usage.cached_tokens
        or 0,
        reasoning=(completion_details.reasoning_tokens if completion_details else None) or 0,
        written=(prompt_details.cache_write_tokens if prompt_details else None) or 0,
        cost=usage.cost,
    )
