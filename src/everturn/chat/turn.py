"""Turn: one turn of the library API: stream its events, await its result, answer its gates, cancel it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import aclosing
from typing import Any, Unpack

from everturn.base_app import BaseApp
from everturn.chat.replies import GateReply, answer_gate
from everturn.chat.result import PendingGate, PendingWait, RunResult, RunStatus
from everturn.chat.unanswered_gates import UnansweredWarning
from everturn.core.calls import CallRecord
from everturn.core.commands import Cancel, FinishWait, Send
from everturn.core.deltas import Cursor, TurnItem, TurnReader
from everturn.core.events import (
    Entry,
    GateOpened,
    MessageAdded,
    SubagentStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnSuspended,
)
from everturn.core.gates import Gate
from everturn.core.phases import Phase
from everturn.core.state import TurnState, fold
from everturn.core.tenants.accounts import LOCAL
from everturn.driver.commands import CANCELLED_BEFORE_START
from everturn.errors import CommandRefused, HookError, StillWaiting, TurnError, UnknownSession, UnknownTurn
from everturn.running.subagent_index import active_subagent_sessions


class EventStream:
    """A reader of a turn; another reader can continue from its `cursor`."""

    def __init__(self, app: BaseApp, session: str, reader: TurnReader) -> None:
        self._reader = reader
        self._shown = app.follow(session, reader)

    @property
    def cursor(self) -> Cursor:
        """The position after the last item; `str(cursor)` can be stored anywhere."""
        return self._reader.cursor

    def __aiter__(self) -> EventStream:
        """Iterate over the events and deltas."""
        return self

    async def __anext__(self) -> TurnItem:
        """The next event or delta."""
        return await anext(self._shown)

    async def aclose(self) -> None:
        """Stop reading. The turn continues."""
        await self._shown.aclose()


class Turn:
    """A turn: stream it, await it, answer its gates, cancel it. It runs even if no reader follows it."""

    def __init__(
        self, app: BaseApp, session: str, turn: str, key: str = "", tenant: str = LOCAL, otherwise: str = ""
    ) -> None:
        self._app, self.session, self.id, self._key, self.tenant = app, session, turn, key, tenant
        self._otherwise = otherwise  # the turn that its message starts, if this one ends without it
        self.message = ""  # the id of the message that started it or will join it, for its sender; "" for a re-run
        self.is_new = True  # False: the same message was sent before with this key
        self.compared: tuple[Turn, ...] = ()  # the other answers to its message, for its sender: `compare_with`

    def events(self, after: Cursor | str | None = None) -> EventStream:
        """Show the turn from its beginning, or from a cursor."""
        cursor = Cursor.parse(after) if isinstance(after, str) else after
        return EventStream(self._app, self.session, TurnReader(self.id, cursor))

    def __aiter__(self) -> EventStream:
        """Show the turn as it happens: log events, and deltas between them."""
        return self.events()

    def _log(self, after: Cursor | None = None) -> EventStream:
        """The events alone: who waits for the result has no use for deltas."""
        return EventStream(self._app, self.session, TurnReader(self.id, after, is_log_only=True))

    def __await__(self) -> Generator[Any, None, RunResult[Any]]:
        """Wait until the turn is over, and return its result. If it waits for a person, a warning is logged.

        Raises:
            TurnError: the turn failed. If it failed in this process, `__cause__` is the exception of the plugin or
                the model; otherwise the log has only its text.
            ExceptionGroup: clean-ups failed; it includes the turn's own error, if it had one.
        """
        return self._collect().__await__()

    async def _collect(self) -> RunResult[Any]:
        warning = UnansweredWarning(self._app, self.session, self.id)
        try:
            async for shown in self._log():
                warning.process(shown)
        except UnknownSession:
            pass
        finally:
            warning.stop()
        return await self._conclude()

    async def _conclude(self) -> RunResult[Any]:
        """The result of a turn that is over, from its log."""
        try:
            entries = await self._app.store.events(self.session, turn=self.id)
        except UnknownSession:  # the session is created by its first message
            entries = []
        if not entries:
            return await self._never_began()
        state = fold(entry.event for entry in entries)
        if self._otherwise and self.message not in state.messages:
            return await Turn(self._app, self.session, self._otherwise, self._key, self.tenant)
        terminal = next(
            entry.event for entry in entries if isinstance(entry.event, TurnCompleted | TurnFailed | TurnCancelled)
        )
        return self._ended(state, terminal, entries)

    def _ended(
        self, state: TurnState, terminal: TurnCompleted | TurnFailed | TurnCancelled, entries: Sequence[Entry]
    ) -> RunResult[Any]:
        """The result of a turn that is over; raises if it failed."""
        result = RunResult[Any](
            session=self.session,
            turn=self.id,
            phase=state.phase,
            status=_status(state),
            messages=tuple(state.messages.values()),
            usage=terminal.usage,
            reports=terminal.reports,
            state=state,
            entries=entries,
            parse=self._parser(state),
        )
        turn_error: TurnError | None = None
        if isinstance(terminal, TurnFailed):
            turn_error = (HookError if terminal.problem.kind == "hook" else TurnError)(
                terminal.problem.text, terminal.problem.kind, terminal.problem.phase
            )
            turn_error.result = result
            error = self._app.tool_tasks.error_of(self.id)
            turn_error.__cause__ = error if error is None or error.__cause__ is None else error.__cause__
        cleanup_errors: list[Exception] = [
            HookError(report.text, report.kind, report.phase)
            for report in terminal.reports
            if report.kind == "clean-up"
        ]
        if cleanup_errors:
            raise ExceptionGroup(
                "cleanup functions failed at the end of the turn",
                [turn_error, *cleanup_errors] if turn_error else cleanup_errors,
            )
        if turn_error is not None:
            raise turn_error
        return result

    def _parser(self, state: TurnState) -> Callable[[str], Any] | None:
        """The parser of the output of the agent that had the turn last; None: its output is the text."""
        if not state.options.agent or state.options.agent not in self._app.agents:
            return None
        output = self._app.binding(state.options.agent).definition.output
        return None if output is None else output.parse

    async def result(self, wait: float | None = None) -> RunResult[Any]:
        """Wait until the turn has ended or is suspended, and return its result.

        With `wait` it also waits that many seconds for timers and external results.

        Raises:
            TurnError: the turn failed.
        """
        return await self._settle(None, wait)

    async def _settle(self, after: Cursor | None, wait: float | None) -> RunResult[Any]:
        """Follow the turn from a position to its end, or to its next wait."""
        events, loop = self._log(after), asyncio.get_running_loop()
        deadline = None if wait is None else loop.time() + wait
        try:
            while True:
                try:
                    if deadline is None:
                        shown = await anext(events)
                    else:
                        async with asyncio.timeout_at(deadline):
                            shown = await anext(events)
                except TimeoutError:  # the reader was cancelled; another one continues
                    shown, deadline, events = None, None, self._log(events.cursor)
                if shown is not None and not isinstance(shown, TurnSuspended | GateOpened):
                    continue
                state = await self.state()
                gates = await self._unanswered_gates(state) if is_waiting(state) else None
                if gates is None or (deadline is not None and not gates):
                    continue  # something has been resolved, or may be in time
                entries = await self._app.store.events(self.session, turn=self.id)
                return self._waiting(state, gates, events.cursor, entries)
        except (StopAsyncIteration, UnknownSession):
            return await self._conclude()
        finally:
            await events.aclose()

    def _waiting(self, state: TurnState, gates: list[Gate], cursor: Cursor, entries: Sequence[Entry]) -> RunResult[Any]:
        names = {gate.id for gate in gates}

        async def resume(wait: float | None) -> RunResult[Any]:
            now = await self.state()
            still = await self._unanswered_gates(now) if is_waiting(now) else None
            has_timer = any(open_wait.kind == "timer" for open_wait in now.waits.values())
            if (
                still is not None
                and names <= {gate.id for gate in still}
                and now.waits == state.waits
                and not has_timer
            ):
                raise StillWaiting(f"nothing that this run waits for has been resolved: {_open_things(gates, now)}")
            return await self._settle(cursor, wait)

        return RunResult(
            session=self.session,
            turn=self.id,
            phase=state.phase,
            status="waiting",
            messages=tuple(state.messages.values()),
            usage=state.usage,
            gates=tuple(PendingGate(gate, self, self._app.call_sync) for gate in gates),
            waits=tuple(PendingWait(wait.kind, wait.call, wait.until) for wait in state.waits.values()),
            state=state,
            entries=entries,
            resume=resume,
            sync=self._app.call_sync,
        )

    async def _unanswered_gates(self, state: TurnState) -> list[Gate] | None:
        """The open gates of the turn and its sub-agent runs; None if an answer to one is admitted, and not in effect yet."""
        store, states = self._app.store, {self.session: [state]}
        for session in await active_subagent_sessions(store, self.session, [state]):
            logs = [await store.events(session, turn=turn) for turn in await store.open_turns(session)]
            states[session] = [fold(entry.event for entry in log) for log in logs if log]
        gates: list[Gate] = []
        for session, of_session in states.items():
            unanswered = {row.gate.id: row.gate for row in await store.gates(session)}
            for turn_state in of_session:
                open_gates = [name for name in turn_state.gates if turn_state.is_gate_open(name)]
                if not is_waiting(turn_state) or any(name not in unanswered for name in open_gates):
                    return None
                gates += [unanswered[name] for name in open_gates]
            if any(isinstance(command, FinishWait) for command in await store.inbox(session)):
                return None
        return gates

    async def _never_began(self) -> RunResult[Any]:
        reason = await self._app.find_drop_reason(self.session, self._key) if self._key else None
        if reason is None and self._key and (joined := await self._joined()):
            return await Turn(self._app, self.session, joined, tenant=self.tenant)
        if reason is None:
            raise UnknownTurn(f"there is no turn {self.id!r} in this session")
        if reason != CANCELLED_BEFORE_START:
            raise CommandRefused(reason)
        return RunResult(session=self.session, turn=self.id, phase=Phase.CANCELLED, status="cancelled")

    async def _joined(self) -> str:
        """The turn that its message has joined instead; "" if none."""
        for entry in await self._app.store.indexed_events(self.session, "command", self._key):
            if isinstance(entry.event, MessageAdded):
                return entry.event.turn
        return ""

    async def children(self, event: SubagentStarted) -> Turn:
        """The sub-agent run of an event of this turn, as soon as it can be followed.

        Raises:
            UnknownTurn: the run was never started.
        """
        async with aclosing(self._app.watch_turns((event.session, event.child), (self.session, self.id))) as news:
            async for _ in news:
                if await self._is_asked_for(event):
                    break
                state = await self.state()
                call = state.calls.get(event.call)
                is_gone = call is None or call.is_finished or state.phase.is_terminal
                if is_gone and not await self._is_asked_for(event):
                    raise UnknownTurn(f"the sub-agent run {event.child!r} never started")
        return Turn(self._app, event.session, event.child, tenant=self.tenant)

    async def _is_asked_for(self, event: SubagentStarted) -> bool:
        # The event is written first, so that after a crash in between the same run is started.
        store = self._app.store
        try:
            inbox = await store.inbox(event.session)
            is_queued = any(isinstance(command, Send) and command.turn == event.child for command in inbox)
            return is_queued or bool(await store.events(event.session, turn=event.child))
        except UnknownSession:
            return False

    async def state(self) -> TurnState:
        """The present state of the turn, from its log; idle before its start.

        Raises:
            UnknownSession: there is no such session.
            UnknownTurn: no message has started it.
        """
        store = self._app.store
        inbox = await store.inbox(self.session)  # first: a message that is processed meanwhile is then in the log
        if entries := await store.events(self.session, turn=self.id):
            return fold(entry.event for entry in entries)
        is_queued = any(isinstance(command, Send) and command.turn == self.id for command in inbox)
        if not is_queued and not await store.has_turn_command(self.session, self.id):
            raise UnknownTurn(f"there is no turn {self.id!r} in this session")
        return TurnState(self.id)

    async def cancel(self, *, hard: bool = False, key: str | None = None) -> None:
        """Cancel the turn. Its tools continue and deliver late results, unless `hard` cancels them too."""
        app = self._app
        key, now = key or app.ids.new("cmd"), app.clock.now()
        await app.command(Cancel(key=key, session=self.session, tenant=self.tenant, at=now, turn=self.id, hard=hard))

    async def answer(self, gate: Gate, **reply: Unpack[GateReply]) -> bool:
        """Answer a gate: `allow="once"`, with other `arguments` if you like, or `deny="a reason the model reads"`.

        `allow="always"` stores the first of `gate.offers` as a grant, or the offer that you pass instead, for this
        session (or `everywhere`, `within` the turns of the same "user" or "folder", `until` a time). With a `result` the tool does not run: you ran it yourself, and this
        is its result. For a result under review, `allow="once"` sends it, `text` sends a redacted version, and `deny`
        withholds it. A denial with `others` also denies the other calls that wait for approval in this session;
        with `stop` it ends the turn without another model request.

        Raises:
            BadArguments: the edited arguments do not fit the tool; nothing was answered.
            UnknownGate, HashMismatch, AnswerUnfit, AnsweredOtherwise, GateExpired, GateClosed: the answer was refused.
        """
        return await answer_gate(self._app, self.session, self.tenant, gate, reply)

    def __getattr__(self, name: str) -> Any:
        """Say what to do with a turn that is used like its result."""
        if name in RESULT_ATTRIBUTES:
            raise AttributeError(
                f"a Turn is a handle and has no {name}. `result = await turn.result()`, then result.{name}"
            )
        raise AttributeError(f"'Turn' object has no attribute {name!r}")


RESULT_ATTRIBUTES = ("output", "text", "messages", "usage", "gates", "status", "waiting_for", "resume")


def _status(state: TurnState) -> RunStatus:
    if state.phase is Phase.ERROR:
        return "failed"
    if state.phase is Phase.CANCELLED:
        return "cancelled"
    if state.refusal is not None:
        return "refused"
    return "completed" if state.limit is None and not state.is_stopped else "limited"


def _open_things(gates: Sequence[Gate], state: TurnState) -> str:
    questions = [f"{gate.kind} of {gate.tool} (approve, deny or submit it)" for gate in gates]
    external = [f"an external result for call {wait.call} (app.complete)" for wait in state.waits.values()]
    return ", ".join([*questions, *external])


def is_waiting(state: TurnState) -> bool:
    """Whether nothing happens in a turn until somebody answers: it is suspended, or a tool in memory waits."""
    if state.phase is not Phase.TOOL_CALL:
        return state.phase is Phase.WAITING
    open_gates = {gate.call for name, gate in state.gate_details.items() if state.is_gate_open(name)}

    def waits(call: CallRecord) -> bool:
        if call.state in ("asking", "reviewing", "waiting") or call.id in open_gates:
            return True
        below = [other for other in state.open_calls if other.parent == call.id]
        return bool(below) and all(map(waits, below))

    return bool(open_gates) and all(map(waits, state.open_calls))
