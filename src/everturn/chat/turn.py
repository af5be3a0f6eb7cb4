"""A turn from outside: to be watched, collected, answered or cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Unpack

from msgspec import Struct

from everturn.chat.answering import Reply, answer
from everturn.chat.unanswered import UnansweredWarning
from everturn.core.accounts import LOCAL
from everturn.core.asking import Gate
from everturn.core.commands import Cancel, Send
from everturn.core.deltas import Cursor, Reader, Shown
from everturn.core.events import CallBelow, MessageAdded, Problem, TurnCancelled, TurnCompleted, TurnFailed
from everturn.core.messages import Message
from everturn.core.parts import Usage, last_text
from everturn.core.state import Phase, TurnState, fold
from everturn.errors import CommandRefused, HookError, TurnError, UnknownSession, UnknownTurn
from everturn.turn.acting import NEVER_BEGAN
from everturn.wiring import Runtime

SOON = 0.02  # seconds between two looks for a sub-turn that is being asked for


class TurnResult(Struct, frozen=True):
    """A turn that is over. `messages` are its own: the input, the answers, what plugins appended."""

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
        """What was said in the end: the text of the last answer's last step."""
        return last_text(self.message.parts) if self.message is not None else ""


class Reading:
    """A reader of a turn; `cursor` is where it is, and where another one can go on."""

    def __init__(self, runtime: Runtime, session: str, reader: Reader) -> None:
        self._reader = reader
        self._shown = runtime.follow(session, reader)

    @property
    def cursor(self) -> Cursor:
        """The place after what was shown last; `str(cursor)` can be kept anywhere."""
        return self._reader.cursor

    def __aiter__(self) -> Reading:
        """Read on."""
        return self

    async def __anext__(self) -> Shown:
        """Show what is next."""
        return await anext(self._shown)

    async def aclose(self) -> None:
        """Stop reading. The turn does not mind."""
        await self._shown.aclose()


