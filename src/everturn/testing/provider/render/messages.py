"""Anthropic Messages writer: renders an answer as events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from everturn.testing.provider.answers import StreamChunk
from everturn.testing.provider.render.answer import AnswerBlock, Ending, Kind, seeded_token
from everturn.testing.provider.script import Cite, HostedTool, InBandError, ScriptedUsage
from everturn.testing.provider.server_tools import call_block, citation, result_block
from everturn.testing.provider.signatures import seal_reasoning, sign

_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "paused": "pause_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
_SHOWN: frozenset[Kind] = frozenset({"text", "refusal", "call", "server", "cited"})
_THOUGHT: frozenset[Kind] = frozenset({"thinking", "redacted"})


class MessagesWriter:
    """Writes content blocks; thinking is signed, and left out unless the request enabled it."""

    def __init__(self, model: str, ending: Ending, *, with_thinking: bool) -> None:
        self._model, self._ending = model, ending
        self._is_pinged = False
        self._server_calls: Counter[str] = Counter()
        self._kinds = _SHOWN | _THOUGHT if with_thinking else _SHOWN

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of blocks that are shown."""
        return self._kinds

    def start(self) -> Iterator[StreamChunk]:
        """`message_start`, with the tokens of the prompt."""
        message: dict[str, Any] = {
            "id": "msg_01" + seeded_token(self._model, 22),
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {**_usage(self._ending.usage), "output_tokens": 1, "service_tier": "standard"},
        }
        yield _event({"type": "message_start", "message": message})

    def open(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """`content_block_start`, and a ping behind the first."""
        yield _event({"type": "content_block_start", "index": block.index, "content_block": self._empty(block)})
        if not self._is_pinged:
            self._is_pinged = True
            yield _event({"type": "ping"})
        if block.kind == "call" or (isinstance(block.item, HostedTool) and block.item.part == "call"):
            if block.kind == "server":
                self._server_calls[block.name] += 1
            yield self._delta(block, {"type": "input_json_delta", "partial_json": ""}, is_beat=False)

    def piece(self, block: AnswerBlock, text: str) -> Iterator[StreamChunk]:
        """One delta."""
        match block.kind:
            case "thinking":
                yield self._delta(block, {"type": "thinking_delta", "thinking": text})
            case "call" | "server":
                yield self._delta(block, {"type": "input_json_delta", "partial_json": text})
            case _:
                yield self._delta(block, {"type": "text_delta", "text": text})

    def close(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """The signature of thinking or the citation of a text, and `content_block_stop`."""
        if isinstance(block.item, Cite):
            found = citation(block.item, self._model)
            yield self._delta(block, {"type": "citations_delta", "citation": found}, is_beat=False)
        if block.kind == "thinking":
            signature = sign(self._model, block.text)
            yield self._delta(block, {"type": "signature_delta", "signature": signature}, is_beat=False)
        yield _event({"type": "content_block_stop", "index": block.index})

    def fail(self, error: InBandError) -> Iterator[StreamChunk]:
        """An `error` event, and nothing behind it."""
        body = {"type": error.kind or "overloaded_error", "message": error.message}
        yield _event({"type": "error", "error": body, "request_id": "req_011CSHoEeqs5C35K2UUqR7Fy"}, is_beat=True)

    def finish(self) -> Iterator[StreamChunk]:
        """`message_delta` with the stop reason and the tokens so far, and `message_stop`."""
        delta = {"stop_reason": _REASONS[self._ending.reason], "stop_sequence": None}
        usage = _usage(self._ending.usage)
        if self._server_calls:
            searches, pages = self._server_calls["web_search"], self._server_calls["web_fetch"]
            usage["server_tool_use"] = {"web_search_requests": searches, "web_fetch_requests": pages}
        yield _event({"type": "message_delta", "delta": delta, "usage": usage}, is_beat=True)
        yield _event({"type": "message_stop"})

    def _empty(self, block: AnswerBlock) -> dict[str, Any]:
        match block.kind:
            case "thinking":
                return {"type": "thinking", "thinking": "", "signature": ""}
            case "redacted":
                return {
                    "type": "redacted_thinking",
                    "data": seal_reasoning("red", self._model, f"redacted {block.index}"),
                }
            case "server" if isinstance(block.item, HostedTool):
                is_call = block.item.part == "call"
                return call_block(block.item) if is_call else result_block(block.item, self._model)
            case "cited":
                return {"type": "text", "text": "", "citations": []}
            case "call":
                return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}
            case _:
                return {"type": "text", "text": ""}

    def _delta(self, block: AnswerBlock, delta: dict[str, Any], *, is_beat: bool = True) -> StreamChunk:
        return _event({"type": "content_block_delta", "index": block.index, "delta": delta}, is_beat=is_beat)


def _event(body: dict[str, Any], *, is_beat: bool = False) -> StreamChunk:
    return StreamChunk(b"event: %s\ndata: %s\n\n" % (body["type"].encode(), msgspec.json.encode(body)), is_beat)


def _usage(usage: ScriptedUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input - usage.cached - usage.written,
        "cache_creation_input_tokens": usage.written,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    }
