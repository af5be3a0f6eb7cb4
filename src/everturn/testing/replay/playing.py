"""A recording → everything in it once more, offline: the runtime is real, and all that it reached is the recording.

The model says what it said, plugins and tools write what they wrote, and whoever sent, answered, claimed, cancelled or came
late does so again when the log is where it was then. Nothing outside of this process is asked for anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from everturn.core.commands import Answer, AnyCommand, Cancel, Delete, Late, Revert, Revoke, Select, Send, Stir, Take
from everturn.core.events import (
    AnswerOpened,
    CallBelow,
    CallStirred,
    Event,
    FilesReverted,
    GateAnswered,
    GateClaimed,
    GateOpened,
    GrantRevoked,
    LateArrived,
    LeafSelected,
    LimitReached,
    MessageDeleted,
    RevertStarted,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnEnding,
    TurnStarted,
)
from everturn.core.state import fold
from everturn.errors import EverturnError
from everturn.testing.doubles import CountingIds
from everturn.testing.replay.checking import check, flat
from everturn.testing.replay.model import Voice
from everturn.testing.replay.recording import Recording
from everturn.testing.replay.script import Script, plugins_of
from everturn.testing.replay.stage import Prompter, RecordedClock, RecordedStore, Speaker, settings_of
from everturn.testing.replay.steering import Steering
from everturn.wiring import Runtime

PATIENCE: Final = 20.0  # seconds in which nothing is written before a replay is given up
LEASE: Final = 1.0  # seconds that a client has at least

Watch = Callable[[Event], None]


async def again(recording: Recording, watch: Watch | None = None) -> Recording:
    """Let it all happen again, with nothing but the recording, and record that.

    `watch` is told of each event as it happens.

    Raises:
        ConfigError: this recording cannot be played again, and why.
    """
    check(recording)
    played = await _Player(recording, (), watch).play()
    above = flat(recording)
    below = [await _Player(one, above, watch).play() for one in above[1:]]
    return replace(played, below=tuple(below))


class _Player:
    """Plays one session."""

    def __init__(self, recording: Recording, above: Sequence[Recording], watch: Watch | None) -> None:
        self._recording, self._above, self._session = recording, above, recording.session
        start = _start_of(recording)
        self._before, self._events = recording.events[:start], recording.events[start:]
        self._script = Script(self._events)
        self._clock = RecordedClock(self._events[0].at)
        self._store = RecordedStore(self._session, self._script, watch)
        self._ids = _Ids(self._events)
        self._plugins = plugins_of(self._events)
        self._now: tuple[str, ...] = ()  # the plugins that are at work
        self._runtime: Runtime | None = None
        self._gates = {event.gate.id: event.gate for event in self._events if isinstance(event, GateOpened)}

    async def play(self) -> Recording:
        """Everything, until it is over or goes another way."""
        try:
            if self._before:
                await self._store.restore(self._session, "local", self._before)
            for at, event in enumerate(self._script.events):
                if not self._script.has_happened(at):
                    with suppress(EverturnError):  # a difference, and told as one
                        await self._act(event)
                if not await self._comes(at):
                    break
            log = await self._store.events(self._session) if self._runtime is not None else []
        finally:
            if self._runtime is not None:
                await self._runtime.aclose()
        return Recording(tuple(entry.event for entry in log), self._session, self._recording.turn)

    def _waiting_above(self, started: TurnStarted) -> dict[str, Sequence[Event]]:
        """A sub-turn is one of a call that waits for it: the logs above it, as they were when it was asked for."""
        above = started.options.above
        found: dict[str, Sequence[Event]] = {}
        for name in {above.session, above.by[0]} if above is not None else ():
            log = next((one.events for one in self._above if one.session == name), ())
            asks = (at for at, one in enumerate(log, 1) if isinstance(one, CallBelow) and one.below == started.turn)
            found[name] = log[: next(asks, len(log))]
        return found

    async def _open(self, plugins: tuple[str, ...], anew: bool = False) -> Runtime:
        """A runtime with the plugins that a turn had: they may be others than those of the last, or have died."""
        if self._runtime is not None and plugins == self._now and not anew:
            return self._runtime
        if self._runtime is not None:
            await self._runtime.aclose()
        opened = [one.message.by for one in self._recording.events if isinstance(one, AnswerOpened)]
        voice = Voice(opened[0] if opened else "replay", self._recording, self._script)
        steering = Steering(Recording(self._events, self._session))
        speakers = [Speaker(name, self._script, self._clock) for name in plugins]
        runtime = steering.runtime = self._runtime = Runtime(
            voice,
            plugins=[*speakers, Prompter(self._script, self._clock), *([steering] if steering.said else [])],
            store=self._store,
            clock=self._clock,
            ids=self._ids,
            settings=settings_of(self._events),
        )
        for name in {one.options.model for one in self._events if isinstance(one, TurnStarted)} - {""}:
            runtime.add_model(voice.named(name))
        self._now = plugins
        await runtime.start()
        return runtime

    async def _comes(self, at: int) -> bool:
        """Wait until an event has happened; False when it does not."""
        script = self._script
        while not script.has_happened(at):
            if script.strayed is not None:
                return False
            heard = script.bell.strokes
            try:
                async with asyncio.timeout(PATIENCE):
                    await script.bell.after(heard)
            except TimeoutError:
                return False
        return True

    # What comes from outside -------------------------------------------------------------------------------------------

    async def _act(self, event: Event) -> None:
        """Do what led to an event, if somebody outside did."""
        match event:
            case TurnStarted(turn=turn):
                runtime = await self._open(self._plugins.get(turn, self._now))
                self._clock.reach(event.at)
                self._store.above = self._waiting_above(event)
                await runtime.command(self._send(event))
            case StepRestarted(turn=turn, step=step):
                await self._said(turn, step)
                self._script.said.discard((turn, step))
                await self._open(self._now, anew=True)
            case StepInterrupted(turn=turn, step=step) if _is_cut(event):
                await self._said(turn, step)
                await self._end(turn)
            case TurnEnding(turn=turn):
                await self._end(turn)
            case GateAnswered(verdict=verdict) if verdict.by == "everturn":
                self._clock.reach(max(event.at, self._gates[event.gate].expires))
            case LimitReached(limit="seconds"):
                self._clock.reach(event.at)
            case _:
                if (command := self._command(event)) is not None:
                    runtime = await self._open(self._now)
                    self._clock.reach(event.at)
                    for other in self._at_once(event):
                        await self._store.admit(replace(other, at=self._clock.now()))
                    await runtime.command(replace(command, at=self._clock.now()))

    def _at_once(self, event: Event) -> Iterator[AnyCommand]:
        """Answers that were written one behind the other: the door had them all before anybody acted on the first."""
        events = self._script.events
        for one in events[next(at for at, one in enumerate(events) if one is event) :]:
            if not isinstance(one, GateAnswered) or (command := self._command(one)) is None:
                return
            yield command

    def _send(self, event: TurnStarted) -> Send:
        said = event.input
        return Send(
            key=event.command or f"send-{event.turn}",
            session=self._session,
            at=self._clock.now(),
            turn=event.turn,
            message="" if said is None else said.id,
            parts=None if said is None else said.parts,
            parent=event.parent,
            options=event.options,
        )

    def _command(self, event: Event) -> AnyCommand | None:
        """What somebody asked for."""
        session, key = self._session, str(getattr(event, "command", "")) or "again"
        match event:
            case GateAnswered(gate=gate, verdict=verdict) if not verdict.by.startswith("plugin:"):
                return Answer(key=key, session=session, gate=gate, hash=self._gates[gate].hash, verdict=verdict)
            case GateClaimed(gate=gate, claim=claim):
                lease = max(claim.until - event.at, LEASE)
                return Take(key=key, session=session, gate=gate, hash=self._gates[gate].hash, by=claim.by, lease=lease)
            case LateArrived(turn=turn, call=call, output=output):
                return Late(key=f"late-{call}", session=session, turn=turn, call=call, output=output)
            case CallStirred(turn=turn, call=call):
                return Stir(key=key, session=session, turn=turn, call=call)
            case LeafSelected(message=message):
                return Select(key=key, session=session, message=message)
            case MessageDeleted(message=message):
                return Delete(key=key, session=session, message=message)
            case GrantRevoked(grant=grant, by=by):
                return Revoke(key=key, session=session, grant=grant, by=by)
            case RevertStarted(root=root, after=tree, key=key):
                done = (one for one in self._events if isinstance(one, FilesReverted) and one.command == key)
                by = next((one.by for one in done), "")
                return Revert(key=key, session=session, root=root, tree=tree, by=by)
            case _:
                return None

    async def _said(self, turn: str, step: int) -> None:
        """Wait until the model has said all it had said when it was stopped."""
        script = self._script
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while (turn, step) not in script.said and script.strayed is None:
                    await script.bell.after(script.bell.strokes)

    async def _end(self, turn: str) -> None:
        """End a turn as somebody, or its time, has ended it."""
        ending = next(one for one in self._events if isinstance(one, TurnEnding) and one.turn == turn)
        if ending.outcome == "cancelled":
            if (step := self._open_step(turn)) is not None:
                await self._said(turn, step)
            self._clock.reach(ending.at)
            runtime = await self._open(self._now)
            await runtime.command(
                Cancel(
                    key=ending.command or f"cancel-{turn}",
                    session=self._session,
                    at=self._clock.now(),
                    turn=turn,
                    hard=ending.hard,
                )
            )
        elif ending.problem is not None and ending.problem.kind == "deadline":
            started = next(one for one in self._events if isinstance(one, TurnStarted) and one.turn == turn)
            self._clock.reach(max(ending.at, started.at + started.options.timeout))

    def _open_step(self, turn: str) -> int | None:
        """The step in which a turn was stopped before its model had said a word."""
        steps = [one for one in self._events if getattr(one, "turn", "") == turn and getattr(one, "step", 0)]
        last = steps[-1] if steps else None
        return last.step if isinstance(last, StepStarted) else None


def _is_cut(event: StepInterrupted) -> bool:
    return event.finish == "cancelled" or (event.problem is not None and event.problem.kind == "deadline")


def _start_of(recording: Recording) -> int:
    """Where the playing begins: what lay before the turn is laid down as it was, unless something of it still ran."""
    starts = (at for at, one in enumerate(recording.events) if isinstance(one, TurnStarted))
    if not recording.turn:
        return 0
    at = next((at for at in starts if _turn(recording.events[at]) == recording.turn), 0)
    turns: dict[str, list[Event]] = {}
    for event in recording.events[:at]:
        turns.setdefault(_turn(event), []).append(event)
    states = [fold(log) for turn, log in turns.items() if turn]
    return 0 if any(state.out or not state.phase.is_terminal for state in states) else at


def _turn(event: Event) -> str:
    return str(getattr(event, "turn", ""))


class _Ids:
    """The names that answers were given, in that order; and others for what has no place in the log."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._given = [one.message.id for one in events if isinstance(one, AnswerOpened)][::-1]
        self._new = CountingIds("again_")

    def new(self, kind: str) -> str:
        return self._given.pop() if kind == "msg" and self._given else self._new.new(kind)
