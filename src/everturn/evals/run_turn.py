"""Run of one recorded turn again: a real app with a model, the recorded history, recorded people, and tools that are
answered from the recording (depths step and turn) or really run (depth live).

Each run has a store of its own, in which the session, the turn and its calls keep their recorded ids. With a file as
store, a run that was killed is continued: the log says which steps are done, and they are not requested again.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from everturn.app import App
from everturn.chat.turn import Turn
from everturn.clock import RandomIds, SystemClock
from everturn.core.chunks import Chunk, FinishChunk, UsageChunk
from everturn.core.commands import Cancel, ClaimCall, ResolveGate, Send
from everturn.core.events import (
    AgentSwitched,
    AnswerStarted,
    CompactionStarted,
    Event,
    FilesChanged,
    GateOpened,
    LateResultReceived,
    StepInterrupted,
    Terminal,
    TurnCancelled,
    TurnEvent,
    TurnStarted,
    TurnSuspended,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.hooks import RequestContext, TurnContext
from everturn.core.ports import Model, Tool
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.store_ports import Store
from everturn.errors import AnswerUnfit, CommandRefused, ConfigError, GateClosed, ModelError, UnknownSession
from everturn.evals.change import EvalChange
from everturn.evals.recorded_world import (
    BY,
    LAST,
    Emulator,
    Match,
    OnMiss,
    RecordedGateAnswers,
    RecordedWorld,
    ServedTool,
    recorded_specs,
)
from everturn.replay.model import REQUEST_DIFFERS, RecordedStep, collect_steps, describe_request_mismatch, make_chunks
from everturn.replay.plugins import derive_settings
from everturn.replay.recording import Recording
from everturn.replay.steering_messages import Steering
from everturn.running.hook_contexts import HookContext, RequestHookContext

Depth = Literal["pure", "step", "turn", "live"]
STEP: Final = "eval_step"  # memo key under which a request names its step
LEASE: Final = 60.0  # seconds; the recorded answer follows at once
Wrap = Callable[[Model, Mapping[int, RecordedStep]], Model]


class TurnRun(Struct, frozen=True):
    """What a recorded turn is run again with."""

    depth: Depth
    change: EvalChange
    model: Model | None = None  # None: the recorded answers
    tools: Mapping[str, Tool] = {}  # the real tools by name: their specs, and what `live` runs
    rules: Sequence[Rule] = ()
    match: Match = "identity"
    on_miss: OnMiss = "stop"
    emulate: Emulator | None = None
    allowed: frozenset[str] = frozenset()  # tools that act at most once and may run at depth live
    wrap: Wrap | None = None  # wraps the model: depth step asks it and answers as recorded


class RecordedStepModel:
    """Repeats the recorded answer of each step of a turn, and fails if its request differs from the recorded one."""

    def __init__(self, name: str, steps: Mapping[int, RecordedStep]) -> None:
        self._name, self._steps = name, steps

    @property
    def name(self) -> str:
        """The recorded name of the model."""
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Stream the recorded answer of this step.

        Raises:
            ModelError: the request differs (kind `replay`); or the recorded model failed here.
        """
        number = request.memo.get(STEP, 0)
        step = self._steps.get(number)
        if step is None:
            raise ModelError(
                REQUEST_DIFFERS.format(what=f"there were {len(self._steps)} steps, and this is one more"), kind="replay"
            )
        if mismatch := describe_request_mismatch(step, request):
            raise ModelError(REQUEST_DIFFERS.format(what=f"in step {number}, {mismatch}"), kind="replay")
        async for chunks in stream_step(step):
            yield chunks


async def stream_step(step: RecordedStep) -> AsyncIterator[Sequence[Chunk]]:
    """Stream a recorded answer."""
    if chunks := make_chunks(step.parts):
        yield chunks
    if step.problem is not None:
        yield [UsageChunk(step.usage)]
        raise ModelError(step.problem.text, kind=step.problem.kind)
    yield [UsageChunk(step.usage), FinishChunk(step.finish)]


