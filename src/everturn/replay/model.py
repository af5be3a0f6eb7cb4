"""Replay model: repeats the recorded answers step by step, and fails if its request differs from the recorded one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from everturn.core.chunks import (
    CallChunk,
    Chunk,
    CitationChunk,
    FileChunk,
    FinishChunk,
    OpaqueChunk,
    ProviderToolChunk,
    ReasoningChunk,
    RetryChunk,
    TextChunk,
    TextEndChunk,
    UsageChunk,
)
from everturn.core.events import (
    AnswerStarted,
    MessagesImported,
    Problem,
    RequestRetried,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    Terminal,
    TurnEvent,
)
from everturn.core.history import render_history, render_own_message
from everturn.core.messages import Message
from everturn.core.parts import (
    FilePart,
    Finish,
    ProviderToolPart,
    ReasoningPart,
    StreamedPart,
    TextPart,
    ToolPart,
    Usage,
)
from everturn.core.requests import ModelRequest, RequestMessage, RequestResult
from everturn.core.state import fold
from everturn.errors import ModelError
from everturn.replay.recording import Recording
from everturn.replay.script import ReplayScript

MEMO = "replay"  # memo key under which a request names its turn and step
REQUEST_DIFFERS = "this request differs from the recorded one: {what}"


class RecordedStep(Struct, frozen=True):
    """A recorded step: the messages sent to the model, and its answer."""

    messages: tuple[RequestMessage, ...]
    closing: bool
    parts: tuple[StreamedPart, ...]
    finish: Finish
    usage: Usage
    problem: Problem | None = None
    retries: tuple[RequestRetried, ...] = ()


class ReplayModel:
    """Repeats the recorded answers, step by step, in the recorded order."""

    def __init__(self, name: str, steps: Iterator[tuple[int, RecordedStep]], count: int) -> None:
        self._name, self._steps, self._count = name, steps, count

    @property
    def name(self) -> str:
        """The recorded name of the model."""
        return self._name

    def with_name(self, name: str) -> ReplayModel:
        """Return the same model under another name, for a session with several models."""
        return ReplayModel(name, self._steps, self._count)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Stream the next recorded answer, if the request matches.

        Raises:
            ModelError: the request differs (kind `replay`); or the recorded model failed here.
        """
        number, step = next(self._steps, (0, None))
        if step is None:
            mismatch = f"there were {self._count} steps, and this is one more"
            raise ModelError(REQUEST_DIFFERS.format(what=mismatch), kind="replay")
        if mismatch := describe_request_mismatch(step, request):
            raise ModelError(
                REQUEST_DIFFERS.format(what=f"in step {number} of {self._count}, {mismatch}"), kind="replay"
            )
        for retried in step.retries:
            yield [_retry_chunk(retried)]
        if chunks := make_chunks(step.parts):
            yield chunks
        if step.problem is not None:
            yield [UsageChunk(step.usage)]
            raise ModelError(step.problem.text, kind=step.problem.kind)
        yield [UsageChunk(step.usage), FinishChunk(step.finish)]


