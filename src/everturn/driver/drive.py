"""One drive of one session: carries out its commands and runs its turns until all of them end or wait.

The drive is the only writer of the session's log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from everturn.core.commands import LateResult
from everturn.core.events import Event, LateResultReceived, Problem, TitleSet, TurnFinishing
from everturn.core.gate_rows import gate_deadline
from everturn.core.parts import Output
from everturn.core.phases import Phase
from everturn.core.ports import SignalListener, Timer
from everturn.core.state import TurnState
from everturn.core.store_ports import SessionClaim
from everturn.core.titles import derive_title
from everturn.driver.commands import CLAIM_EXPIRED, ActiveTurns, CommandHandler
from everturn.running.active_turn import ActiveTurn
from everturn.running.budget import time_limit_event
from everturn.running.drive_setup import DriveSetup
from everturn.running.ledger import Ledger
from everturn.turn.loop import drive_turn

log = logging.getLogger(__name__)

TIMED_OUT = "the turn did not end within {seconds:g} s"
LATE_RESULT_LOST = (
    "The process that still ran this tool after its turn had ended died. Whether it took effect is not known, and it was "
    "not run again."
)


class Drive:
    """One drive of one session: its turns, its timers, and the handler of its commands."""

    def __init__(self, setup: DriveSetup, ledger: Ledger, claim: SessionClaim) -> None:
        self._setup, self._ledger, self._claim = setup, ledger, claim
        self._active: ActiveTurns = {}
        self._commands = CommandHandler(setup, ledger, claim, self._active)
        self._unknown_agents: set[str] = set()  # of turns that this process cannot drive
        self._turns_with_tools: set[str] = set()  # turns that are over and whose tools still run here
        self.had_running_tools = False  # a turn ended, in this drive or before it, while its tools ran
        self._next: tuple[float, Timer] | None = None  # the next deadline, and its timer
        self._woken = asyncio.Event()  # a signal arrived, a turn or a tool ended, or a deadline passed
        self._timers: list[Timer] = []
        self.is_releasing = False  # release the session before the next step
        self.is_process_stopping = False  # because the process stops

    async def run_until_idle(self, listener: SignalListener) -> None:
        """Carry out commands and run turns, until nothing is pending and nothing runs."""
        listening: asyncio.Task[None] | None = None
        if (on_signal := getattr(listener, "on_signal", None)) is not None:
            on_signal(self._signalled)
        else:
            listening = asyncio.get_running_loop().create_task(self._listen(listener))
        if self._setup.max_drive_seconds:
            self._set_timer(self._setup.max_drive_seconds, self._release_unless_busy)
        try:
            await self._adopt_turns()
            while True:
                await self._commands.carry_out_all()
                await self._handle_deadlines()
                await self._start_or_write()
                if not self._active and not self._turns_with_tools:
                    return
                if self._turns_with_tools and self.is_releasing and not self.is_process_stopping:
                    self.is_releasing = (
                        False  # tools that still run keep the session here, so its turns may as well continue
                    )
                    self._set_timer(self._setup.max_drive_seconds, self._release_unless_busy)
                    continue
                if not self._commands.inbox_changed:
                    await self._woken.wait()
                self._woken.clear()  # before the check, so that later events are seen in the next iteration
                self._collect_finished()
        finally:
            if listening is not None:
                listening.cancel()
            for alarm in (*self._timers, *([self._next[1]] if self._next is not None else ())):
                alarm.cancel()
            for turn in self._turns_with_tools:
                self._setup.tool_tasks.unwatch(turn, self._woken.set)
            tasks = [task for _, task in self._active.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self, listener: SignalListener) -> None:
        while True:
            await listener.wait()
            self._signalled()

    def _signalled(self) -> None:
        self._commands.inbox_changed = True
        self._woken.set()

    def _set_timer(self, delay: float, ring: Callable[[], None]) -> None:
        self._timers.append(self._setup.clock.call_later(max(delay, 0.0), ring))

    def _now(self) -> float:
        return self._setup.clock.now()

    async def _adopt_turns(self) -> None:
        """Adopt the open turns. Late results of tools that died with their process are written as unknown."""
        events: list[Event] = []
        delivered = {
            (command.turn, command.call) for command in self._commands.pending if isinstance(command, LateResult)
        }
        for state in self._claim.fold_turns():
            if not state.phase.is_terminal:
                self._ledger.adopt(state)
                events += self._title_of(state)
            elif self._setup.tool_tasks.has_undelivered(state.id):
                self._watch_tools(state.id)
            for call in state.still_running if state.phase.is_terminal else ():
                if not self._setup.tool_tasks.has_undelivered(state.id, call) and (state.id, call) not in delivered:
                    output = Output(LATE_RESULT_LOST, code="outcome_unknown")
                    events.append(LateResultReceived(turn=state.id, at=self._now(), call=call, output=output))
        if events:
            await self._ledger.commit(events)

    def _title_of(self, state: TurnState) -> list[Event]:
        """The title event of a session whose first turn started without one."""
        is_checked = bool(self._setup.hooks["on_input"])  # then the turn itself sets the title
        needs_title = state.needs_title and state.refusal is None and not is_checked
        message = state.messages[state.input] if needs_title and state.input is not None else None
        title = derive_title(message.parts) if message is not None and state.phase is Phase.PREPARING else ""
        return [TitleSet(turn=state.id, at=self._now(), title=title)] if title else []

    def _watch_tools(self, turn: str) -> None:
        self.had_running_tools = True
        self._turns_with_tools.add(turn)
        self._setup.tool_tasks.watch(turn, self._woken.set)

    def _release_unless_busy(self) -> None:
        """Release the session after `hold` seconds, but not while tools run here: no other process could wait for them."""
        if self._turns_with_tools:
            self._set_timer(self._setup.max_drive_seconds, self._release_unless_busy)
        else:
            self.release()

    def release(self) -> None:
        """Release the session between two steps."""
        self.is_releasing = True
        for run, _ in self._active.values():
            run.is_releasing = True
        self._woken.set()

    @property
    def unknown_agents(self) -> set[str]:
        """The agents that have turns, or take messages, of this session, and that this process does not know."""
        return self._unknown_agents | self._commands.unknown_agents

    # Time --------------------------------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        """The next deadline in this session; 0: none."""
        times = (self._commands.due, *(state.due for state in self._ledger.turns.values()))
        return min((time for time in times if time), default=0.0)

    async def _handle_deadlines(self) -> None:
        """Handle expired deadlines, and set the timer for the next one."""
        while self._setup.clock.now() >= (due := self.due) > 0:
            for state in list(self._ledger.turns.values()):
                if 0 < state.due <= self._now():
                    await self._handle_deadlines_of(state)
            await self._commands.carry_out_all()
            if self.due == due:
                return  # its turn is being stopped
        if due and (self._next is None or self._next[0] != due):
            if self._next is not None:
                self._next[1].cancel()
            delay = max(due - self._setup.clock.now(), 0.0)
            self._next = due, self._setup.clock.call_later(delay, self._timer_fired)

    def _timer_fired(self) -> None:
        self._next = None  # if it fires slightly early, because clocks differ, it is set again
        self._woken.set()

    async def _handle_deadlines_of(self, state: TurnState) -> None:
        seconds, now = state.options.timeout, self._now()
        if seconds and now >= state.started + seconds:
            problem = Problem("deadline", TIMED_OUT.format(seconds=seconds))
            active = self._active.get(state.id)
            if active is None or active[1].done() or state.phase is Phase.WAITING:
                problem = replace(problem, phase="tools")  # nothing else waits outside of a drive
                await self._ledger.commit([TurnFinishing(turn=state.id, at=now, outcome="error", problem=problem)])
            elif active[0].timeout_problem is None and not active[0].is_cancelled:
                async with self._ledger.write_lock:
                    active[0].time_out(problem)
            return
        if not state.is_out_of_time and 0 < state.options.until(state.started) <= now:
            await self._end_time_budget(state)
        for name, gate in state.gate_details.items():
            if not state.is_gate_open(name):
                continue
            if 0 < gate.expires <= now:
                await self._commands.expire_gate(gate)
            elif 0 < gate_deadline(gate, state.claims.get(name)) <= now:
                await self._commands.expire_gate(gate, CLAIM_EXPIRED)
        for wait in [wait for wait in state.waits.values() if 0 < wait.until <= now]:
            await self._commands.expire_wait(state, wait)

    async def _end_time_budget(self, state: TurnState) -> None:
        """Record that the time budget is used up: no call starts any more, and a last request follows."""
        event = time_limit_event(state, self._now())
        await self._ledger.commit(lambda: [] if state.is_out_of_time or state.ending is not None else [event])
        if state.id in self._active:
            self._active[state.id][0].notify_arrival()

    # Runs --------------------------------------------------------------------------------------------------------

    async def _start_or_write(self) -> None:
        """Start runs; the start of a turn that does not run here may be staged, and is written."""
        if not self.is_releasing:
            self._start_runs()
        if not self._active.keys() >= self._ledger.turns.keys():
            await self._ledger.commit([])

    def _start_runs(self) -> None:
        self._unknown_agents.clear()
        for turn, state in self._ledger.turns.items():
            if turn not in self._active and state.phase is not Phase.WAITING:
                setup = self._setup if self._setup.setup_of is None else self._setup.setup_of(state.options)
                if setup is None and state.ending is not None:  # to end a turn, no code of its agent is needed
                    setup = self._setup
                if setup is None:  # a process that knows the agent continues the turn
                    self._unknown_agents.add(state.options.agent)
                    continue
                if (state.options.clients or state.options.tools) and setup.client_hooks is not None:
                    setup = replace(setup, hooks=setup.client_hooks)
                run = ActiveTurn(setup, self._ledger, state)
                run.steering_messages = self._commands.steering_messages(turn)
                task = asyncio.get_running_loop().create_task(drive_turn(run))
                task.add_done_callback(lambda _: self._woken.set())
                self._active[turn] = (run, task)

    def _collect_finished(self) -> None:
        for turn, (run, task) in list(self._active.items()):
            if task.done():
                del self._active[turn]
                task.result()
                self._commands.inbox_changed = (
                    True  # a signal may be lost, so the inbox is read at the end of every turn
                )
                if run.state.phase.is_terminal:
                    del self._ledger.turns[turn]
                    self._commands.forget_turn(turn)
                    self.had_running_tools |= bool(run.state.still_running)
                    if self._setup.tool_tasks.has_undelivered(turn):
                        self._watch_tools(turn)
        for turn in [turn for turn in self._turns_with_tools if not self._setup.tool_tasks.has_undelivered(turn)]:
            self._turns_with_tools.discard(turn)
            self._setup.tool_tasks.unwatch(turn, self._woken.set)