class ForkedModel:
    """Repeats the recorded answers of the first steps of a turn, and asks a model from there on.

    The calls of those steps are answered from the recording like all others, so the model continues in the recorded
    world, at a step of which everything is known.
    """

    def __init__(self, model: Model, steps: Mapping[int, RecordedStep], last: int) -> None:
        self._model, self._steps, self._last = model, steps, last

    @property
    def name(self) -> str:
        """The name of the model that is asked."""
        return self._model.name

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Stream the recorded answer, or that of the model."""
        step = self._steps.get(number) if (number := request.memo.get(STEP, 0)) <= self._last else None
        async for chunks in self._model.stream(request) if step is None else stream_step(step):
            yield chunks


class _Named:
    """A model under another name, for turns that name theirs."""

    def __init__(self, model: Model, name: str) -> None:
        self._model, self.name = model, name

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        return self._model.stream(request)


class _EvalPlugin:
    """Tells the model its step, and writes the recorded changes of files."""

    name = "eval"

    def __init__(self, files: Sequence[tuple[int, FilesChanged]], change: EvalChange) -> None:
        self._files, self._change = files, change

    async def on_before_request(self, ctx: RequestContext) -> None:
        assert isinstance(ctx, RequestHookContext)
        ctx.body.memo[STEP] = ctx.step
        ctx.body.params.update(self._change.params)
        await self._write(ctx, ctx.step)

    async def on_turn_end(self, ctx: TurnContext) -> None:
        await self._write(ctx, LAST)

    async def _write(self, ctx: TurnContext, step: int) -> None:
        assert isinstance(ctx, HookContext)
        await ctx.run.commit([])
        seen = sum(
            isinstance(entry.event, FilesChanged) and not entry.event.call
            for entry in await ctx.run.setup.store.events(ctx.session, turn=ctx.turn)
        )
        due = [event for at, event in self._files[seen:] if at <= step]
        if due:
            await ctx.run.commit(due)


class _SiblingIds(RandomIds):
    """The recorded ids of answers, in order; and new ones for everything else."""

    def __init__(self, answers: Sequence[str]) -> None:
        self._answers = list(answers)

    def new(self, kind: str) -> str:
        return self._answers.pop(0) if kind == "msg" and self._answers else super().new(kind)


class _NoTools:
    """A source without tools: with it an app calls tools in every turn, as an app with tools that were not called did."""

    origins: Sequence[str] = ()

    async def wait_until_open(self) -> None:
        """Nothing is opened."""

    async def open(self, publish: Callable[[str, Sequence[Tool]], None]) -> None:
        """Nothing is published."""

    async def aclose(self) -> None:
        """Nothing is open."""


class _RecordedTime(SystemClock):
    """Clock that starts at the recorded time: the date in a prompt is the recorded one."""

    def __init__(self, start: float) -> None:
        self._ahead = start - time.time()

    def now(self) -> float:
        return time.time() + self._ahead


def check_runnable(recording: Recording, turn: str) -> None:
    """Check that a turn can be run again with recorded tools.

    Raises:
        ConfigError: it cannot; the text says why.
    """
    recording.check_over()
    for event in recording.events:
        if isinstance(event, TurnEvent) and event.turn == turn and (reason := _obstacle(event)):
            raise ConfigError(f"turn {turn} can be evaluated at depth pure only: {reason}")


def _obstacle(event: Event) -> str:
    match event:
        case TurnCancelled() | StepInterrupted(finish="cancelled"):
            return "a person cancelled it, at a moment that cannot be had again"
        case LateResultReceived():
            return "a result came late, at a moment that cannot be had again"
        case CompactionStarted():
            return "its conversation was compacted by a limit that is not in the recording"
        case AgentSwitched(call=call) if call:
            return "it was handed to another agent, whose tools are not in the recording"
        case _:
            return ""


async def run_turn(recording: Recording, turn: str, how: TurnRun, store: Store) -> Recording:
    """Run a recorded turn again in a store, or continue a run in it that was killed; return the new log."""
    return await _TurnRunner(recording, turn, how, store).run()


class _TurnRunner:
    def __init__(self, recording: Recording, turn: str, how: TurnRun, store: Store) -> None:
        check_runnable(recording, turn)
        self._recording, self._turn, self._how, self._store = recording, turn, how, store
        self._session = recording.session
        at = next(at for at, item in enumerate(recording.events) if isinstance(item, TurnStarted) and item.turn == turn)
        self._before = _finished_before(recording.events[:at])
        started = recording.events[at]
        assert isinstance(started, TurnStarted)
        self._started = started
        self._world = RecordedWorld(recording, turn, how.match, how.tools)
        self._answers = RecordedGateAnswers(self._world)
        self._app: App | None = None

    async def run(self) -> Recording:
        is_resumed = await self._has_session()
        if not is_resumed and self._before:
            await self._store.restore(self._session, "local", self._before)
        app = self._app = self._make_app(await self._unused_answers(is_resumed))
        try:
            await app.start()
            if not is_resumed:
                await app.command(self._send(app))
            await self._follow(app)
            entries = await self._store.events(self._session)
        finally:
            await app.aclose()
        return Recording(tuple(entry.event for entry in entries), self._session, self._turn)

    async def _has_session(self) -> bool:
        try:
            return any(
                isinstance(entry.event, TurnStarted) for entry in await self._store.events(self._session, 0, self._turn)
            )
        except UnknownSession:
            return False

    async def _unused_answers(self, is_resumed: bool) -> list[str]:
        """Return the recorded ids of answers that are not in the log yet: later turns name them as their parents."""
        events = [entry.event for entry in await self._store.events(self._session, 0, self._turn)] if is_resumed else []
        used = {event.message.id for event in events if isinstance(event, AnswerStarted)}
        answers = [event for event in self._recording.events if isinstance(event, AnswerStarted)]
        return [event.message.id for event in answers if event.turn == self._turn and event.message.id not in used]

    def _make_app(self, answers: list[str]) -> App:
        how, change = self._how, self._how.change
        steps = {number: step for (turn, number), step in collect_steps(self._recording).items() if turn == self._turn}
        names = [
            event.message.by
            for event in self._recording.events
            if isinstance(event, AnswerStarted) and event.turn == self._turn
        ]
        model: Model = how.model or RecordedStepModel(names[0] if names else "replay", steps)
        if how.wrap is not None:
            model = how.wrap(model, steps)
        steering = Steering(self._recording)
        events = [event for event in self._recording.events if getattr(event, "turn", "") == self._turn]
        app = steering.app = App(
            model,
            tools=self._tools(),
            plugins=[
                _EvalPlugin(self._world.files, change),
                *([steering] if steering.messages else []),
            ],
            store=self._store,
            clock=_RecordedTime(self._started.at),
            ids=_SiblingIds(answers),
            sources=[_NoTools()],
            settings=derive_settings(events) if how.model is None else None,
            rules=[*how.rules, *self._live_denials()],
        )
        if name := self._options().model:
            app.add_model(_Named(model, name))
        return app

    def _tools(self) -> list[Any]:
        how = self._how
        if how.depth == "live":
            return list(how.tools.values())
        clients = {client.name for client in self._options().clients}
        specs = {**recorded_specs(self._recording), **{name: tool.spec for name, tool in how.tools.items()}}
        return [
            ServedTool(
                spec,
                self._world,
                self._store,
                self._stop,
                real=how.tools.get(name),
                on_miss=how.on_miss,
                emulate=how.emulate,
            )
            for name, spec in specs.items()
            if name not in clients
        ]

    def _live_denials(self) -> list[Rule]:
        if self._how.depth != "live":
            return []
        return [
            Rule(name, "deny", source="everturn eval: --allow-tool names tools that may run")
            for name, tool in self._how.tools.items()
            if tool.spec.at_most_once and name not in self._how.allowed
        ]

    def _options(self) -> Any:
        options = self._started.options
        for event in self._recording.events:
            if isinstance(event, AgentSwitched) and event.turn == self._turn and not event.call:
                options = event.options
        return self._how.change.apply(replace(options, needs_agent=False), is_live=self._how.model is not None)

    def _send(self, app: App) -> Send:
        started = self._started
        return Send(
            key=started.command or f"send-{started.turn}",
            session=self._session,
            at=app.clock.now(),
            turn=started.turn,
            message="" if started.input is None else started.input.id,
            parts=None if started.input is None else started.input.parts,
            parent=started.parent,
            options=self._options(),
        )

    async def _stop(self, call: str) -> None:
        assert self._app is not None
        await self._app.command(
            Cancel(key=f"diverged-{call}", session=self._session, at=self._app.clock.now(), turn=self._turn, hard=True)
        )

    async def _follow(self, app: App) -> None:
        async for event in Turn(app, self._session, self._turn):
            if isinstance(event, GateOpened | TurnSuspended):
                for row in await self._store.gates(self._session):
                    if row.gate.turn == self._turn and row.is_open and row.resolution is None:
                        key, resolution = self._answers.find(row.gate)
                        await self._answer(app, row.gate, key, resolution)
            elif isinstance(event, Terminal):
                return

    async def _answer(self, app: App, gate: Gate, key: str, resolution: GateResolution) -> None:
        session, now = self._session, app.clock.now()
        if resolution.by.startswith("plugin:"):
            resolution = replace(resolution, by=BY)
        with suppress(GateClosed, CommandRefused):  # it was resolved together with another gate
            try:
                if by := resolution.claim:
                    await app.command(
                        ClaimCall(
                            key=f"{key}-take", session=session, at=now, gate=gate.id, hash=gate.hash, by=by, lease=LEASE
                        )
                    )
                await app.command(
                    ResolveGate(key=key, session=session, at=now, gate=gate.id, hash=gate.hash, resolution=resolution)
                )
            except AnswerUnfit as error:
                denial = GateResolution(False, f"the recorded answer does not fit: {error}", by=BY, stop=True)
                await app.command(
                    ResolveGate(
                        key=f"{key}-no", session=session, at=now, gate=gate.id, hash=gate.hash, resolution=denial
                    )
                )


def _finished_before(events: Sequence[Event]) -> list[Event]:
    """Return the log before a turn, without turns that were still running then."""
    over = {event.turn for event in events if isinstance(event, Terminal)}
    return [event for event in events if not isinstance(event, TurnEvent) or event.turn in over]
