"""One drive of one session: its turns move on until everything is over or waits.

Whoever drives is the one writer of the session's log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from msgspec.structs import replace

from everturn.core.commands import Late
from everturn.core.events import Event, LateArrived, Problem, TitleSet, TurnEnding
from everturn.core.gates import due_of
from everturn.core.parts import Output
from everturn.core.ports import Claim, Timer
from everturn.core.state import Phase, TurnState, fold
from everturn.core.titles import title_of
from everturn.turn.acting import LAPSED, Acting
from everturn.turn.budget import time_over
from everturn.turn.ledger import Ledger
from everturn.turn.loop import drive_turn
from everturn.turn.run import Run, Setup

log = logging.getLogger(__name__)

HAD_ITS_TIME = "the turn did not end within {seconds:g} s"
LOST_LATE = (
    "The process in which this tool ran on after its turn had ended has died. Whether it took effect is not known, and "
    "it was not run again."
)


class Drive(Acting):
    """One drive of one session."""

    def __init__(self, setup: Setup, ledger: Ledger, claim: Claim) -> None:
        super().__init__(setup, ledger, claim)
        self._claim = claim
        self._out: set[str] = set()  # turns that are over, and whose tools still run here
        self.had_out = False  # a turn ended in this drive, or before it, while tools of it ran
        self._next: tuple[float, Timer] | None = None  # when it is time, and what rings then
        self._stirred = asyncio.Event()  # a signal came, a run or a tool ended, or it is time
        self._alarms: list[Timer] = []
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
                lost += self._title_of(state)
            elif self._setup.supervisor.is_out(state.id):
                self._watch_out(state.id)
            for call in state.out if state.phase.is_terminal else ():
                if not self._setup.supervisor.is_out(state.id, call) and (state.id, call) not in handed_in:
                    output = Output(LOST_LATE, code="outcome_unknown")
                    lost.append(LateArrived(turn=state.id, at=self._now(), call=call, output=output))
        if lost:
            await self._ledger.commit(lost)

    def _title_of(self, state: TurnState) -> list[Event]:
        """The title of a session whose first turn began, and whose title was not written with it."""
        message = state.messages[state.input] if state.is_unnamed and state.input is not None else None
        title = title_of(message.parts) if message is not None and state.phase is Phase.PREPARING else ""
        return [TitleSet(turn=state.id, at=self._now(), title=title)] if title else []

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
        if not state.is_out_of_time and 0 < state.options.until(state.started) <= now:
            await self._time_is_over(state)
        for name, gate in state.asked.items():
            if not state.is_asked(name):
                continue
            if 0 < gate.expires <= now:
                await self._expire(gate)
            elif 0 < due_of(gate, state.claims.get(name)) <= now:
                await self._expire(gate, LAPSED)

    async def _time_is_over(self, state: TurnState) -> None:
        """The budget of time is used up: no call starts any more, and a last request says so."""
        over = time_over(state, self._now())
        await self._ledger.commit(lambda: [] if state.is_out_of_time or state.ending is not None else [over])
        if state.id in self._runs:
            self._runs[state.id][0].arrive()

    # Runs --------------------------------------------------------------------------------------------------------

    def _start_runs(self) -> None:
        for turn, state in self._ledger.turns.items():
            if turn not in self._runs and state.phase is not Phase.WAITING:
                setup = self._setup
                if state.options.clients and setup.client_hooks is not None:
                    setup = replace(setup, hooks=setup.client_hooks)
                run = Run(setup, self._ledger, state)
                run.steers = self._steers.setdefault(turn, {})
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
                    self._steers.pop(turn, None)
                    self.had_out |= bool(run.state.out)
                    if self._setup.supervisor.is_out(turn):
                        self._watch_out(turn)
        for turn in [turn for turn in self._out if not self._setup.supervisor.is_out(turn)]:
            self._out.discard(turn)
            self._setup.supervisor.unwatch(turn, self._stirred.set)
