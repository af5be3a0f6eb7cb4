"""Turn: one turn of the library API: stream its events, await its result, answer its gates, cancel it."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Unpack

from msgspec import Struct

from everturn.chat.replies import GateReply, answer_gate
from everturn.chat.unanswered_gates import UnansweredWarning
from everturn.core.accounts import LOCAL
from everturn.core.commands import Cancel, Send
from everturn.core.deltas import Cursor, TurnItem, TurnReader
from everturn.core.events import MessageAdded, Problem, SubagentStarted, TurnCancelled, TurnCompleted, TurnFailed
from everturn.core.gates import Gate
from everturn.core.messages import Message
from everturn.core.parts import Usage, final_text
from everturn.core.state import Phase, TurnState, fold
from everturn.driver.commands import CANCELLED_BEFORE_START
from everturn.errors import CommandRefused, HookError, TurnError, UnknownSession, UnknownTurn
from everturn.runtime import Runtime

CHECK_PAUSE = 0.02  # seconds between two checks for a sub-agent run that is being requested


class TurnResult(Struct, frozen=True):
    """The result of a finished turn. `messages` are its own: the input, the answers, and messages of plugins."""

    turn: str
    phase: Phase
    messages: tuple[Message, ...]
    usage: Usage
    reports: tuple[Problem, ...] = ()

    @property
    def message(self) -> Message | None:
        """The last answer."""
        answers = [message for message in self.messages if message.role == "assistant"]
        return answers[-1] if answers else None

    @property
    def text(self) -> str:
        """The final text: that of the last step of the last answer."""
        return final_text(self.message.parts) if self.message is not None else ""


class EventStream:
    """A reader of a turn; another reader can continue from its `cursor`."""

    def __init__(self, runtime: Runtime, session: str, reader: TurnReader) -> None:
        self._reader = reader
        self._shown = runtime.follow(session, reader)

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
        self, runtime: Runtime, session: str, turn: str, key: str = "", tenant: str = LOCAL, otherwise: str = ""
    ) -> None:
        self._runtime, self.session, self.id, self._key, self.tenant = runtime, session, turn, key, tenant
        self._otherwise = otherwise  # the turn that its message starts, if this one ends without it
        self.message = ""  # the id of the message that started it or will join it, for its sender; "" for a re-run
        self.is_new = True  # False: the same message was sent before with this key

    def events(self, after: Cursor | str | None = None) -> EventStream:
        """Show the turn from its beginning, or from a cursor."""
        cursor = Cursor.parse(after) if isinstance(after, str) else after
        return EventStream(self._runtime, self.session, TurnReader(self.id, cursor))

    def __aiter__(self) -> EventStream:
        """Show the turn as it happens: log events, and deltas between them."""
        return self.events()

    def __await__(self) -> Generator[Any, None, TurnResult]:
        """Wait until the turn is over, and return its result. If it waits for a person, a warning is logged.

        Raises:
            TurnError: the turn failed. If it failed in this process, `__cause__` is the exception of the plugin or
                the model; otherwise the log has only its text.
            ExceptionGroup: clean-ups failed; it includes the turn's own error, if it had one.
        """
        return self._collect().__await__()

    async def _collect(self) -> TurnResult:
        warning = UnansweredWarning(self._runtime, self.session, self.id)
        try:
            async for shown in self:
                warning.process(shown)
            entries = await self._runtime.store.events(self.session, turn=self.id)
        except UnknownSession:  # the session is created by its first message
            entries = []
        finally:
            warning.stop()
        if not entries:
            return await self._never_began()
        state = fold(entry.event for entry in entries)
        if self._otherwise and self.message not in state.messages:
            return await Turn(self._runtime, self.session, self._otherwise, self._key, self.tenant)
        terminal = next(
            entry.event for entry in entries if isinstance(entry.event, TurnCompleted | TurnFailed | TurnCancelled)
        )
        turn_error: TurnError | None = None
        if isinstance(terminal, TurnFailed):
            turn_error = (HookError if terminal.problem.kind == "hook" else TurnError)(
                terminal.problem.text, terminal.problem.kind
            )
            error = self._runtime.tool_tasks.error_of(self.id)
            turn_error.__cause__ = error if error is None or error.__cause__ is None else error.__cause__
        cleanup_errors: list[Exception] = [
            HookError(report.text, report.kind) for report in terminal.reports if report.kind == "clean-up"
        ]
        if cleanup_errors:
            raise ExceptionGroup(
                "clean-ups failed when the turn ended", [turn_error, *cleanup_errors] if turn_error else cleanup_errors
            )
        if turn_error is not None:
            raise turn_error
        return TurnResult(self.id, state.phase, tuple(state.messages.values()), terminal.usage, terminal.reports)

    async def _never_began(self) -> TurnResult:
        reason = await self._runtime.find_drop_reason(self.session, self._key) if self._key else None
        if reason is None and self._key and (joined := await self._joined()):
            return await Turn(self._runtime, self.session, joined, tenant=self.tenant)
        if reason is None:
            raise UnknownTurn(f"there is no turn {self.id!r} in this session")
        if reason != CANCELLED_BEFORE_START:
            raise CommandRefused(reason)
        return TurnResult(self.id, Phase.CANCELLED, (), Usage())

    async def _joined(self) -> str:
        """The turn that its message has joined instead; "" if none."""
        for entry in reversed(await self._runtime.store.events(self.session)):
            if isinstance(entry.event, MessageAdded) and entry.event.command == self._key:
                return entry.event.turn
        return ""

    async def children(self, begun: SubagentStarted) -> Turn:
        """The sub-agent run of an event of this turn, as soon as it can be followed.

        Raises:
            UnknownTurn: the run was never started.
        """
        while not await self._is_asked_for(begun):
            state = await self.state()
            call = state.calls.get(begun.call)
            is_gone = call is None or call.is_finished or state.phase.is_terminal
            if is_gone and not await self._is_asked_for(begun):
                raise UnknownTurn(f"the sub-agent run {begun.child!r} was never begun")
            await asyncio.sleep(CHECK_PAUSE)
        return Turn(self._runtime, begun.session, begun.child, tenant=self.tenant)

    async def _is_asked_for(self, begun: SubagentStarted) -> bool:
        # The event is written first, so that after a crash in between the same run is started.
        store = self._runtime.store
        try:
            inbox = await store.inbox(begun.session)
            is_queued = any(isinstance(command, Send) and command.turn == begun.child for command in inbox)
            return is_queued or bool(await store.events(begun.session, turn=begun.child))
        except UnknownSession:
            return False

    async def state(self) -> TurnState:
        """The present state of the turn, from its log; idle before its start."""
        entries = await self._runtime.store.events(self.session, turn=self.id)
        return fold(entry.event for entry in entries) if entries else TurnState(self.id)

    async def cancel(self, *, hard: bool = False, key: str | None = None) -> None:
        """Cancel the turn. Its tools continue and deliver late results, unless `hard` cancels them too."""
        runtime = self._runtime
        key, now = key or runtime.ids.new("cmd"), runtime.clock.now()
        await runtime.command(
            Cancel(key=key, session=self.session, tenant=self.tenant, at=now, turn=self.id, hard=hard)
        )

    async def answer(self, gate: Gate, **reply: Unpack[GateReply]) -> None:
        """Answer a gate: `allow="once"`, with other `arguments` if you like, or `deny="a reason the model reads"`.

        `allow="always"` stores the first of `gate.offers` as a grant, or the offer that you pass instead, for this
        session (or `everywhere`, `until` a time). With a `result` the tool does not run: you ran it yourself, and this
        is its result. For a result under review, `allow="once"` sends it, `text` sends a redacted version, and `deny`
        withholds it. A denial with `others` also denies the other calls that wait for approval in this session.

        Raises:
            BadArguments: the edited arguments do not fit the tool; nothing was answered.
            UnknownGate, HashMismatch, AnswerUnfit, AnsweredOtherwise, GateExpired, GateClosed: the answer was refused.
        """
        await answer_gate(self._runtime, self.session, self.tenant, gate, reply)
