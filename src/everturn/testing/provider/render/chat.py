"""OpenAI Chat Completions writer: renders an answer as chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from everturn.testing.provider.answers import StreamChunk
from everturn.testing.provider.render.answer import AnswerBlock, Ending, Kind, seeded_token
from everturn.testing.provider.script import InBandError, ScriptedUsage

CREATED = 1_790_000_000
_REASONS = {"refusal": "stop"}  # a refusal is seen in its own deltas; the finish reason stays "stop"


class ChatWriter:
    """Writes `chat.completion.chunk` objects; reasoning goes into `reasoning_content`, as DeepSeek introduced it."""

    kinds: frozenset[Kind] = frozenset({"text", "thinking", "refusal", "call"})

    def __init__(self, model: str, ending: Ending, *, with_usage: bool) -> None:
        self._ending, self._with_usage = ending, with_usage
        self._calls = 0
        self._is_open = False
        self._envelope: dict[str, Any] = {
            "id": "chatcmpl-" + seeded_token(model, 29),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": model,
            "service_tier": "default",
            "system_fingerprint": "fp_50cad350e4",
        }

    def start(self) -> Iterator[StreamChunk]:
        """Nothing: the role travels with the first delta."""
        return iter(())

    def open(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """The role, once, and the head of a call."""
        if block.kind != "call":
            yield from self._opening({"content": "", "refusal": None} if block.kind != "thinking" else _THINKING)
            return
        slot, self._calls = self._calls, self._calls + 1
        function = {"name": block.name, "arguments": ""}
        call = {"index": slot, "id": block.id, "type": "function", "function": function}
        if self._is_open:
            yield self._delta({"tool_calls": [call]})
        else:
            yield from self._opening({"content": None, "tool_calls": [call], "refusal": None})

    def piece(self, block: AnswerBlock, text: str) -> Iterator[StreamChunk]:
        """One delta."""
        match block.kind:
            case "text":
                yield self._delta({"content": text})
            case "thinking":
                yield self._delta({"content": None, "reasoning_content": text})
            case "refusal":
                yield self._delta({"refusal": text})
            case _:
                yield self._delta({"tool_calls": [{"index": self._calls - 1, "function": {"arguments": text}}]})

    def close(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """Nothing: a block ends where another begins."""
        return iter(())

    def fail(self, error: InBandError) -> Iterator[StreamChunk]:
        """An error object in place of a chunk, and no `[DONE]`."""
        body = {"message": error.message, "type": error.kind or "server_error", "param": None, "code": error.code}
        yield _event({"error": body})

    def finish(self) -> Iterator[StreamChunk]:
        """The finish reason, the usage if it was asked for, and `[DONE]`."""
        yield from self._opening({"content": "", "refusal": None})
        reason = _REASONS.get(self._ending.reason, self._ending.reason)
        if self._envelope["model"].startswith("mistral-"):  # there the usage is always sent, with the finish reason
            yield self._delta({}, reason, usage=_usage(self._ending.usage))
        else:
            yield self._delta({}, reason)
        if self._with_usage:
            yield _event({**self._envelope, "choices": [], "usage": _usage(self._ending.usage)})
        yield StreamChunk(b"data: [DONE]\n\n")

    def _opening(self, delta: dict[str, Any]) -> Iterator[StreamChunk]:
        if not self._is_open:
            self._is_open = True
            yield self._delta({"role": "assistant", **delta}, is_beat=False)

    def _delta(
        self, delta: dict[str, Any], finish: str | None = None, *, usage: Any = None, is_beat: bool = True
    ) -> StreamChunk:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return _event({**self._envelope, "choices": [choice], "usage": usage}, is_beat=is_beat)


_THINKING = {"content": None, "reasoning_content": ""}


def _event(body: dict[str, Any], *, is_beat: bool = True) -> StreamChunk:
    return StreamChunk(b"data: %s\n\n" % msgspec.json.encode(body), is_beat)


def _usage(usage: ScriptedUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