class RecordedTurnModel:
    """Repeats the recorded answer of each step of each turn; an interrupted one is repeated as far as it came, and then
    waits."""

    def __init__(self, name: str, recording: Recording, script: ReplayScript) -> None:
        self._name, self._recording, self._script = name, recording, script
        self._steps = collect_steps(recording)

    @property
    def name(self) -> str:
        """The recorded name of the model."""
        return self._name

    def with_name(self, name: str) -> RecordedTurnModel:
        """Return the same model under another name."""
        return RecordedTurnModel(name, self._recording, self._script)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Stream the recorded answer of this step, if the request matches.

        Raises:
            ModelError: the request differs (kind `replay`); or the recorded model failed here.
        """
        turn, number = request.memo[MEMO]
        step = self._steps.get((turn, number))
        while isinstance(retried := self._script.next_event(turn), RequestRetried):
            yield [_retry_chunk(retried)]
        is_lost = isinstance(self._script.next_event(turn), StepRestarted)  # the recorded process died in this step
        if step is None or is_lost:  # it was stopped before its first chunk
            await self._wait(turn, number)
            return
        if mismatch := describe_request_mismatch(step, request):
            raise ModelError(REQUEST_DIFFERS.format(what=f"in step {number}, {mismatch}"), kind="replay")
        if chunks := make_chunks(step.parts):
            yield chunks
        if step.finish == "cancelled" or (step.problem is not None and step.problem.kind == "deadline"):
            yield [UsageChunk(step.usage)]
            await self._wait(turn, number)
        if step.problem is not None:
            yield [UsageChunk(step.usage)]
            raise ModelError(step.problem.text, kind=step.problem.kind)
        yield [UsageChunk(step.usage), FinishChunk(step.finish)]

    async def _wait(self, turn: str, number: int) -> None:
        self._script.note_step_spoken(turn, number)
        await asyncio.get_running_loop().create_future()


def replay_model(recording: Recording) -> ReplayModel:
    """Make a model that repeats every recorded step: text, reasoning, calls with their ids, usage, finish.

    Raises:
        ConfigError: this recording cannot be replayed.
    """
    recording.check()
    steps = list(collect_steps(recording).values())
    model_name = next((event.message.by for event in recording.events if isinstance(event, AnswerStarted)), "replay")
    return ReplayModel(model_name, iter(list(enumerate(steps, 1))), len(steps))


def _retry_chunk(event: RequestRetried) -> RetryChunk:
    problem = event.problem
    return RetryChunk(event.attempt, event.attempts, event.seconds, problem.kind, problem.text, event.model)


def collect_steps(recording: Recording) -> dict[tuple[str, int], RecordedStep]:
    """Return every step by turn and number, with the messages of its request as they follow from the log."""
    steps: dict[tuple[str, int], RecordedStep] = {}
    turns: dict[str, list[TurnEvent]] = {}
    known: dict[str, Message] = {}
    requests: dict[str, tuple[tuple[RequestMessage, ...], bool]] = {}
    retries: dict[str, tuple[RequestRetried, ...]] = {}  # turn -> of its open step
    for event in recording.events:
        if isinstance(event, MessagesImported):
            known |= {message.id: message for message in event.messages}
        if not isinstance(event, TurnEvent):
            continue
        turn = turns.setdefault(event.turn, [])
        match event:
            case StepStarted(closing=closing):
                requests[event.turn] = (tuple(_request_messages(turn, known)), closing)
                retries[event.turn] = ()
            case StepRestarted():
                retries[event.turn] = ()
            case RequestRetried():
                retries[event.turn] = (*retries[event.turn], event)
            case StepFinished(step=step, parts=parts, finish=finish, usage=usage):
                steps[event.turn, step] = RecordedStep(
                    *requests[event.turn], parts, finish, usage, retries=retries[event.turn]
                )
            case StepInterrupted(step=step, parts=parts, finish=finish, usage=usage, problem=problem):
                steps[event.turn, step] = RecordedStep(
                    *requests[event.turn], parts, finish, usage, problem, retries[event.turn]
                )
            case _:
                pass
        turn.append(event)
        if isinstance(event, Terminal):
            known |= fold(turn).messages
    return steps


def _request_messages(turn: Sequence[TurnEvent], known: Mapping[str, Message]) -> Iterator[RequestMessage]:
    state = fold(turn)
    history: list[Message] = []
    at = state.parent
    while at is not None and at in known:
        history.append(known[at])
        at = known[at].parent
    yield from render_history(reversed(history), state.options.tool_history, continues=state.input is None)
    for message in state.messages.values():
        yield from render_own_message(message)


def describe_request_mismatch(step: RecordedStep, request: ModelRequest) -> str:
    """Describe how a request differs from the recorded one; "" if nothing differs that the log knows."""
    messages = request.messages[:-1] if step.closing else request.messages
    if len(messages) != len(step.messages):
        return f"with {len(messages)} messages instead of {len(step.messages)}"
    for current, recorded in zip(
        reversed(messages), reversed(step.messages), strict=True
    ):  # new messages are at the end
        if mismatch := _message_mismatch(current, recorded):
            return mismatch
    return ""


def _message_mismatch(current: RequestMessage, recorded: RequestMessage) -> str:
    if current.role != recorded.role:
        return f"a message is by {current.role!r}, and was by {recorded.role!r}"
    if current.text != recorded.text:
        return f"the message is {_shorten(current.text)}; recorded: {_shorten(recorded.text)}"
    current_results, recorded_results = _results(current), _results(recorded)
    if len(current_results) != len(recorded_results):
        return f"there are {len(current_results)} results instead of {len(recorded_results)}"
    for new, old in zip(current_results, recorded_results, strict=True):
        if (new.name, new.text, new.is_error) != (
            old.name,
            old.text,
            old.is_error,
        ):
            return f"{new.name} returned {_shorten(new.text)}; recorded: {old.name} returned {_shorten(old.text)}"
    return ""


def _results(message: RequestMessage) -> list[RequestResult]:
    return [part for part in message.parts if isinstance(part, RequestResult)]


def _shorten(text: str, most: int = 80) -> str:
    return repr(text if len(text) <= most else text[:most] + "…")


class RecordedFileBytes(bytes):
    """The bytes of a file that a model made: only their blob name and their number are known."""

    blob: str
    size: int

    @classmethod
    def of(cls, part: FilePart) -> RecordedFileBytes:
        """Return those of a file part."""
        data = cls()
        data.blob, data.size = part.blob, part.size
        return data

    def __len__(self) -> int:
        """The recorded size."""
        return self.size


def make_chunks(parts: Iterable[StreamedPart]) -> list[Chunk]:
    """Make chunks that assemble to the same parts."""
    chunks: list[Chunk] = []
    slot = -1
    for part in parts:
        if isinstance(part, ToolPart):
            slot += 1
            chunks.append(CallChunk(slot, part.arguments, part.name, part.provider_id))
            if part.opaque is not None:
                chunks.append(OpaqueChunk(part.opaque, "call", slot))
        elif isinstance(part, TextPart | ReasoningPart):
            is_text = isinstance(part, TextPart)
            if part.text:
                chunks.append(TextChunk(part.text) if is_text else ReasoningChunk(part.text))
            chunks += [CitationChunk(citation) for citation in (part.citations if isinstance(part, TextPart) else ())]
            if part.opaque is not None:
                chunks.append(OpaqueChunk(part.opaque, "last" if part.text else "text" if is_text else "reasoning"))
            elif is_text:
                chunks.append(TextEndChunk())
        elif isinstance(part, ProviderToolPart):
            chunks.append(ProviderToolChunk(part))
        else:
            chunks.append(FileChunk(RecordedFileBytes.of(part), part.media_type, part.name))
    return chunks
