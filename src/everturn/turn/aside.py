"""A tool that waits for somebody is put aside: its task ends, nothing of it is held in memory, and when what it waits for
has come it is run again from its beginning. What it has asked before is then answered from the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from everturn.core.events import CallPaused, Event
from everturn.core.ports import Clock, Timer
from everturn.core.state import TurnState
from everturn.errors import InvalidEvent, ToolError, TurnClosed
from everturn.turn.run import Run
from everturn.turn.supervisor import Aside

KINDS = ("gates", "calls", "below")  # of what a tool waits for
OVER = "the turn that would need it is over"


class Patience:
    """How long a tool may take. The time in which it waits for a person does not count."""

    def __init__(self, clock: Clock, seconds: float, expire: Callable[[], None]) -> None:
        self._clock, self._left, self._expire = clock, seconds, expire
        self._since, self._timer, self._holds = 0.0, None, 0
        self._run()

    _timer: Timer | None

    def _run(self) -> None:
        self._since = self._clock.now()
        self._timer = self._clock.call_later(self._left, self._expire)

    def hold(self) -> None:
        """Stand still."""
        self._holds += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._left = max(self._left - (self._clock.now() - self._since), 0.0)

    def go_on(self) -> None:
        """Run again, once nobody holds it any more."""
        self._holds -= 1
        if self._holds == 0:
            self._run()

    def stop(self) -> None:
        """It is not needed any more."""
        self._holds += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Waiting:
    """How one running tool waits: in memory, or put aside if it can be begun again.

    A tool may outlive the drive that started it: whoever drives the turn now is who knows what has come.
    """

    def __init__(self, run: Run, can_resume: bool, kept: str = "") -> None:
        self._first, self.can_resume, self.kept = run, can_resume, kept
        self._waits: set[tuple[str, str]] = set()  # kind, name

    # Most tools ask nobody, and pay for none of these.
    aside: Aside | None = None
    patience: Patience | None = None
    _task: asyncio.Task[object] | None = None
    _writing = 0  # appends of this tool that are under way

    @property
    def run(self) -> Run:
        """Whoever drives the turn now.

        Raises:
            ToolError: nobody does any more.
        """
        run = self._driver()
        if run is None:
            raise ToolError(OVER)
        return run

    def _driver(self) -> Run | None:
        run: Run | None = self._first.setup.supervisor.driven(self._first.turn)
        return None if run is None or run.state.ending is not None or run.state.phase.is_terminal else run

    @property
    def is_over(self) -> bool:
        """Whether nobody needs what this tool does any more."""
        return self._driver() is None

    def begin(self, task: asyncio.Task[object]) -> None:
        """Know whom to put aside."""
        self._task = task

    def paused(self, call: str, gate: str) -> CallPaused:
        """That a tool is put aside, to be written with the question it asks: a process may die right behind it."""
        self._waits.add(("gates", gate))
        return paused_event(self._first.turn, self._first.now(), call, self._aside())

    def _aside(self) -> Aside:
        waits = {kind: tuple(sorted(name for of, name in self._waits if of == kind)) for kind in KINDS}
        return Aside(self.kept, waits["gates"], waits["calls"], next(iter(waits["below"]), ""))

    # Writing ------------------------------------------------------------------------------------------------------------

    async def write(self, make: Callable[[], Sequence[Event]]) -> None:
        """Write events of the turn for a tool that runs. An append is never cut off: the tool alone may be cancelled.

        Raises:
            ToolError: the turn is over.
        """
        await self.whole(self.put(make))

    async def put(self, make: Callable[[], Sequence[Event]]) -> None:
        """Write events of the turn, by whoever drives it."""
        while True:
            run, moved = self.run, self._first.setup.supervisor.moved.strokes
            try:
                await run.commit(make)
                return
            except InvalidEvent:
                raise ToolError(OVER) from None
            except TurnClosed:
                pass  # the next drive writes it,
            except Exception:
                if not run.ledger.is_broken:
                    raise  # as it does what this one has lost, if that was not written after all
                run.stirs.ring()
            if not self.is_over and self.run is run:
                await self._first.setup.supervisor.moved.after(moved)

    async def whole(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something to its end, though the tool may be cancelled in the middle."""
        self._writing += 1
        task = asyncio.get_running_loop().create_task(work)
        task.add_done_callback(self._wrote)
        await asyncio.shield(task)

    def _wrote(self, task: asyncio.Task[None]) -> None:
        self._writing -= 1
        if not task.cancelled():
            task.exception()
        if (run := self._first.setup.supervisor.driven(self._first.turn)) is not None:
            run.stirs.ring()
        self._first.stirs.ring()

    # Waiting ------------------------------------------------------------------------------------------------------------

    async def until(
        self, kind: str, name: str, has_come: Callable[[TurnState], bool], waits: Callable[[TurnState], bool]
    ) -> None:
        """Wait until something has come and is written; while a person is waited for, put the tool aside if it can be
        begun again.
        """
        supervisor = self._first.setup.supervisor
        while True:
            run = self.run
            heard, moved = run.stirs.strokes, supervisor.moved.strokes
            async with run.ledger.at_rest:  # what is folded is written when nobody writes
                is_lost = run.ledger.is_broken
                if not is_lost and has_come(run.state):
                    return
            if is_lost or run.is_closed:
                if self.run is run:
                    await supervisor.moved.after(moved)
            elif waits(run.state):
                await self._wait(kind, name, run, heard)
            else:
                await run.stirs.after(heard)

    async def _wait(self, kind: str, name: str, run: Run, heard: int) -> None:
        self._waits.add((kind, name))
        if self.patience is not None:
            self.patience.hold()
        try:
            if self.can_resume:
                await self._leave()
            await run.stirs.after(heard)
        finally:
            self._waits.discard((kind, name))
            if self.patience is not None:
                self.patience.go_on()

    async def leave(self, kind: str, name: str) -> None:
        """Put the tool aside until something has come that the log of this turn does not tell."""
        self._waits.add((kind, name))
        await self._leave()

    async def _leave(self) -> None:
        """Put the tool aside, once what it does at the same time is written."""
        await asyncio.sleep(0)
        while self._writing:
            await self._first.stirs.after(self._first.stirs.strokes)
        if self.aside is not None or self._task is None:
            return
        self.aside = self._aside()
        self._task.cancel()
        await asyncio.get_running_loop().create_future()  # until the task is cancelled, which it is now


def paused_event(turn: str, at: float, call: str, aside: Aside) -> CallPaused:
    """That a tool was put aside."""
    return CallPaused(
        turn=turn, at=at, call=call, kept=aside.kept, gates=aside.gates, calls=aside.calls, below=aside.below
    )
