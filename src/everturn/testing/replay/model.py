"""A recording → a model that says again what was said, and objects when it is asked something else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from everturn.core.chunks import (
    CallChunk,
    Chunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ReasoningChunk,
    TextChunk,
    UsageChunk,
)
from everturn.core.events import (
    AnswerOpened,
    Problem,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnEvent,
)
from everturn.core.history import render, render_own
from everturn.core.messages import Message
from everturn.core.parts import FilePart, Finish, ReasoningPart, StreamedPart, TextPart, ToolPart, Usage
from everturn.core.requests import ModelRequest, RequestMessage, RequestResult
from everturn.core.state import fold
from everturn.errors import ModelError
from everturn.testing.replay.recording import OVER, Recording
from everturn.testing.replay.script import Script

MEMO = "replay"  # where a request says which step it is of
OTHERWISE = "the model is asked something else than was recorded: {what}"


class Step(Struct, frozen=True):
    """What a model was asked, and what it said."""

    asked: tuple[RequestMessage, ...]
    closing: bool
    parts: tuple[StreamedPart, ...]
    finish: Finish
    usage: Usage
    problem: Problem | None = None


class ReplayModel:
    """Says what was said, step by step, in the order in which it was recorded."""

    def __init__(self, name: str, steps: Iterator[tuple[int, Step]], count: int) -> None:
        self._name, self._steps, self._count = name, steps, count

    @property
    def name(self) -> str:
        """The badge that was shown."""
        return self._name

    def named(self, name: str) -> ReplayModel:
        """The same voice under another name, for a session with several models."""
        return ReplayModel(name, self._steps, self._count)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Give the next answer, if this is what was asked.

        Raises:
            ModelError: it is not (kind `replay`); or the model failed then, and fails now.
        """
        number, step = next(self._steps, (0, None))
        if step is None:
            what = f"there were {self._count} steps, and this is one more"
            raise ModelError(OTHERWISE.format(what=what), kind="replay")
        if what := asked_otherwise(step, request):
            raise ModelError(OTHERWISE.format(what=f"in step {number} of {self._count}, {what}"), kind="replay")
        if chunks := chunks_of(step.parts):
            yield chunks
        if step.problem is not None:
            yield [UsageChunk(step.usage)]
            raise ModelError(step.problem.text, kind=step.problem.kind)
        yield [UsageChunk(step.usage), FinishChunk(step.finish)]


