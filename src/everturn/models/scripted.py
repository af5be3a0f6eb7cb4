"""A model that says what it was told to: the reference, and what tests and the demo talk to.

    ScriptedModel([say("Let me look."), calls(call("read", path="a.txt"))], [say("It says hello.")])

Each argument is the answer to one request, in order; the number of the request is read off the request itself, so a
model that is asked again after a crash gives the same answer again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, cast

from msgspec import Struct

from everturn.core.canonical import canonical
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, TextPart, Usage
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError

Batch = Sequence[Chunk]


class Fail(Struct, frozen=True):
    """A place in a script where the stream breaks."""

    error: ModelError


class Hang(Struct, frozen=True):
    """A place in a script where nothing more comes."""


Answer = Iterable[Any]
"""Batches of chunks, `Fail` and `Hang`, nested as deep as it reads best."""

Script = Answer | Callable[[ModelRequest], Answer]


def say(text: str, size: int = 0) -> list[Batch]:
    """Text, in batches of one chunk: word by word, or `size` characters at a time."""
    return [[TextChunk(piece)] for piece in _pieces(text, size)]


def think(text: str) -> list[Batch]:
    """Reasoning, word by word."""
    return [[ReasoningChunk(piece)] for piece in _pieces(text, 0)]


def _pieces(text: str, size: int) -> list[str]:
    if size:
        return [text[at : at + size] for at in range(0, len(text), size)]
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:]


class ScriptedCall(Struct, frozen=True):
    """A call a script makes."""

    name: str
    arguments: str


def call(name: str, /, **arguments: object) -> ScriptedCall:
    """A call with these arguments."""
    return ScriptedCall(name, canonical(arguments))


def calls(*made: ScriptedCall, finish: Finish = "tool_calls") -> list[Batch]:
    """Parallel calls, their arguments in two pieces each, and the end of the answer."""
    batches: list[Batch] = []
    for slot, one in enumerate(made):
        half = len(one.arguments) // 2
        batches.append([CallChunk(slot, one.arguments[:half], one.name, f"given_{slot}")])
        batches.append([CallChunk(slot, one.arguments[half:])])
    return [*batches, [FinishChunk(finish)]]


class ScriptedModel:
    """Answers from a script; `requests` keeps what it was asked."""

    def __init__(self, *script: Script, name: str = "scripted", pace: float = 0.0) -> None:
        self._script = script
        self._pace = pace
        self._name = name
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        """The badge a face shows."""
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncIterator[Batch]:
        """Give the answer whose turn it is: as many as the model has given in this request's history come before."""
        self.requests.append(request)
        said = sum(message.role == "assistant" for message in request.messages)
        if said >= len(self._script):
            text = f"the script has an answer to {len(self._script)} requests; this is number {said + 1}: add another"
            raise ModelError(text, kind="script")
        entry = self._script[said]
        answer = entry(request) if callable(entry) else entry
        is_finished = False
        for batch in _flat(answer):
            if isinstance(batch, Fail):
                raise batch.error
            if isinstance(batch, Hang):
                await asyncio.get_running_loop().create_future()
                return
            await asyncio.sleep(self._pace)
            is_finished = is_finished or any(isinstance(chunk, FinishChunk) for chunk in batch)
            yield batch
        if not is_finished:
            words = sum(len(part.text) for m in request.messages for part in m.parts if isinstance(part, TextPart))
            yield [UsageChunk(Usage(input=words // 4 + 1, output=1)), FinishChunk("stop")]


def _flat(answer: Iterable[Any]) -> list[Batch | Fail | Hang]:
    """A script may be nested: `[say(…), calls(…)]` is one answer."""
    flat: list[Batch | Fail | Hang] = []
    for item in answer:
        if isinstance(item, Fail | Hang):
            flat.append(item)
            continue
        inner = cast("list[Any]", item)
        if inner and isinstance(inner[0], list | Fail | Hang):
            flat += _flat(inner)
        else:
            flat.append(inner)
    return flat
