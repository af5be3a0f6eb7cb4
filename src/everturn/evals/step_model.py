"""Depth step: asks a model at each recorded step, and answers the turn as recorded (teacher forcing).

So no step depends on an earlier answer of the new model, and a run cannot leave the recording. The answers are
written to a journal, one line each, before the turn goes on: a run that was killed does not ask for them again.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import encode_canonical, parse_object
from everturn.core.chunks import CallChunk, Chunk, TextChunk, UsageChunk
from everturn.core.parts import TextPart, ToolPart, Usage
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.errors import ModelError
from everturn.evals.run_turn import STEP, stream_step
from everturn.replay.model import RecordedStep


class StepAnswer(Struct, frozen=True, omit_defaults=True):
    """What a model answered at one recorded step."""

    turn: str
    step: int
    text: str = ""
    calls: tuple[tuple[str, str], ...] = ()  # (tool, arguments)
    usage: Usage = Usage()

    @property
    def action(self) -> list[str]:
        """The calls, in a form that can be compared; none: it answers in words."""
        return [f"{tool} {_canonical(arguments)}" for tool, arguments in self.calls]


def recorded_action(step: RecordedStep) -> list[str]:
    """Return the recorded calls of a step in the form of `StepAnswer.action`."""
    return [f"{part.name} {_canonical(part.arguments)}" for part in step.parts if isinstance(part, ToolPart)]


def recorded_text(step: RecordedStep) -> str:
    """Return the recorded text of a step."""
    return "".join(part.text for part in step.parts if isinstance(part, TextPart))


def _canonical(arguments: str) -> str:
    parsed = parse_object(arguments)
    return arguments if parsed is None else encode_canonical(parsed)


class StepJournal:
    """The answers of one sample, in a file of lines or in memory."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._answers: dict[tuple[str, int], StepAnswer] = {}
        if path is not None and path.exists():
            data = path.read_bytes()
            whole = data[: data.rfind(b"\n") + 1]  # a process that was killed may leave half a line
            if whole != data:
                path.write_bytes(whole)
            for line in whole.splitlines():
                answer = msgspec.json.decode(line, type=StepAnswer)
                self._answers[answer.turn, answer.step] = answer

    def find(self, turn: str, step: int) -> StepAnswer | None:
        """Return the answer at a step, if the model was asked."""
        return self._answers.get((turn, step))

    def of_turn(self, turn: str) -> list[StepAnswer]:
        """Return the answers of a turn, in the order of its steps."""
        return sorted((item for (name, _), item in self._answers.items() if name == turn), key=lambda item: item.step)

    def append(self, answer: StepAnswer) -> None:
        """Write an answer; it is on disk when this returns."""
        self._answers[answer.turn, answer.step] = answer
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(answer) + b"\n")
                file.flush()
                os.fsync(file.fileno())


class TeacherForcedModel:
    """Asks a model at each step, writes down what it answers, and answers the turn as recorded."""

    def __init__(self, model: Model, turn: str, steps: Mapping[int, RecordedStep], journal: StepJournal) -> None:
        self._model, self._turn, self._steps, self._journal = model, turn, steps, journal
        self.requests = 0

    @property
    def name(self) -> str:
        """The name of the model that is asked."""
        return self._model.name

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Ask the model unless its answer is in the journal, then stream the recorded answer.

        Raises:
            ModelError: the recording has no such step; or the recorded model failed here.
        """
        number = request.memo.get(STEP, 0)
        step = self._steps.get(number)
        if step is None:
            raise ModelError(f"the recording has no step {number}", kind="replay")
        if self._journal.find(self._turn, number) is None:
            self.requests += 1
            self._journal.append(await self._ask(request, number))
        async for chunks in stream_step(step):
            yield chunks

    async def _ask(self, request: ModelRequest, number: int) -> StepAnswer:
        text: list[str] = []
        calls: dict[int, tuple[str, str]] = {}
        usage = Usage()
        async for chunks in self._model.stream(request):
            for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    text.append(chunk.text)
                elif isinstance(chunk, CallChunk):
                    name, arguments = calls.get(chunk.slot, ("", ""))
                    calls[chunk.slot] = (name or chunk.name, arguments + chunk.arguments)
                elif isinstance(chunk, UsageChunk):
                    usage = chunk.usage
        return StepAnswer(self._turn, number, "".join(text), tuple(calls.values()), usage)
