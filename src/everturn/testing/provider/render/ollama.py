"""Ollama writer: renders an answer as lines of JSON, the last with the counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from everturn.testing.provider.answers import StreamChunk
from everturn.testing.provider.render.answer import AnswerBlock, Ending, Kind
from everturn.testing.provider.render.gemini import arguments
from everturn.testing.provider.script import Call, Cut, Hang, InBandError, Item, Pause, Redacted, ScriptedUsage, Status

Json = dict[str, Any]

CREATED = "2026-09-21T14:13:20.123456Z"
_SHOWN: frozenset[Kind] = frozenset({"text", "refusal", "call"})
_THOUGHT: frozenset[Kind] = frozenset({"thinking"})


class OllamaWriter:
    """Writes messages with one piece each. Calls are sent whole; the format cannot express a refusal or a filter."""

    def __init__(self, model: str, ending: Ending, *, with_thinking: bool) -> None:
        self._model, self._ending = model, ending
        self._kinds = _SHOWN | _THOUGHT if with_thinking else _SHOWN
        self._calls = 0

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of blocks that are shown."""
        return self._kinds

    def start(self) -> Iterator[StreamChunk]:
        """Nothing but the head: an answer begins with its first piece, and an earlier error is a status."""
        yield StreamChunk(b"", is_beat=False)

    def open(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """Nothing: pieces just follow each other."""
        return iter(())

    def piece(self, block: AnswerBlock, text: str) -> Iterator[StreamChunk]:
        """One line; the pieces of a call are collected until it is complete."""
        if block.kind == "thinking":
            yield self._line({"content": "", "thinking": text})
        elif block.kind != "call":
            yield self._line({"content": text})

    def close(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """A call, whole or not at all."""
        if block.kind == "call" and (parsed := arguments(block.text)) is not None:
            function = {"index": self._calls, "name": block.name, "arguments": parsed}
            self._calls += 1
            yield self._line({"content": "", "tool_calls": [{"id": block.id, "function": function}]})

    def fail(self, error: InBandError) -> Iterator[StreamChunk]:
        """A line with only the error message, and no line after it."""
        yield StreamChunk(msgspec.json.encode({"error": error.message}) + b"\n")

    def finish(self) -> Iterator[StreamChunk]:
        """An empty message with the finish reason, and the counts."""
        reason = "length" if self._ending.reason == "length" else "stop"
        yield self._line({"content": ""}, done=True, done_reason=reason, **_usage(self._ending.usage))

    def _line(self, message: Json, *, done: bool = False, **fields: Any) -> StreamChunk:
        head = {"model": self._model, "created_at": CREATED, "message": {"role": "assistant", **message}}
        return StreamChunk(msgspec.json.encode({**head, "done": done, **fields}) + b"\n")


def as_ollama(items: Sequence[Item]) -> Sequence[Item]:
    """The items as Ollama would behave: an unreadable call is an error, and an early error is a status.

    A call that is cut off with its connection is never sent.
    """
    sent: list[Item] = []
    for at, item in enumerate(items):
        if isinstance(item, Call) and arguments(item.arguments) is None:
            is_cut = any(isinstance(behind, Cut | Hang) for behind in items[at + 1 : at + 2])
            told_of = f"error parsing tool call: raw='{item.arguments}', err=it is no JSON object"
            item = item if is_cut else InBandError(told_of)
        if isinstance(item, InBandError):
            is_early = all(isinstance(before, Pause | ScriptedUsage | Redacted) for before in sent)
            body = msgspec.json.encode({"error": item.message})
            return [*sent, Status(500, body) if is_early else item]
        sent.append(item)
    return sent


def _usage(usage: ScriptedUsage) -> Json:
    counts = {"prompt_eval_count": usage.input, "eval_count": usage.output}
    times = {"total_duration": 4_883_583_458, "load_duration": 1_334_875, "eval_duration": 4_535_599_000}
    return {**times, "prompt_eval_duration": 342_546_000, **{name: count for name, count in counts.items() if count}}
