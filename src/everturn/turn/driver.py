"""Commands in, turns on: drives one session until nothing is left to do in it.

Whoever drives is the one writer of the session's log. Commands are acted on in the order in which they were admitted;
one whose branch is busy waits for it in the inbox.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from everturn import faults
from everturn.core.commands import Answer, AnyCommand, Cancel, Delete, Late, Select, Send
from everturn.core.events import (
    CommandDropped,
    Event,
    Gate,
    GateAnswered,
    LateArrived,
    LeafSelected,
    MessageDeleted,
    Problem,
    TurnEnding,
    TurnStarted,
    Verdict,
)
from everturn.core.messages import Message
from everturn.core.parts import Output
from everturn.core.ports import TRIES, Claim, SessionInfo, Timer
from everturn.core.state import Phase, TurnState, fold
from everturn.errors import DriverLost, GateClosed, InvalidEvent, KeyConflict, Stale, UnknownMessage, UnknownSession
from everturn.turn.ledger import Announce, Ledger
from everturn.turn.loop import drive_turn
from everturn.turn.run import Run, Setup

log = logging.getLogger(__name__)

NEVER_BEGAN = "cancelled before it began"
CAUTION = 3.0  # seconds, at most, before the last try with a session that was left twice
LOOK_AGAIN = 1.0  # seconds after which a session that somebody else drives is looked at
RELEASE = 2.0  # seconds to tell the store that a drive was ended in good order
EXPIRED = "nobody answered in time"
HAD_ITS_TIME = "the turn did not end within {seconds:g} s"
LOST_LATE = (
    "The process in which this tool ran on after its turn had ended has died. Whether it took effect is not known, and "
    "it was not run again."
)


class Driver:
    """Drives sessions with one setup."""

    def __init__(self, setup: Setup, announce: Announce) -> None:
        self._setup, self._announce = setup, announce
        self._drives: set[_Drive] = set()
        self._is_leaving = False
        self.idle = asyncio.Event()  # nothing is driven here at the moment
        self.idle.set()

    async def drive(self, session: str) -> None:
        """Load what is open in a session, move it on until everything is over or waits, and return.

        Raises:
            Stale: somebody else drives it now.
            SessionStuck: it stopped its drivers too often.
            DriverLost: this process is about to end; another one has to drive.
        """
        if self._is_leaving:
            raise DriverLost("this process is leaving; another one drives on")
        store, now = self._setup.store, self._setup.clock.now()
        ear = self._setup.bus.listen(session)  # before the claim, so that nothing falls between the two
        faults.hit("drive.begin")
        try:
            claim = await store.claim(session, now)
            faults.hit("drive.claimed")
            if claim is None:
                # Woken too early, it may be: clocks differ.
                await self._wake_when_due(session, (await store.info(session)).due)
            else:
                await self._hold(session, claim, ear.wait)
            faults.hit("drive.end")
        except UnknownSession:
            log.info("session %s is gone; there is nothing to drive", session)
        except Stale:
            # Whoever overtook this one may itself have been given up by the engine a moment ago: somebody looks again.
            if self._setup.hold:
                await self._setup.wake(session, self._setup.clock.now() + LOOK_AGAIN)
            raise
        finally:
            ear.close()

    async def _hold(self, session: str, claim: Claim, signal: Callable[[], Coroutine[Any, Any, None]]) -> None:
        ledger = Ledger(session, claim, self._setup.store, self._setup.bus, self._announce)
        drive = _Drive(self._setup, ledger, claim)
        self._drives.add(drive)
        self.idle.clear()
        if self._is_leaving:  # it was told so while it claimed
            drive.must_leave = True
            drive.leave()
        try:
            if claim.tries >= TRIES:  # each at another time, so that one which kills does not take the same along again
                await asyncio.sleep(CAUTION * (hash((session, claim.epoch)) % 1000) / 1000)
            await drive.until_idle(signal)
        except Stale:
            for turn in ledger.turns:
                self._setup.supervisor.abandon(turn)
            raise
        except asyncio.CancelledError:
            # To leave in good order is not to die; that an engine gave up a worker which said nothing is another thing.
            if self._is_leaving or not self._setup.hold:
                with suppress(Exception):
                    async with asyncio.timeout(RELEASE):
                        await self._setup.store.release(session, claim.epoch)
            raise
        finally:
            self._drives.discard(drive)
            if not self._drives:
                self.idle.set()
        if ledger.head == claim.head:
            await self._setup.store.release(session, claim.epoch)
        if drive.had_out and (self._setup.hold or not drive.must_leave):  # whoever looks next sees who came home
            await self._setup.wake(session, None)
        elif not drive.is_leaving:
            await self._wake_when_due(session, drive.due)
        elif self._setup.hold:  # somebody else may drive on; otherwise whoever starts here next
            await self._setup.wake(session, None)

    async def _wake_when_due(self, session: str, due: float) -> None:
        if due:
            await self._setup.wake(session, due)

    def leave(self) -> None:
        """Let go of every session at the next step: whoever drives next goes on there."""
        self._is_leaving = True
        for drive in self._drives:
            drive.must_leave = True
            drive.leave()


class _Drive:
    """One drive of one session."""

    def __init__(self, setup: Setup, ledger: Ledger, claim: Claim) -> None:
        self._setup, self._ledger, self._claim = setup, ledger, claim
        self._runs: dict[str, tuple[Run, asyncio.Task[None]]] = {}
        self._pending: list[AnyCommand] = list(claim.inbox)  # admitted, and not acted on yet
        self._out: set[str] = set()  # turns that are over, and whose tools still run here
        self._dropped: set[str] = set()  # keys of commands that have lost their object
        self.had_out = False  # a turn ended in this drive, or before it, while tools of it ran
        self._next: tuple[float, Timer] | None = None  # when it is time, and what rings then
        self._stirred = asyncio.Event()  # a signal came, a run or a tool ended, or it is time
        self._is_heard = False  # a signal came: the inbox has more
        self._alarms: list[Timer] = []
        self._info = claim.head, claim.info  # and the position at which it was so
        self.is_leaving = False  # before the next step
        self.must_leave = False  # because the process does

    async def until_idle(self, signal: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Act, run and wait, until there is nothing to act on and nothing runs."""
        ears = asyncio.get_running_loop().create_task(self._hear(signal))
        if self._setup.hold:
            self._alarm(self._setup.hold, self._let_go)
        try:
            await self._take_over()
            while True:
                await self._act_on_all()
                await self._keep_time()
                if not self.is_leaving:
                    self._start_runs()
                if not self._runs and not self._out:
                    return
                if self._out and self.is_leaving and not self.must_leave:
                    self.is_leaving = False  # what runs on here keeps it here, so it may as well go on
                    self._alarm(self._setup.hold, self._let_go)
                    continue
                if not self._is_heard:
                    await self._stirred.wait()
                self._stirred.clear()  # before looking: whatever happens from here on is seen the next time
                self._reap()
        finally:
            ears.cancel()
            for alarm in (*self._alarms, *([self._next[1]] if self._next is not None else ())):
                alarm.cancel()
            for turn in self._out:
                self._setup.supervisor.unwatch(turn, self._stirred.set)
            tasks = [task for _, task in self._runs.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _hear(self, signal: Callable[[], Coroutine[Any, Any, None]]) -> None:
        while True:
            await signal()
            self._is_heard = True
            self._stirred.set()

    def _alarm(self, delay: float, ring: Callable[[], None]) -> None:
        self._alarms.append(self._setup.clock.call_later(max(delay, 0.0), ring))

    async def _take_over(self) -> None:
        """Adopt the open turns. Tools that outlived a turn, and not the process that ran them, are settled here."""
        lost: list[Event] = []
        handed_in = {(command.turn, command.call) for command in self._pending if isinstance(command, Late)}
        for entries in self._claim.turns:
            state = fold(entry.event for entry in entries)
            if not state.phase.is_terminal:
                self._ledger.adopt(state)
            elif self._setup.supervisor.is_out(state.id):
                self._watch_out(state.id)
            for call in state.out if state.phase.is_terminal else ():
                if not self._setup.supervisor.is_out(state.id, call) and (state.id, call) not in handed_in:
                    output = Output(LOST_LATE, code="outcome_unknown")
                    lost.append(LateArrived(turn=state.id, at=self._now(), call=call, output=output))
        if lost:
            await self._ledger.commit(lost)

    def _watch_out(self, turn: str) -> None:
        self.had_out = True
        self._out.add(turn)
        self._setup.supervisor.watch(turn, self._stirred.set)

    def _let_go(self) -> None:
        """It has been held for long enough; but not while tools run here that nobody else could wait for."""
        if self._out:
            self._alarm(self._setup.hold, self._let_go)
        else:
            self.leave()

    def leave(self) -> None:
        """Let go between two steps."""
        self.is_leaving = True
        for run, _ in self._runs.values():
            run.is_leaving = True
        self._stirred.set()

    async def _act_on_all(self) -> None:
        """Act on what is pending until nothing moves: one command may clear the way for an earlier one."""
        while self._is_heard or self._pending:
            if self._is_heard:
                self._is_heard = False
                self._pending = await self._setup.store.inbox(self._ledger.session)
            waiting = [command for command in self._pending if not await self._act(command)]
            waiting = [command for command in waiting if command.key not in self._dropped]
            if len(waiting) == len(self._pending) and not self._is_heard:
                return
            self._pending = waiting

    # Time --------------------------------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        """When something happens in this session although nothing comes; 0: never."""
        return min((state.due for state in self._ledger.turns.values() if state.due), default=0.0)

    async def _keep_time(self) -> None:
        """End what has had its time, and see to it that the next one is not missed."""
        while self._setup.clock.now() >= (due := self.due) > 0:
            for state in list(self._ledger.turns.values()):
                if 0 < state.due <= self._now():
                    await self._overrun(state)
            await self._act_on_all()
            if self.due == due:
                return  # it is being stopped
        if due and (self._next is None or self._next[0] != due):
            if self._next is not None:
                self._next[1].cancel()
            delay = max(due - self._setup.clock.now(), 0.0)
            self._next = due, self._setup.clock.call_later(delay, self._ring)

    def _ring(self) -> None:
        self._next = None  # a hair too early, for clocks differ, it is set once more
        self._stirred.set()

    async def _overrun(self, state: TurnState) -> None:
        seconds, now = state.options.timeout, self._now()
        if seconds and now >= state.started + seconds:
            problem = Problem("deadline", HAD_ITS_TIME.format(seconds=seconds))
            held = self._runs.get(state.id)
            if held is None or held[1].done() or state.phase is Phase.WAITING:
                await self._ledger.commit([TurnEnding(turn=state.id, at=now, outcome="error", problem=problem)])
            elif held[0].overrun is None and not held[0].is_cancelled:
                async with self._ledger.at_rest:
                    held[0].stop(problem)
            return
        for name, gate in state.asked.items():
            if state.is_asked(name) and 0 < gate.expires <= now:
                await self._expire(gate)

    async def _expire(self, gate: Gate) -> None:
        """Answer a gate whose time is over: at the door, where a person's answer may have been first."""
        session, tenant = self._ledger.session, self._ledger.tenant
        verdict = Verdict(False, EXPIRED, by="everturn")
        expired = Answer(
            key=f"expired:{gate.id}", session=session, tenant=tenant, gate=gate.id, hash=gate.hash, verdict=verdict
        )
        try:
            await self._setup.store.admit(expired)
        except GateClosed:
            log.info("gate %s was answered in time after all", gate.id)
        except KeyConflict:  # somebody has used that key for something else
            await self._setup.store.admit(replace(expired, key=f"expired:{gate.id}:{gate.hash}"))
        self._is_heard = True

    # Runs --------------------------------------------------------------------------------------------------------

    def _start_runs(self) -> None:
        for turn, state in self._ledger.turns.items():
            if turn not in self._runs and state.phase is not Phase.WAITING:
                run = Run(self._setup, self._ledger, state)
                task = asyncio.get_running_loop().create_task(drive_turn(run))
                task.add_done_callback(lambda _: self._stirred.set())
                self._runs[turn] = (run, task)

    def _reap(self) -> None:
        for turn, (run, task) in list(self._runs.items()):
            if task.done():
                del self._runs[turn]
                task.result()
                self._is_heard = True  # a signal may be lost; at the end of a turn its inbox is looked at anyway
                if run.state.phase.is_terminal:
                    del self._ledger.turns[turn]
                    self.had_out |= bool(run.state.out)
                    if self._setup.supervisor.is_out(turn):
                        self._watch_out(turn)
        for turn in [turn for turn in self._out if not self._setup.supervisor.is_out(turn)]:
            self._out.discard(turn)
            self._setup.supervisor.unwatch(turn, self._stirred.set)

    # Commands ----------------------------------------------------------------------------------------------------

    async def _act(self, command: AnyCommand) -> bool:
        """Act on a command; False when it has to wait."""
        match command:
            case Send():
                return await self._send(command)
            case Answer():
                await self._answer(command)
            case Cancel():
                await self._cancel(command)
            case Late():
                await self._late(command)
            case Select():
                await self._select(command)
            case Delete():
                await self._delete(command)
        return True

    def _now(self) -> float:
        return self._setup.clock.now()

    async def _drop(self, command: AnyCommand, reason: str) -> None:
        self._dropped.add(command.key)
        await self._ledger.commit([CommandDropped(at=self._now(), command=command.key, reason=reason)])
        if isinstance(command, Send):
            self._setup.bus.close(command.turn)

    # Send --------------------------------------------------------------------------------------------------------

    async def _send(self, command: Send) -> bool:
        info = await self._look()
        parent = info.leaf if command.at_leaf else command.parent
        if self._is_busy(parent, command.at_leaf):
            return False
        try:
            if not command.at_leaf:  # the leaf is always there; another place may have been deleted meanwhile
                await self._setup.store.path(self._ledger.session, parent)
        except UnknownMessage:
            await self._drop(command, f"message {parent} was deleted before its turn came")
            return True
        message = None
        if command.parts is not None:
            message = Message(command.message, parent, "user", command.parts, turn=command.turn)
        started = TurnStarted(
            turn=command.turn,
            at=self._now(),
            parent=parent,
            input=message,
            options=command.options,
            command=command.key,
            untitled=not info.title,
        )
        await self._ledger.commit([started])
        return True

    async def _look(self) -> SessionInfo:
        """The session as it is now; it is read again only when this drive has written something."""
        head = self._ledger.head
        if self._info[0] != head:
            self._info = head, await self._setup.store.info(self._ledger.session)
        return self._info[1]

    def _is_busy(self, place: str | None, at_leaf: bool) -> bool:
        """Whether a turn is still writing where this one would begin; two on one branch never interleave."""
        for state in self._ledger.turns.values():
            # An input does not change any more, so answering it a second time beside the first answer is fine.
            if place in state.messages and (at_leaf or place != state.input):
                return True
            if at_leaf and place == state.tip:
                return True
            # A re-run has no input of its own, and the store may not have heard of its answer yet.
            if at_leaf and state.input is None and place == state.parent:
                return True
        return False

    # Answers, cancels, late results --------------------------------------------------------------------------------

    async def _answer(self, command: Answer) -> None:
        for state in self._ledger.turns.values():
            if command.gate in state.gates:
                await self._answer_in(state, command)
                return
        await self._drop(command, "its turn is over")

    async def _answer_in(self, state: TurnState, command: Answer) -> None:
        asking = [call.id for call in state.calls.values() if call.gate is not None and call.gate.id == command.gate]
        answered = GateAnswered(
            turn=state.id,
            at=self._now(),
            gate=command.gate,
            call=asking[0] if asking else "",
            verdict=command.verdict,
            command=command.key,
        )

        def events() -> list[Event]:
            is_asked = not asking or state.calls[asking[0]].state == "asking"
            is_waiting = state.phase in (Phase.TOOL_CALL, Phase.WAITING) and state.gates[command.gate] is None
            if is_asked and is_waiting:
                return [answered]
            return [CommandDropped(at=self._now(), command=command.key, reason="nobody asks that any more")]

        await self._ledger.commit(events)
        if state.id in self._runs:
            self._runs[state.id][0].arrive()

    async def _cancel(self, command: Cancel) -> None:
        state = self._ledger.turns.get(command.turn)
        held = self._runs.get(command.turn)
        if command.hard and (state is None or state.ending is not None):
            self._setup.supervisor.cancel(command.turn)  # the turn is over, its tools need not be
        if state is None:
            await self._cancel_queued(command)
        elif state.ending is not None:
            if state.ending.command != command.key:  # or it is this one that ends it
                await self._drop(command, "the turn is ending")
        elif held is not None and not held[1].done() and state.phase is not Phase.WAITING:
            await self._cancel_held(held[0], command)
        else:
            at = self._now()
            ending = TurnEnding(turn=state.id, at=at, outcome="cancelled", hard=command.hard, command=command.key)
            await self._ledger.commit([ending])

    async def _cancel_held(self, run: Run, command: Cancel) -> None:
        if not run.is_cancelled:
            async with self._ledger.at_rest:
                run.cancel(command)
        elif command.hard and run.cancel_request is not None and not run.cancel_request.hard:
            run.cancel_request = command
        elif run.cancel_request != command:
            await self._drop(command, "the turn is being cancelled already")

    async def _cancel_queued(self, command: Cancel) -> None:
        """Cancel a turn that has not begun: it never does."""
        inbox = await self._setup.store.inbox(self._ledger.session)
        if all(other.key != command.key for other in inbox):
            return  # it has ended its turn meanwhile
        for other in inbox:
            if isinstance(other, Send) and other.turn == command.turn:
                await self._drop(other, NEVER_BEGAN)
        await self._drop(command, "the turn is not under way")

    async def _late(self, command: Late) -> None:
        session, turn = self._ledger.session, command.turn
        arrived = LateArrived(turn=turn, at=self._now(), call=command.call, output=command.output, command=command.key)
        try:
            entries = await self._setup.store.events(session, turn=turn)
            fold(entry.event for entry in entries).apply(arrived)
        except InvalidEvent as error:
            await self._drop(command, str(error))
            return
        await self._ledger.commit([arrived])
        for run, _ in self._runs.values():
            if run.late is not None:
                run.late[command.call] = arrived

    async def _select(self, command: Select) -> None:
        try:
            await self._setup.store.path(self._ledger.session, command.message)
        except UnknownMessage as error:
            await self._drop(command, str(error))
            return
        await self._ledger.commit([LeafSelected(at=self._now(), message=command.message, command=command.key)])

    async def _delete(self, command: Delete) -> None:
        for state in list(self._ledger.turns.values()):
            # Not the path to its tip: that may be folded here and still be on its way to the store.
            above = await self._setup.store.path(self._ledger.session, state.parent)
            if command.message in state.messages or any(message.id == command.message for message in above):
                await self._drop(command, "a turn is writing there")
                return
        await self._ledger.commit([MessageDeleted(at=self._now(), message=command.message, command=command.key)])
