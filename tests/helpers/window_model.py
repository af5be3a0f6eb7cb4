"""A model with a context window that is as strict as providers are, and a summariser that can be told what to keep.

Every request is rendered in all five wire formats, twice: it must be valid in each, and the same bytes both times. It is
counted in the model's own tokens, and refused if it is longer than the window.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any

import msgspec
from msgspec.structs import replace

from everturn.core.chunks import CallChunk, Chunk, FinishChunk, TextChunk, UsageChunk
from everturn.core.parts import Usage
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.models.prices import ModelFacts
from everturn.models.profile import FormatName, Origin
from everturn.models.vendors import VENDORS
from everturn.models.wire_formats import get_wire_format
from everturn.testing.provider.request_body import decode
from everturn.testing.provider.strict.request import check
from everturn.turn.summarizer import INSTRUCTIONS
from everturn.turn.window_usage import estimate_request

VENDOR_OF: dict[FormatName, str] = {
    "chat": "mistral",
    "messages": "anthropic",
    "responses": "openai",
    "gemini": "gemini",
    "ollama": "ollama",
}
HEADERS = {"anthropic-version": "2023-06-01"}
Answer = Callable[[ModelRequest], list[Chunk]]


def is_summary_request(request: ModelRequest) -> bool:
    return request.system == INSTRUCTIONS


def rendered(request: ModelRequest) -> dict[str, bytes]:
    """The request in every wire format, checked as its provider checks it."""
    bodies: dict[str, bytes] = {}
    for name, vendor in VENDOR_OF.items():
        profile = VENDORS[vendor].for_model("model")
        built = [
            get_wire_format(name).build(replace(request, memo={}), profile, Origin(vendor, "model")).body
            for _ in range(2)
        ]
        first, second = built
        assert first == second
        _check(name, first)
        bodies[name] = first
    return bodies


@lru_cache(2_000)  # bytes that were valid once are valid again
def _check(name: FormatName, body: bytes) -> None:
    check(name, {"model": "model", **decode(name, body)}, HEADERS)


def text_of(request: ModelRequest) -> str:
    """All that the model reads, as text."""
    return msgspec.json.encode([request.system, [message.parts for message in request.messages]]).decode()


class WindowModel:
    """Answers from a function of the request; summaries are written by another one."""

    def __init__(
        self,
        answer: Answer,
        summarize: Callable[[str], str] = lambda prompt: "Goal: go on.",
        *,
        window: int | None = 8_000,
        hidden_window: int = 0,
        count: Callable[[ModelRequest], int] = estimate_request,
        name: str = "window",
    ) -> None:
        self._answer, self._summarize, self._window, self._count, self.name = answer, summarize, window, count, name
        self._refused_above = window or hidden_window
        self.requests: list[ModelRequest] = []
        self.summaries: list[ModelRequest] = []
        self.sizes: list[int] = []
        self.refused = 0
        self.digest = sha256()  # of all that was sent, in every wire format

    async def facts(self) -> ModelFacts:
        return ModelFacts(None, self._window)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        for body in rendered(request).values():
            self.digest.update(body)
        async for batch in self.respond(request):
            yield batch

    async def respond(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """The answer, or a refusal, to a request that has been checked."""
        used = self._count(request)
        if is_summary_request(request):
            assert request.tools == []
            self.summaries.append(request)
            prompt = request.messages[0].text
            text = self._summarize(prompt)
            yield [TextChunk(text), UsageChunk(Usage(used, len(text) // 4)), FinishChunk("stop")]
            return
        if self._refused_above and used > self._refused_above:
            self.refused += 1
            raise ModelError(f"prompt is too long: {used} tokens > {self._refused_above}", kind="context")
        self.requests.append(replace(request, messages=list(request.messages)))
        self.sizes.append(used)
        chunks = self._answer(request)
        written = sum(len(getattr(chunk, "text", "") or getattr(chunk, "arguments", "")) for chunk in chunks) // 4 + 1
        finish = "tool_calls" if any(isinstance(chunk, CallChunk) for chunk in chunks) else "stop"
        end = () if any(isinstance(chunk, FinishChunk) for chunk in chunks) else (FinishChunk(finish),)
        yield [*chunks, UsageChunk(Usage(used, written)), *end]


def last_number(request: ModelRequest) -> int:
    """The number in the newest result since the person last spoke in this turn; 0: there is none."""
    for message in reversed(request.messages):
        if message.role == "tool" and (numbers := re.findall(r"result (\d+)", str(message.parts))):
            return int(numbers[-1])
        if message.role == "user" and "count to" in message.text:
            return 0
    return 0


def counting(calls: int, text: str = "done") -> Answer:
    """Calls `look` with the numbers from 1 on, as often as given, then says something."""

    def answer(request: ModelRequest) -> list[Chunk]:
        number = last_number(request)
        if number < calls and request.tools:
            return [CallChunk(0, msgspec.json.encode({"n": number + 1}).decode(), "look", f"id{number}")]
        return [TextChunk(text)]

    return answer


def events_of(entries: Sequence[Any], *kinds: type) -> list[Any]:
    return [entry.event for entry in entries if isinstance(entry.event, kinds)]