class Turn:
    """A turn, to be watched, collected, answered or cancelled. It runs whether or not anybody does."""

    def __init__(
        self, runtime: Runtime, session: str, turn: str, key: str = "", tenant: str = LOCAL, otherwise: str = ""
    ) -> None:
        self._runtime, self.session, self.id, self._key, self.tenant = runtime, session, turn, key, tenant
        self._otherwise = otherwise  # the turn that its message begins, if this one ends without it
        self.message = ""  # what began it or is to join it, for whoever has sent that; "" for a re-run
        self.is_new = True  # False: the same was sent before, with this key

    def events(self, after: Cursor | str | None = None) -> Reading:
        """Show the turn from its beginning, or from a cursor."""
        cursor = Cursor.parse(after) if isinstance(after, str) else after
        return Reading(self._runtime, self.session, Reader(self.id, cursor))

    def __aiter__(self) -> Reading:
        """Show the turn as it happens: log events, and deltas between them."""
        return self.events()

    def __await__(self) -> Generator[Any, None, TurnResult]:
        """Wait until the turn is over, and collect it. A turn that waits for a person is not over: a warning says so.

        Raises:
            TurnError: it ended in an error. If that was in this process, its `__cause__` is what was raised, by a
                plugin or the model; otherwise the log has only the text of it.
            ExceptionGroup: clean-ups failed; with the turn's own error, if it had one.
        """
        return self._collect().__await__()

    async def _collect(self) -> TurnResult:
        warning = UnansweredWarning(self._runtime, self.session, self.id)
        try:
            async for shown in self:
                warning.see(shown)
            entries = await self._runtime.store.events(self.session, turn=self.id)
        except UnknownSession:  # it begins with its first message
            entries = []
        finally:
            warning.stop()
        if not entries:
            return await self._never_began()
        state = fold(entry.event for entry in entries)
        if self._otherwise and self.message not in state.messages:
            return await Turn(self._runtime, self.session, self._otherwise, self._key, self.tenant)
        ended = next(
            entry.event for entry in entries if isinstance(entry.event, TurnCompleted | TurnFailed | TurnCancelled)
        )
        own: TurnError | None = None
        if isinstance(ended, TurnFailed):
            own = (HookError if ended.problem.kind == "hook" else TurnError)(ended.problem.text, ended.problem.kind)
            error = self._runtime.supervisor.error_of(self.id)
            own.__cause__ = error if error is None or error.__cause__ is None else error.__cause__
        failed: list[Exception] = [HookError(one.text, one.kind) for one in ended.reports if one.kind == "clean-up"]
        if failed:
            raise ExceptionGroup("clean-ups failed when the turn ended", [own, *failed] if own else failed)
        if own is not None:
            raise own
        return TurnResult(self.id, state.phase, tuple(state.messages.values()), ended.usage, ended.reports)

    async def _never_began(self) -> TurnResult:
        reason = await self._runtime.dropped(self.session, self._key) if self._key else None
        if reason is None and self._key and (joined := await self._joined()):
            return await Turn(self._runtime, self.session, joined, tenant=self.tenant)
        if reason is None:
            raise UnknownTurn(f"there is no turn {self.id!r} in this session")
        if reason != NEVER_BEGAN:
            raise CommandRefused(reason)
        return TurnResult(self.id, Phase.CANCELLED, (), Usage())

    async def _joined(self) -> str:
        """The turn that its message has joined instead; "" when there is none."""
        for entry in reversed(await self._runtime.store.events(self.session)):
            if isinstance(entry.event, MessageAdded) and entry.event.command == self._key:
                return entry.event.turn
        return ""

    async def below(self, begun: CallBelow) -> Turn:
        """The sub-turn that an event of this turn tells of, as soon as it can be followed.

        Raises:
            UnknownTurn: it was never begun.
        """
        while not await self._is_asked_for(begun):
            state = await self.state()
            call = state.calls.get(begun.call)
            is_gone = call is None or call.is_settled or state.phase.is_terminal
            if is_gone and not await self._is_asked_for(begun):
                raise UnknownTurn(f"the sub-turn {begun.below!r} was never begun")
            await asyncio.sleep(SOON)
        return Turn(self._runtime, begun.session, begun.below, tenant=self.tenant)

    async def _is_asked_for(self, begun: CallBelow) -> bool:
        # The event is written first, so that a process that dies in between finds the same sub-turn again.
        store = self._runtime.store
        try:
            inbox = await store.inbox(begun.session)
            is_queued = any(isinstance(command, Send) and command.turn == begun.below for command in inbox)
            return is_queued or bool(await store.events(begun.session, turn=begun.below))
        except UnknownSession:
            return False

    async def state(self) -> TurnState:
        """The turn as its log tells it, now; idle before it has begun."""
        entries = await self._runtime.store.events(self.session, turn=self.id)
        return fold(entry.event for entry in entries) if entries else TurnState(self.id)

    async def cancel(self, *, hard: bool = False, key: str | None = None) -> None:
        """End the turn. Its tools go on and their results come late, unless `hard` cancels them too."""
        runtime = self._runtime
        key, now = key or runtime.ids.new("cmd"), runtime.clock.now()
        await runtime.command(
            Cancel(key=key, session=self.session, tenant=self.tenant, at=now, turn=self.id, hard=hard)
        )

    async def answer(self, gate: Gate, **reply: Unpack[Reply]) -> None:
        """Answer a gate: `allow="once"`, with other `arguments` if you like, or `deny="a reason the model reads"`.

        `allow="always"` stores the first of `gate.offers`, or the one of them that you give instead, for this session
        (or `everywhere`, `until` a time). With a `result` the tool is not run: you have done it yourself, and this is
        what came of it. A result under review is sent by `allow="once"`, with `text` what is left of it, and withheld
        by `deny`. With `others` a denial is also one of all other calls that are asked about in this session.

        Raises:
            BadArguments: the edited arguments do not fit the tool; nothing was answered.
            UnknownGate, HashMismatch, AnswerUnfit, AnsweredOtherwise, GateExpired, GateClosed: it was not taken.
        """
        await answer(self._runtime, self.session, self.tenant, gate, reply)
