"""Gemini writer: renders an answer as parts of one candidate, with the token counts so far in every event."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from everturn.testing.provider.answers import StreamChunk
from everturn.testing.provider.faults import google_error, is_object
from everturn.testing.provider.gemini_signatures import is_third, signature
from everturn.testing.provider.gemini_tools import Grounding, tool_part
from everturn.testing.provider.render.answer import AnswerBlock, Ending, Kind, seeded_token
from everturn.testing.provider.script import Cite, HostedTool, InBandError, ScriptedUsage

Json = dict[str, Any]

_REASONS = {
    "stop": "STOP",
    "tool_calls": "STOP",
    "length": "MAX_TOKENS",
    "content_filter": "SAFETY",
    "refusal": "SAFETY",
}
_STATUSES = {"rate_limit_exceeded": 429, "context_length_exceeded": 400, "server_error": 500}
_SHOWN: frozenset[Kind] = frozenset({"text", "refusal", "call", "server", "cited"})
_THOUGHT: frozenset[Kind] = frozenset({"thinking"})


class GeminiWriter:
    """Writes parts; the first call of an answer is signed, and for the third generation of models the end of a text,
    too.

    Calls are sent whole. A call whose arguments are not an object is never sent: the answer ends as malformed instead.
    """

    def __init__(self, model: str, ending: Ending, *, with_thoughts: bool, seed: str = "") -> None:
        self._model, self._ending = model, ending
        self._kinds = _SHOWN | _THOUGHT if with_thoughts else _SHOWN
        self._id = seeded_token(f"{model}\0{seed}", 22)
        self._event_count = 0  # events so far
        self._text_size = self._cited_from = 0  # bytes
        self._grounding = Grounding()
        self._is_signed = False
        self._broken: AnswerBlock | None = None

    @property
    def kinds(self) -> frozenset[Kind]:
        """The kinds of blocks that are shown."""
        return self._kinds

    def start(self) -> Iterator[StreamChunk]:
        """Nothing but the head: an answer begins with its first part, and an earlier error is a status."""
        yield StreamChunk(b"", is_beat=False)

    def open(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """A whole part of a built-in tool; other parts have no beginning."""
        self._cited_from = self._text_size
        if isinstance(block.item, HostedTool):
            self._grounding.add_tool(block.item)
            if (part := tool_part(block.item, self._model)) is not None:
                yield self._parts(part)

    def piece(self, block: AnswerBlock, text: str) -> Iterator[StreamChunk]:
        """One part; the pieces of a call are collected until it is complete."""
        if block.kind == "thinking":
            yield self._parts({"text": text, "thought": True})
        elif block.kind not in ("call", "server"):
            self._text_size += len(text.encode())
            yield self._parts({"text": text})

    def close(self, block: AnswerBlock) -> Iterator[StreamChunk]:
        """A complete call; a citation is reported at the end."""
        if isinstance(block.item, Cite):
            self._grounding.add_citation(block.item, self._cited_from, self._text_size)
        if block.kind != "call" or self._broken is not None:
            return
        if (args := arguments(block.text)) is None:
            self._broken = block
            return
        call: Json = {"name": block.name, **({"args": args} if block.text.strip() else {})}
        part: Json = {"functionCall": {**call, "id": block.id} if is_third(self._model) else call}
        if not self._is_signed:
            self._is_signed = True
            part["thoughtSignature"] = signature(self._model, f"{block.name}{block.text}")
        yield self._parts(part)

    def fail(self, error: InBandError) -> Iterator[StreamChunk]:
        """An error in place of an event; with the kind "bare" it is not even an event, as it happens in production."""
        body = google_error(_STATUSES.get(error.code or "", 500), error.message)
        if error.kind == "bare":
            yield StreamChunk(msgspec.json.format(msgspec.json.encode(body), indent=2) + b"\n")
        else:
            yield _event(body)

    def finish(self) -> Iterator[StreamChunk]:
        """The finish reason, and all tokens; where a filter blocked everything, that the prompt was blocked."""
        reason = _REASONS[self._ending.reason]
        usage = {"usageMetadata": _usage(self._ending.usage, None)}
        if self._broken is not None:
            message = f"Malformed function call: {self._broken.name}({self._broken.text})"
            yield self._candidate({"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": message}, usage)
        elif reason == "SAFETY" and not self._event_count:
            yield _event({"promptFeedback": {"blockReason": "SAFETY"}, **usage, **self._tail()})
        else:
            content: Json = {"parts": [self._last_part()], "role": "model"} if self._event_count else {"role": "model"}
            yield self._candidate({"content": content, "finishReason": reason, **self._grounding.metadata()}, usage)

    def _last_part(self) -> Json:
        if self._is_signed or not is_third(self._model):
            return {"text": ""}
        return {"text": "", "thoughtSignature": signature(self._model, f"said {self._id}")}

    def _parts(self, part: Json) -> StreamChunk:
        self._event_count += 1
        usage = {"usageMetadata": _usage(self._ending.usage, self._event_count)}
        return self._candidate({"content": {"parts": [part], "role": "model"}}, usage)

    def _candidate(self, candidate: Json, usage: Json) -> StreamChunk:
        return _event({"candidates": [{**candidate, "index": 0}], **usage, **self._tail()})

    def _tail(self) -> Json:
        return {"modelVersion": self._model, "responseId": self._id}


def arguments(text: str) -> Json | None:
    """The arguments of a call as an object; None if they are not one."""
    try:
        value: Any = msgspec.json.decode(text.strip() or "{}")
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None


def _event(body: Json) -> StreamChunk:
    return StreamChunk(b"data: %s\r\n\r\n" % msgspec.json.encode(body))


def _usage(usage: ScriptedUsage, limit: int | None) -> Json:
    """The tokens so far, of which a growing part is output; reasoning is counted beside it."""
    whole = usage.output - usage.reasoning
    output = whole if limit is None else min(limit, whole)
    counts = {
        "promptTokenCount": usage.input,
        "cachedContentTokenCount": usage.cached,
        "candidatesTokenCount": output,
        "thoughtsTokenCount": usage.reasoning,
    }
    total = usage.input + output + usage.reasoning
    details = [{"modality": "TEXT", "tokenCount": usage.input}]
    reported = {name: count for name, count in counts.items() if count}
    return {**reported, "totalTokenCount": total, "promptTokensDetails": details}
