"""Amazon Bedrock Converse writer: renders an answer as frames of an event stream."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import msgspec

from everturn.testing.provider.answers import StreamChunk
from everturn.testing.provider.render.answer import AnswerBlock, Ending, Kind
from everturn.testing.provider.render.event_frames import event_frame, exception_frame
from everturn.testing.provider.script import InBandError, ScriptedUsage
from everturn.testing.provider.signatures import seal_reasoning, sign

_REASONS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "content_filtered",
    "refusal": "content_filtered",
}
_EXCEPTIONS = {
    "rate_limit_exceeded": "throttlingException",
    "context_length_exceeded": "validationException",
    "overloaded": "serviceUnavailableException",
    "model": "modelStreamErrorException",
}
_SHOWN: frozenset[Kind] = frozenset({"text", "refusal", "call"})
_THOUGHT: frozenset[Kind] = frozenset({"thinking", "redacted"})
_PADDING = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOP"


class ConverseWriter:
    """Writes content blocks; only calls have a start event. Thinking is left out unless the request enabled it."""

    def __init__(self, model: str, ending: Ending, *, with_thinking: bool) -> None:
        self._model, self._ending = model, ending
        self._kinds = _SHOWN | _THOUGHT if with_thinking else _SHOWN

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of blocks that are shown."""
        return self._kinds

    def start(self) -> Iterator[StreamChunk]:
        """`messageStart`."""
        yield _event("messageStart", {"role": "assistant"})

    def open(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """`contentBlockStart` of a call; a redacted thought comes whole."""
        if block.kind == "call":
            start = {"toolUse": {"toolUseId": block.id, "name": block.name}}
            yield _event("contentBlockStart", {"start": start, "contentBlockIndex": block.index})
        if block.kind == "redacted":
            sealed = seal_reasoning("red", self._model, f"redacted {block.index}")
            blob = base64.b64encode(sealed.encode()).decode()
            yield self._delta(block, {"reasoningContent": {"redactedContent": blob}})

    def piece(self, block: AnswerBlock, text: str) -> Iterator[StreamChunk]:
        """One delta."""
        match block.kind:
            case "thinking":
                yield self._delta(block, {"reasoningContent": {"text": text}})
            case "call":
                yield self._delta(block, {"toolUse": {"input": text}})
            case _:
                yield self._delta(block, {"text": text})

    def close(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """The signature of thinking, and `contentBlockStop`."""
        if block.kind == "thinking":
            signature = sign(self._model, block.text)
            yield self._delta(block, {"reasoningContent": {"signature": signature}}, is_beat=False)
        yield _event("contentBlockStop", {"contentBlockIndex": block.index})

    def fail(self, error: InBandError) -> Iterator[StreamChunk]:
        """An exception, and nothing behind it."""
        name = _EXCEPTIONS.get(error.code or "", "internalServerException")
        yield StreamChunk(exception_frame(name, msgspec.json.encode({"message": error.message})))

    def finish(self) -> Iterator[StreamChunk]:
        """`messageStop`, and `metadata` with the tokens."""
        yield _event("messageStop", {"stopReason": _REASONS[self._ending.reason]}, is_beat=True)
        yield _event("metadata", {"usage": _usage(self._ending.usage), "metrics": {"latencyMs": 1}})

    def _delta(self, block: AnswerBlock, delta: dict[str, Any], *, is_beat: bool = True) -> StreamChunk:
        return _event("contentBlockDelta", {"delta": delta, "contentBlockIndex": block.index}, is_beat=is_beat)


def _event(name: str, body: dict[str, Any], *, is_beat: bool = False) -> StreamChunk:
    """An event with the padding that hides the length of a delta, as Bedrock sends it."""
    padding = _PADDING[: 1 + len(str(body)) % len(_PADDING)]
    return StreamChunk(event_frame(name, msgspec.json.encode({**body, "p": padding})), is_beat)


def _usage(usage: ScriptedUsage) -> dict[str, int]:
    return {
        "inputTokens": usage.input - usage.cached - usage.written,
        "outputTokens": usage.output,
        "totalTokens": usage.input + usage.output,
        "cacheReadInputTokens": usage.cached,
        "cacheWriteInputTokens": usage.written,
    }