class Voice:
    """Says again what was said in each step of each turn; one that was cut off is said as far as it came, and waits."""

    def __init__(self, name: str, recording: Recording, script: Script) -> None:
        self._name, self._recording, self._script = name, recording, script
        self._steps = steps_of(recording)

    @property
    def name(self) -> str:
        """The badge that was shown."""
        return self._name

    def named(self, name: str) -> Voice:
        """The same voice under another name."""
        return Voice(name, self._recording, self._script)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Give the answer of this step, if it is asked what was asked.

        Raises:
            ModelError: it is not (kind `replay`); or the model failed then, and fails now.
        """
        turn, number = request.memo[MEMO]
        step = self._steps.get((turn, number))
        is_lost = isinstance(self._script.next_of(turn), StepRestarted)  # its process dies
        if step is None or is_lost:  # it was stopped before it had said a word
            await self._wait(turn, number)
            return
        if what := asked_otherwise(step, request):
            raise ModelError(OTHERWISE.format(what=f"in step {number}, {what}"), kind="replay")
        if chunks := chunks_of(step.parts):
            yield chunks
        if step.finish == "cancelled" or (step.problem is not None and step.problem.kind == "deadline"):
            yield [UsageChunk(step.usage)]
            await self._wait(turn, number)
        if step.problem is not None:
            yield [UsageChunk(step.usage)]
            raise ModelError(step.problem.text, kind=step.problem.kind)
        yield [UsageChunk(step.usage), FinishChunk(step.finish)]

    async def _wait(self, turn: str, number: int) -> None:
        self._script.say(turn, number)
        await asyncio.get_running_loop().create_future()


def replay_model(recording: Recording) -> ReplayModel:
    """A model that plays every recorded step again: text, reasoning, calls under the ids they had, usage, finish.

    Raises:
        ConfigError: this recording cannot be played again.
    """
    recording.check()
    steps = list(steps_of(recording).values())
    badge = next((one.message.by for one in recording.events if isinstance(one, AnswerOpened)), "replay")
    return ReplayModel(badge, iter(list(enumerate(steps, 1))), len(steps))


def steps_of(recording: Recording) -> dict[tuple[str, int], Step]:
    """Every step by its turn and number, with the messages it was asked with, as the log tells them."""
    steps: dict[tuple[str, int], Step] = {}
    turns: dict[str, list[TurnEvent]] = {}
    known: dict[str, Message] = {}
    asked: dict[str, tuple[tuple[RequestMessage, ...], bool]] = {}
    for event in recording.events:
        if not isinstance(event, TurnEvent):
            continue
        turn = turns.setdefault(event.turn, [])
        match event:
            case StepStarted(closing=closing):
                asked[event.turn] = (tuple(_asked(turn, known)), closing)
            case StepFinished(step=step, parts=parts, finish=finish, usage=usage):
                steps[event.turn, step] = Step(*asked[event.turn], parts, finish, usage)
            case StepInterrupted(step=step, parts=parts, finish=finish, usage=usage, problem=problem):
                steps[event.turn, step] = Step(*asked[event.turn], parts, finish, usage, problem)
            case _:
                pass
        turn.append(event)
        if isinstance(event, OVER):
            known |= fold(turn).messages
    return steps


def _asked(turn: Sequence[TurnEvent], known: Mapping[str, Message]) -> Iterator[RequestMessage]:
    state = fold(turn)
    history: list[Message] = []
    at = state.parent
    while at is not None and at in known:
        history.append(known[at])
        at = known[at].parent
    yield from render(reversed(history), state.options.history)
    for message in state.messages.values():
        yield from render_own(message)


def asked_otherwise(step: Step, request: ModelRequest) -> str:
    """In what a request is not the one that was recorded; "": in nothing that the log knows."""
    asked = request.messages[:-1] if step.closing else request.messages
    if len(asked) != len(step.asked):
        return f"with {len(asked)} messages instead of {len(step.asked)}"
    for now, then in zip(reversed(asked), reversed(step.asked), strict=True):  # what is new is at the end
        if what := _told_otherwise(now, then):
            return what
    return ""


def _told_otherwise(now: RequestMessage, then: RequestMessage) -> str:
    if now.role != then.role:
        return f"a message is by {now.role!r}, and was by {then.role!r}"
    if now.text != then.text:
        return f"it is told {_short(now.text)}, and was told {_short(then.text)}"
    came, was = _results(now), _results(then)
    if len(came) != len(was):
        return f"there are {len(came)} results instead of {len(was)}"
    for one, other in zip(came, was, strict=True):
        if (one.name, one.text, one.is_error) != (other.name, other.text, other.is_error):
            return f"{one.name} came to {_short(one.text)}, and {other.name} had come to {_short(other.text)}"
    return ""


def _results(message: RequestMessage) -> list[RequestResult]:
    return [part for part in message.parts if isinstance(part, RequestResult)]


def _short(text: str, most: int = 80) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")


class Unread(bytes):
    """The bytes of a file that a model made: only their name and their number are known."""

    blob: str
    size: int

    @classmethod
    def of(cls, part: FilePart) -> Unread:
        """Those of a part."""
        data = cls()
        data.blob, data.size = part.blob, part.size
        return data

    def __len__(self) -> int:
        """How many there were."""
        return self.size


def chunks_of(parts: Iterable[StreamedPart]) -> list[Chunk]:
    """Chunks from which the same parts are made."""
    chunks: list[Chunk] = []
    slot = -1
    for part in parts:
        if isinstance(part, ToolPart):
            slot += 1
            chunks.append(CallChunk(slot, part.arguments, part.name, part.given))
            if part.opaque is not None:
                chunks.append(OpaqueChunk(part.opaque, "call", slot))
        elif isinstance(part, TextPart | ReasoningPart):
            is_text = isinstance(part, TextPart)
            if part.text:
                chunks.append(TextChunk(part.text) if is_text else ReasoningChunk(part.text))
            if part.opaque is not None:
                chunks.append(OpaqueChunk(part.opaque, "last" if part.text else "text" if is_text else "reasoning"))
        else:
            chunks.append(FileChunk(Unread.of(part), part.media_type, part.name))
    return chunks
