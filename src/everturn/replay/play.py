"""Full replay: runs a recorded session again, offline. The runtime is real; everything outside of it comes from the
recording.

The model repeats its answers, plugins and tools write what they wrote, and the messages, gate resolutions, claims,
cancellations and late results from outside come again when the log has reached the same position. Nothing outside of
this process is contacted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from everturn.core.commands import (
    AnyCommand,
    Cancel,
    ClaimCall,
    Delete,
    FinishWait,
    ImportMessages,
    LateResult,
    NotifyCall,
    RateAnswer,
    ResolveGate,
    Revert,
    Revoke,
    Select,
    SelectAgent,
    Send,
    SetInstructions,
    UpdateSession,
)
from everturn.core.events import (
    AgentSelected,
    AnswerRated,
    AnswerStarted,
    CallClaimed,
    CallNotified,
    Event,
    FilesReverted,
    FileUploadChanged,
    GateOpened,
    GateResolved,
    GrantRevoked,
    InstructionsSet,
    LateResultReceived,
    LeafSelected,
    LimitReached,
    MessageDeleted,
    MessagesImported,
    RequestRetried,
    RevertStarted,
    SessionUpdated,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    SubagentStarted,
    TurnFinishing,
    TurnStarted,
    WaitFinished,
)
from everturn.core.messages import Message
from everturn.core.state import fold
from everturn.errors import EverturnError
from everturn.replay.check import check_replayable, flatten_recordings
from everturn.replay.model import RecordedTurnModel
from everturn.replay.plugins import RecordedClock, RecordedHooks, RecordedPlugin, RecordedStore, derive_settings
from everturn.replay.recording import Recording
from everturn.replay.replay_app import ReplayApp
from everturn.replay.script import ReplayScript, plugins_by_turn
from everturn.replay.steering_messages import Steering
from everturn.testing.doubles import CountingIds

PATIENCE: Final = 20.0  # seconds without an event after which a replay is given up
LEASE: Final = 1.0  # seconds; the shortest lease of a claim

Watch = Callable[[Event], None]


async def replay_offline(recording: Recording, watch: Watch | None = None) -> Recording:
    """Replay a recording with nothing but the recording, and record the result.

    `watch` is called with each event as it happens.

    Raises:
        ConfigError: this recording cannot be replayed; the text says why.
    """
    check_replayable(recording)
    played = await _SessionPlayer(recording, (), watch).play()
    sessions = flatten_recordings(recording)
    children = [await _SessionPlayer(child, sessions, watch).play() for child in sessions[1:]]
    return replace(played, below=tuple(children))


class _SessionPlayer:
    """Replays one session."""

    def __init__(self, recording: Recording, above: Sequence[Recording], watch: Watch | None) -> None:
        self._recording, self._above, self._session = recording, above, recording.session
        start = _start_of(recording)
        self._before = recording.events[:start]
        # A replay uploads nothing to a vendor.
        self._events = tuple(event for event in recording.events[start:] if not isinstance(event, FileUploadChanged))
        self._script = ReplayScript(self._events)
        self._clock = RecordedClock(self._events[0].at)
        self._store = RecordedStore(self._session, self._script, watch)
        self._ids = _AnswerIds(self._events)
        self._plugins = plugins_by_turn(self._events)
        self._active_plugins: tuple[str, ...] = ()  # plugins of the current runtime
        self._app: ReplayApp | None = None
        self._gates = {event.gate.id: event.gate for event in self._events if isinstance(event, GateOpened)}

    async def play(self) -> Recording:
        """Replay everything until the end, or until the log diverges."""
        try:
            if self._before:
                await self._store.restore(self._session, "local", self._before)
            for at, event in enumerate(self._script.events):
                if not self._script.has_happened(at):
                    with suppress(EverturnError):  # the comparison reports it as a difference
                        await self._act(event)
                if not await self._wait_for(at):
                    break
            log = await self._store.events(self._session) if self._app is not None else []
        finally:
            if self._app is not None:
                await self._app.aclose()
        return Recording(tuple(entry.event for entry in log), self._session, self._recording.turn)

    def _parent_logs(self, started: TurnStarted) -> dict[str, Sequence[Event]]:
        """Return the logs of the parent sessions, up to the start of this sub-agent: its call waits for it there."""
        parent = started.options.lineage
        logs: dict[str, Sequence[Event]] = {}
        for name in {parent.session, parent.by[0]} if parent is not None else ():
            log = next((item.events for item in self._above if item.session == name), ())
            positions = (
                at for at, item in enumerate(log, 1) if isinstance(item, SubagentStarted) and item.child == started.turn
            )
            logs[name] = log[: next(positions, len(log))]
        return logs

    async def _open(self, plugins: tuple[str, ...], anew: bool = False) -> ReplayApp:
        """Return a runtime with the plugins of a turn; a new one if they differ from the last, or if the process died."""
        if self._app is not None and plugins == self._active_plugins and not anew:
            return self._app
        if self._app is not None:
            await self._app.aclose()
        model_names = [event.message.by for event in self._recording.events if isinstance(event, AnswerStarted)]
        model = RecordedTurnModel(model_names[0] if model_names else "replay", self._recording, self._script)
        steering = Steering(Recording(self._events, self._session))
        speakers = [RecordedPlugin(name, self._script, self._clock) for name in plugins]
        app = steering.app = self._app = ReplayApp(
            model,
            plugins=[*speakers, RecordedHooks(self._script, self._clock), *([steering] if steering.messages else [])],
            store=self._store,
            clock=self._clock,
            ids=self._ids,
            settings=derive_settings(self._events),
        )
        for name in {event.options.model for event in self._events if isinstance(event, TurnStarted)} - {""}:
            app.add_model(model.with_name(name))
        self._active_plugins = plugins
        await app.start()
        return app

    async def _wait_for(self, at: int) -> bool:
        """Wait until an event has happened; False if it does not happen."""
        script = self._script
        while not script.has_happened(at):
            if script.first_unrecorded is not None:
                return False
            strokes = script.notifier.count
            try:
                async with asyncio.timeout(PATIENCE):
                    await script.notifier.wait_beyond(strokes)
            except TimeoutError:
                return False
        return True

    # Events from outside ---------------------------------------------------------------------------------------------

    async def _act(self, event: Event) -> None:
        """Cause an event again, if it came from outside."""
        match event:
            case TurnStarted(turn=turn):
                app = await self._open(self._plugins.get(turn, self._active_plugins))
                self._clock.advance_to(event.at)
                self._store.parent_logs = self._parent_logs(event)
                await app.command(self._send(event))
            case StepRestarted(turn=turn, step=step):
                await self._wait_for_model(turn, step)
                self._script.spoken_steps.discard((turn, step))
                await self._open(self._active_plugins, anew=True)
            case StepInterrupted(turn=turn, step=step) if _is_interrupted(event):
                await self._wait_for_model(turn, step)
                await self._end(turn)
            case TurnFinishing(turn=turn):
                await self._end(turn)
            case GateResolved(resolution=resolution) if resolution.by == "everturn":
                self._clock.advance_to(max(event.at, self._gates[event.gate].expires))
            case LimitReached(limit="seconds"):
                self._clock.advance_to(event.at)
            case _:
                if (command := self._command(event)) is not None:
                    app = await self._open(self._active_plugins)
                    self._clock.advance_to(event.at)
                    for other in self._concurrent_resolutions(event):
                        await self._store.admit(replace(other, at=self._clock.now()))
                    await app.command(replace(command, at=self._clock.now()))

    def _concurrent_resolutions(self, event: Event) -> Iterator[AnyCommand]:
        """Yield the commands for gate resolutions that follow each other in the log: all were admitted before the first
        was handled."""
        events = self._script.events
        for item in events[next(at for at, item in enumerate(events) if item is event) :]:
            if not isinstance(item, GateResolved) or (command := self._command(item)) is None:
                return
            yield command

    def _send(self, event: TurnStarted) -> Send:
        message = event.input
        return Send(
            key=event.command or f"send-{event.turn}",
            session=self._session,
            at=self._clock.now(),
            turn=event.turn,
            message="" if message is None else message.id,
            parts=None if message is None else message.parts,
            parent=event.parent,
            options=event.options,
        )

    def _command(self, event: Event) -> AnyCommand | None:  # noqa: C901 - one case for each command
        """Return the command that led to an event, if there was one."""
        session, key = self._session, str(getattr(event, "command", "")) or "again"
        match event:
            case GateResolved(gate=gate, resolution=resolution) if not resolution.by.startswith("plugin:"):
                return ResolveGate(
                    key=key, session=session, gate=gate, hash=self._gates[gate].hash, resolution=resolution
                )
            case CallClaimed(gate=gate, claim=claim):
                lease = max(claim.until - event.at, LEASE)
                return ClaimCall(
                    key=key, session=session, gate=gate, hash=self._gates[gate].hash, by=claim.by, lease=lease
                )
            case LateResultReceived(turn=turn, call=call, output=output):
                return LateResult(key=f"late-{call}", session=session, turn=turn, call=call, output=output)
            case CallNotified(turn=turn, call=call):
                return NotifyCall(key=key, session=session, turn=turn, call=call)
            case WaitFinished(turn=turn, call=call, wait=wait, value=value, timed_out=timed_out):
                return FinishWait(
                    key=key, session=session, turn=turn, call=call, wait=wait, value=value, timed_out=timed_out
                )
            case LeafSelected(message=message):
                return Select(key=key, session=session, message=message)
            case AgentSelected(agent=agent, by=by):
                return SelectAgent(key=key, session=session, agent=agent, by=by)
            case InstructionsSet(text=text, by=by):
                return SetInstructions(key=key, session=session, text=text, by=by)
            case SessionUpdated():
                return update_command(event, session)
            case AnswerRated():
                return rating_command(event, session)
            case MessageDeleted(message=message):
                return Delete(key=key, session=session, message=message)
            case MessagesImported(messages=messages, by=by):
                parent = messages[0].parent if messages else None
                key = event.command or import_key(messages)
                return ImportMessages(key=key, session=session, messages=messages, parent=parent, by=by)
            case GrantRevoked(grant=grant, by=by):
                return Revoke(key=key, session=session, grant=grant, by=by)
            case RevertStarted(root=root, after=tree, key=key):
                reverts = (item for item in self._events if isinstance(item, FilesReverted) and item.command == key)
                by = next((item.by for item in reverts), "")
                return Revert(key=key, session=session, root=root, tree=tree, by=by)
            case _:
                return None

    async def _wait_for_model(self, turn: str, step: int) -> None:
        """Wait until the model has repeated everything up to its interruption."""
        script = self._script
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                while (turn, step) not in script.spoken_steps and script.first_unrecorded is None:
                    await script.notifier.wait_beyond(script.notifier.count)

    async def _end(self, turn: str) -> None:
        """End a turn by the recorded cancellation, or by its deadline."""
        ending = next(item for item in self._events if isinstance(item, TurnFinishing) and item.turn == turn)
        if ending.outcome == "cancelled":
            if (step := self._open_step(turn)) is not None:
                await self._wait_for_model(turn, step)
            self._clock.advance_to(ending.at)
            app = await self._open(self._active_plugins)
            await app.command(
                Cancel(
                    key=ending.command or f"cancel-{turn}",
                    session=self._session,
                    at=self._clock.now(),
                    turn=turn,
                    hard=ending.hard,
                )
            )
        elif ending.problem is not None and ending.problem.kind == "deadline":
            started = next(item for item in self._events if isinstance(item, TurnStarted) and item.turn == turn)
            self._clock.advance_to(max(ending.at, started.at + started.options.timeout))

    def _open_step(self, turn: str) -> int | None:
        """Return the step in which a turn was stopped before the first chunk of its model."""
        steps = [event for event in self._events if getattr(event, "turn", "") == turn and getattr(event, "step", 0)]
        last = steps[-1] if steps else None
        return last.step if isinstance(last, StepStarted | RequestRetried) else None


def _is_interrupted(event: StepInterrupted) -> bool:
    return event.finish == "cancelled" or (event.problem is not None and event.problem.kind == "deadline")


def _start_of(recording: Recording) -> int:
    """Return the position where the replay starts: earlier turns are restored from the log, unless one of them was
    still running."""
    starts = (at for at, item in enumerate(recording.events) if isinstance(item, TurnStarted))
    if not recording.turn:
        return 0
    at = next((at for at in starts if _turn(recording.events[at]) == recording.turn), 0)
    turns: dict[str, list[Event]] = {}
    for event in recording.events[:at]:
        turns.setdefault(_turn(event), []).append(event)
    states = [fold(log) for turn, log in turns.items() if turn]
    return 0 if any(state.still_running or not state.phase.is_terminal for state in states) else at


def _turn(event: Event) -> str:
    return str(getattr(event, "turn", ""))


class _AnswerIds:
    """The recorded ids of answers, in order; and new ones for what is not in the log."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._recorded = [event.message.id for event in events if isinstance(event, AnswerStarted)][::-1]
        self._new = CountingIds("again_")

    def new(self, kind: str) -> str:
        return self._recorded.pop() if kind == "msg" and self._recorded else self._new.new(kind)


def update_command(event: SessionUpdated, session: str) -> UpdateSession:
    """Return the command that an update of the session recorded."""
    return UpdateSession(
        key=event.command,
        session=session,
        title=event.title,
        pinned=event.pinned,
        archived=event.archived,
        labels=event.labels,
        parameters=event.parameters,
        by=event.by,
    )


def import_key(messages: Sequence[Message]) -> str:
    """The key of an import that no command of its own led to: a fork that a turn continues at once."""
    return f"import-{messages[0].id if messages else ''}"


def rating_command(event: AnswerRated, session: str) -> RateAnswer:
    """Return the command that a rating recorded."""
    return RateAnswer(
        key=event.command,
        session=session,
        message=event.message,
        rating=event.rating,
        reason=event.reason,
        by=event.by,
    )
