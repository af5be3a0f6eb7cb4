"""What is meant to outlive its turn: running tools. The one owner of every tool task in the process.

A turn watches its tools from here; when it is cancelled they are detached, and what they bring later is handed in
through the front door like anything else that comes from outside.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from everturn.core.options import Spent
from everturn.core.parts import CallState, Output
from everturn.turn.bell import Bell

log = logging.getLogger(__name__)


MOST_ERRORS = 32  # of turns that failed here, kept for whoever collects them
GRACE = 1.0  # seconds tools have to end when the process does


class Aside(Struct, frozen=True):
    """What a tool waits for, and what it wants to find when it is begun again."""

    kept: str = ""
    gates: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    below: str = ""


class Settlement(Struct, frozen=True):
    """What a tool came to."""

    state: CallState
    output: Output
    spent: Spent | None = None  # by sub-turns of it,
    trail: tuple[str, ...] = ()  # and the marks of what they called last
    is_for_people: bool = False  # the result is for a person to read first
    aside: Aside | None = None  # it came to nothing yet: its tool was put aside


Work = Coroutine[Any, Any, Settlement]
HandIn = Callable[[str, Settlement], Coroutine[Any, Any, None]]


class Supervisor:
    """Owns tool tasks, by turn and call."""

    def __init__(self) -> None:
        self._turns: dict[str, dict[str, asyncio.Task[Settlement]]] = {}
        self._errors: dict[str, BaseException] = {}  # turn -> what it failed of; the log has only the text of it
        self._detached: dict[str, set[asyncio.Task[Settlement]]] = {}
        self._done: dict[str, dict[str, Settlement]] = {}
        self._out: dict[str, set[str]] = {}  # turn -> calls that were detached and not handed in yet
        self._watchers: dict[str, Callable[[], None]] = {}
        self._runs: dict[str, Any] = {}  # turn -> who drives it now, for tools that outlive one drive
        self._filing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.moved = Bell()  # rung when somebody else drives a turn
        self._loose: set[asyncio.Task[Any]] = set()

    def filing(self, session: str) -> asyncio.Lock:
        """Held by whoever changes the files of a session."""
        if (lock := self._filing.get(session)) is None:
            lock = self._filing[session] = asyncio.Lock()
        return lock

    def driven(self, turn: str) -> Any:
        """Who drives a turn here now, or did last while it has tools; None: nobody does any more."""
        return self._runs.get(turn)

    def keep_error(self, turn: str, error: BaseException) -> None:
        """Keep what a turn failed of, for a caller in this process; of many the latest."""
        self._errors[turn] = error
        while len(self._errors) > MOST_ERRORS:
            del self._errors[next(iter(self._errors))]

    def error_of(self, turn: str) -> BaseException | None:
        """What a turn failed of, if it was here and not long ago."""
        return self._errors.get(turn)

    def drive(self, turn: str, run: Any) -> None:
        """From now on this is who drives a turn; None: its tools are on their own."""
        if run is None:
            self._runs.pop(turn, None)
        else:
            self._runs[turn] = run
        self.moved.ring()

    def watch(self, turn: str, stirred: Callable[[], None]) -> None:
        """Tell `stirred`, and nobody who watched before, whenever a tool of this turn is done."""
        self._watchers[turn] = stirred

    def unwatch(self, turn: str, stirred: Callable[[], None]) -> None:
        """Stop telling; somebody who has come meanwhile is still told."""
        if self._watchers.get(turn) == stirred:
            del self._watchers[turn]

    def spawn(self, turn: str, call: str, work: Work) -> None:
        """Run a tool."""

        async def run() -> Settlement:
            try:
                settlement = await work
            except asyncio.CancelledError:
                if self._turns.get(turn, {}).get(call) is asyncio.current_task():  # whom we cancel we no longer hold
                    self._finish(turn, call, Settlement("failed", Output("the tool cancelled itself", code="failed")))
                raise
            except BaseException as error:
                log.exception("running call %s failed; its tool is not to blame", call)
                settlement = Settlement(
                    "failed", Output(f"{type(error).__name__} while the call was run", code="failed")
                )
            self._finish(turn, call, settlement)
            return settlement

        self._turns.setdefault(turn, {})[call] = asyncio.get_running_loop().create_task(run())

    def _finish(self, turn: str, call: str, settlement: Settlement) -> None:
        # At once, and not when the task is seen to be done: that would be a turn of the event loop later.
        tasks = self._turns.get(turn, {})
        if tasks.pop(call, None) is not None:
            self._done.setdefault(turn, {})[call] = settlement
        if not tasks:
            self._turns.pop(turn, None)
        if (stirred := self._watchers.get(turn)) is not None:
            stirred()

    def running(self, turn: str) -> set[str]:
        """The calls whose tools this process holds, finished ones included until they are forgotten."""
        return {*self._turns.get(turn, ()), *self._done.get(turn, ())}

    def done(self, turn: str) -> dict[str, Settlement]:
        """What has finished. It is kept until it is safe in the log, and then to be forgotten."""
        return dict(self._done.get(turn, {}))

    def forget(self, turn: str, calls: Iterable[str]) -> None:
        """These are in the log."""
        done = self._done.get(turn, {})
        for call in calls:
            done.pop(call, None)
        if not done:
            self._done.pop(turn, None)

    def abandon(self, turn: str) -> None:
        """Somebody else drives this turn: what its tools still bring here, nobody can write down."""
        self._done.pop(turn, None)
        self.drive(turn, None)
        for task in self._turns.pop(turn, {}).values():
            self._let_go(task)

    def give_up(self, turn: str, call: str, settlement: Settlement) -> None:
        """Stop waiting for a tool that does not end: its call is settled, its task is on its own."""
        task = self._turns.get(turn, {}).get(call)
        if task is not None:
            self._finish(turn, call, settlement)
            self._let_go(task)

    def detach(self, turn: str, hand_in: HandIn) -> None:
        """Let the tools of a turn go on without it; each result is handed in when it comes."""
        tasks = self._turns.pop(turn, {})
        done = self._done.pop(turn, {})
        if tasks:
            self._detached[turn] = set(tasks.values())
        if tasks or done:
            self._out.setdefault(turn, set()).update(tasks, done)
        for call, settlement in done.items():
            self._own(self._deliver(turn, call, settlement, hand_in))
        for call, task in tasks.items():
            self._own(self._deliver(turn, call, task, hand_in))

    def is_out(self, turn: str, call: str | None = None) -> bool:
        """Whether a tool of a turn that was detached here has not been handed in yet."""
        out = self._out.get(turn, set())
        return bool(out) if call is None else call in out

    async def _deliver(
        self, turn: str, call: str, ended: Settlement | asyncio.Task[Settlement], hand_in: HandIn
    ) -> None:
        try:
            await hand_in(call, ended if isinstance(ended, Settlement) else await self._end_of(turn, ended))
        finally:
            out = self._out.get(turn, set())
            out.discard(call)
            if not out:
                self._out.pop(turn, None)
            if (stirred := self._watchers.get(turn)) is not None:
                stirred()

    async def _end_of(self, turn: str, task: asyncio.Task[Settlement]) -> Settlement:
        try:
            return await task
        finally:
            left = self._detached.get(turn, set())
            left.discard(task)
            if not left:
                self._detached.pop(turn, None)

    def cancel(self, turn: str) -> None:
        """Stop the tools of a turn, also those that were detached from it."""
        self._done.pop(turn, None)
        for task in (*self._turns.pop(turn, {}).values(), *self._detached.pop(turn, ())):
            task.cancel()
            self._let_go(task)

    def _let_go(self, task: asyncio.Task[Any]) -> None:
        self._loose.add(task)
        task.add_done_callback(self._loose.discard)

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._loose.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._loose.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a late result could not be handed in", exc_info=error)

    async def settled(self) -> None:
        """Wait until nothing runs any more: for tests, and for a shutdown that can wait."""
        while self._loose or self._turns:
            tasks = [*self._loose, *(task for turn in self._turns.values() for task in turn.values())]
            if not tasks:
                return
            await asyncio.wait(tasks)

    async def aclose(self) -> None:
        """Stop everything. A `once` tool stopped here is `outcome_unknown` to whoever drives on."""
        tasks = [*self._loose, *(task for turn in self._turns.values() for task in turn.values())]
        for task in tasks:
            task.cancel()
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        if tasks:  # one that does not care is left behind
            await asyncio.wait(tasks, timeout=GRACE)
