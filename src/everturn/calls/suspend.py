"""Suspension: ends the task of a tool that waits, and runs the tool again once what it waits for has arrived.

A gate may stay open for days and outlive the process, so a waiting tool must not need memory. A Python coroutine cannot
be saved, so the tool is run again from its beginning (as in durable execution engines): every gate, nested call and
sub-agent run that it requested is identified by its order or its name and answered from the log. A tool that cannot
repeat its code without repeating an effect (neither `read_only` nor `idempotent`, and not `resumable`) is held in memory instead.

Invariants: `CallSuspended` is written with the gate it waits for, because the process may die right after that append;
a task is cancelled only while no write of the tool is in progress; and a tool may outlive the drive that started it, so
it always writes through the drive that has the turn now (`ToolWait.run`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from everturn.core.events import CallSuspended, Event
from everturn.core.ports import Clock, Timer
from everturn.core.state import TurnState
from everturn.errors import InvalidEvent, ToolError, TurnClosed
from everturn.running.active_turn import ActiveTurn
from everturn.running.tool_tasks import Suspension

WAIT_KINDS = ("gates", "calls", "below", "waits")  # what a tool can wait for
TURN_OVER = "the turn that would need it is over"
IN_STEP: ContextVar[ToolWait | None] = ContextVar("everturn_in_step", default=None)  # the tool whose step this code is
STEP_WAITS = "the function of ctx.step cannot wait, ask or run steps of its own: do that in the tool, between its steps"


class PausableTimeout:
    """The timeout of a tool. It is paused while the tool waits for a person."""

    def __init__(self, clock: Clock, seconds: float, expire: Callable[[], None]) -> None:
        self._clock, self._left, self._expire = clock, seconds, expire
        self._since, self._timer, self._holds = 0.0, None, 0
        self._run()

    _timer: Timer | None

    def _run(self) -> None:
        self._since = self._clock.now()
        self._timer = self._clock.call_later(self._left, self._expire)

    def pause(self) -> None:
        """Pause."""
        self._holds += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left = max(self._left - (self._clock.now() - self._since), 0.0)

    def resume(self) -> None:
        """Continue, once every `hold` is released."""
        self._holds -= 1
        if self._holds == 0:
            self._run()

    def stop(self) -> None:
        """Cancel the timeout."""
        self._holds += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class ToolWait:
    """How one running tool waits: suspended if it can be resumed, otherwise in memory.

    A tool may outlive the drive that started it: only the drive that has the turn now knows what has arrived.
    """

    def __init__(self, run: ActiveTurn, can_resume: bool, kept: str = "") -> None:
        self._first, self.can_resume, self.saved_state = run, can_resume, kept
        self._waits: set[tuple[str, str]] = set()  # kind, name

    # Class defaults: most tools never wait, and pay for none of these.
    suspension: Suspension | None = None
    timeout: PausableTimeout | None = None
    _task: asyncio.Task[object] | None = None
    is_stopped = False  # its task was cancelled
    _writing = 0  # writes of this tool that are in progress

    @property
    def run(self) -> ActiveTurn:
        """The active turn that drives the turn now.

        Raises:
            ToolError: the turn is over.
        """
        run = self._driver()
        if run is None:
            raise ToolError(TURN_OVER)
        return run

    def _driver(self) -> ActiveTurn | None:
        run: ActiveTurn | None = self._first.setup.tool_tasks.active_turn(self._first.turn)
        return None if run is None or run.state.ending is not None or run.state.phase.is_terminal else run

    def is_cancelled(self) -> bool:
        """Whether the tool should stop: it or its turn was cancelled, or has timed out. Threads may ask."""
        run: ActiveTurn | None = self._first.setup.tool_tasks.active_turn(self._first.turn)
        return (
            self.is_stopped
            or run is None
            or run.is_cancelled
            or run.timeout_problem is not None
            or run.state.ending is not None
        )

    @property
    def is_over(self) -> bool:
        """Whether the turn of this tool is over."""
        return self._driver() is None

    def set_task(self, task: asyncio.Task[object]) -> None:
        """Set the task that a suspension cancels."""
        self._task = task

    def suspended_event(self, call: str, name: str, kind: str = "gates") -> CallSuspended:
        """The suspension event, to be written with the gate the tool opens, or with what else it will wait for: the
        process may die right after that.
        """
        self._waits.add((kind, name))
        return suspended_event(self._first.turn, self._first.now(), call, self._aside())

    def _aside(self) -> Suspension:
        waits = {kind: tuple(sorted(name for of, name in self._waits if of == kind)) for kind in WAIT_KINDS}
        child = next(iter(waits["below"]), "")
        return Suspension(self.saved_state, waits["gates"], waits["calls"], child, waits["waits"])

    # Writing ------------------------------------------------------------------------------------------------------------

    async def write(self, make: Callable[[], Sequence[Event]]) -> None:
        """Write events of the turn for a running tool. A cancellation of the tool does not interrupt the append.

        Raises:
            ToolError: the turn is over.
        """
        await self.run_shielded(self.commit_in_current_drive(make))

    async def commit_in_current_drive(self, make: Callable[[], Sequence[Event]]) -> None:
        """Write events of the turn through the drive that has it now."""
        while True:
            run, moved = self.run, self._first.setup.tool_tasks.drive_notifier.count
            try:
                await run.commit(make)
                return
            except InvalidEvent:
                raise ToolError(TURN_OVER) from None
            except TurnClosed:
                pass  # the next drive writes it
            except Exception:
                if not run.ledger.is_broken:
                    raise  # a broken ledger is different: the next drive writes the event if it was not written
                run.tool_notifier.notify()
            if not self.is_over and self.run is run:
                await self._first.setup.tool_tasks.drive_notifier.wait_beyond(moved)

    async def run_shielded(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work to its end even if the tool is cancelled meanwhile."""
        self._writing += 1
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._wrote)
        await asyncio.shield(task)

    @contextmanager
    def hold(self) -> Generator[None]:
        """Postpone a suspension of the tool: a step of it is in progress. A cancellation is not postponed."""
        self._writing += 1
        token = IN_STEP.set(self)
        try:
            yield
        finally:
            IN_STEP.reset(token)
            self._released()

    def refuse_in_step(self) -> None:
        """Refuse to wait within a step, which would wait for its own end.

        Raises:
            ToolError: this code is a step of the tool.
        """
        if IN_STEP.get() is self:
            raise ToolError(STEP_WAITS)

    def _wrote(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()
        self._released()

    def _released(self) -> None:
        self._writing -= 1
        if (run := self._first.setup.tool_tasks.active_turn(self._first.turn)) is not None:
            run.tool_notifier.notify()
        self._first.tool_notifier.notify()

    # Waiting ------------------------------------------------------------------------------------------------------------

    async def wait_until(
        self, kind: str, name: str, has_come: Callable[[TurnState], bool], waits: Callable[[TurnState], bool]
    ) -> None:
        """Wait until `has_come` holds for events that are written. While `waits` holds, the tool waits for a person and
        is suspended if it can be resumed.
        """
        supervisor = self._first.setup.tool_tasks
        while True:
            run = self.run
            seen, moved = run.tool_notifier.count, supervisor.drive_notifier.count
            async with run.ledger.write_lock:  # under the lock, every folded event is written
                is_lost = run.ledger.is_broken
                if not is_lost and has_come(run.state):
                    return
            if is_lost or run.is_closed:
                if self.run is run:
                    await supervisor.drive_notifier.wait_beyond(moved)
            elif waits(run.state):
                await self._wait(kind, name, run, seen)
            else:
                await run.tool_notifier.wait_beyond(seen)

    async def _wait(self, kind: str, name: str, run: ActiveTurn, seen: int) -> None:
        self._waits.add((kind, name))
        if self.timeout is not None:
            self.timeout.pause()
        try:
            if self.can_resume:
                await self._leave()
            await run.tool_notifier.wait_beyond(seen)
        finally:
            self._waits.discard((kind, name))
            if self.timeout is not None:
                self.timeout.resume()

    async def suspend(self, kind: str, name: str) -> None:
        """Suspend the tool until something arrives that is not in the log of this turn."""
        self._waits.add((kind, name))
        await self._leave()

    async def _leave(self) -> None:
        """Suspend the tool, once its concurrent writes and steps are done."""
        self.refuse_in_step()
        await asyncio.sleep(0)
        while self._writing:
            await self._first.tool_notifier.wait_beyond(self._first.tool_notifier.count)
        if self.suspension is not None or self._task is None:
            return
        self.suspension = self._aside()
        self._task.cancel()
        await asyncio.get_running_loop().create_future()  # never returns: the task is cancelled


def suspended_event(turn: str, at: float, call: str, aside: Suspension) -> CallSuspended:
    """The event for a suspended tool."""
    return CallSuspended(
        turn=turn,
        at=at,
        call=call,
        saved_state=aside.saved_state,
        gates=aside.gates,
        calls=aside.calls,
        child=aside.child,
        waits=aside.waits,
    )
