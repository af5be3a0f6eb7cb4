"""Scripted model: answers from a script. It is the reference model, used by tests and the demo.

    ScriptedModel([say("Let me look."), calls(call("read", path="a.txt"))], [say("It says hello.")])

Each argument is the answer to one request, in order; the number of the request is read from its history, so a request
that is repeated after a crash gets the same answer again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, cast

from msgspec import Struct

from everturn.core.canonical_json import encode_canonical
from everturn.core.chunks import CallChunk, Chunk, FinishChunk, ReasoningChunk, TextChunk, UsageChunk
from everturn.core.parts import Finish, TextPart, Usage
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError

Batch = Sequence[Chunk]


class ScriptedFailure(Struct, frozen=True):
    """A point in a script where the stream fails."""

    error: ModelError


class ScriptedHang(Struct, frozen=True):
    """A point in a script where the stream stalls."""


Answer = Iterable[Any]
"""Batches of chunks, `ScriptedFailure` and `ScriptedHang`, nested to any depth."""

Script = Answer | Callable[[ModelRequest], Answer]


def say(text: str, size: int = 0) -> list[Batch]:
    """Return text in batches of one chunk: word by word, or `size` characters at a time."""
    return [[TextChunk(piece)] for piece in _pieces(text, size)]


def think(text: str) -> list[Batch]:
    """Return reasoning, word by word."""
    return [[ReasoningChunk(piece)] for piece in _pieces(text, 0)]


def _pieces(text: str, size: int) -> list[str]:
    if size:
        return [text[at : at + size] for at in range(0, len(text), size)]
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:]


class ScriptedCall(Struct, frozen=True):
    """A call in a script."""

    name: str
    arguments: str


def call(name: str, /, **arguments: object) -> ScriptedCall:
    """Return a call with these arguments."""
    return ScriptedCall(name, encode_canonical(arguments))


def calls(*made: ScriptedCall, finish: Finish = "tool_calls") -> list[Batch]:
    """Return parallel calls, their arguments in two pieces each, and the end of the answer."""
    batches: list[Batch] = []
    for slot, scripted in enumerate(made):
        half = len(scripted.arguments) // 2
        batches.append([CallChunk(slot, scripted.arguments[:half], scripted.name, f"given_{slot}")])
        batches.append([CallChunk(slot, scripted.arguments[half:])])
    return [*batches, [FinishChunk(finish)]]


class ScriptedModel:
    """Answers from a script; `requests` has the requests it received. A text is `say(text)`."""

    def __init__(self, *script: Script, name: str = "scripted", pace: float = 0.0) -> None:
        self._script = script
        self._pace = pace
        self._name = name
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        """The name that a UI shows."""
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncIterator[Batch]:
        """Yield the next answer: its number is the number of assistant messages in the request."""
        self.requests.append(request)
        number = sum(message.role == "assistant" for message in request.messages)
        if number >= len(self._script):
            text = f"the script has {len(self._script)} answer{'s'[: len(self._script) != 1]}, and this is request {number + 1}"
            reason = f" ({_shorten(request.messages[-1].text)})" if request.messages else ""
            raise ModelError(f"{text}{reason}: add another answer", kind="script")
        entry = self._script[number]
        answer = entry(request) if callable(entry) else entry
        if isinstance(answer, str):
            answer = say(answer)
        _check_answer(answer, number)
        is_finished = False
        for batch in _flat(answer):
            if isinstance(batch, ScriptedFailure):
                raise batch.error
            if isinstance(batch, ScriptedHang):
                await asyncio.get_running_loop().create_future()
                return
            await asyncio.sleep(self._pace)
            is_finished = is_finished or any(isinstance(chunk, FinishChunk) for chunk in batch)
            yield batch
        if not is_finished:
            size = sum(len(part.text) for m in request.messages for part in m.parts if isinstance(part, TextPart))
            yield [UsageChunk(Usage(input=size // 4 + 1, output=1)), FinishChunk("stop")]


def _shorten(text: str, most: int = 200) -> str:
    """The last message of a request: it often says why there is another request."""
    return repr(text if len(text) <= most else f"{text[:most]}…")


def _check_answer(answer: object, number: int) -> None:
    if isinstance(answer, ScriptedCall):
        raise ModelError(
            f"answer {number + 1} of the script is a bare call: write calls(call({answer.name!r}, …))", kind="script"
        )
    if not isinstance(answer, Iterable):
        raise ModelError(
            f"answer {number + 1} of the script is of type {type(answer).__name__}; "
            'there are: a text, say("…"), calls(call("tool", argument=1)), or a list of both',
            kind="script",
        )


def _flat(answer: Iterable[Any]) -> list[Batch | ScriptedFailure | ScriptedHang]:
    """Flatten a nested script: `[say(…), calls(…)]` is one answer."""
    flat: list[Batch | ScriptedFailure | ScriptedHang] = []
    for item in answer:
        if isinstance(item, ScriptedFailure | ScriptedHang):
            flat.append(item)
            continue
        if isinstance(item, str):
            flat += _flat(say(item))
            continue
        if isinstance(item, ScriptedCall):
            raise ModelError(f"write calls(call({item.name!r}, …)) in the script, not the call alone", kind="script")
        inner = cast("list[Any]", item)
        if inner and isinstance(inner[0], list | ScriptedFailure | ScriptedHang):
            flat += _flat(inner)
        else:
            flat.append(inner)
    return flat
