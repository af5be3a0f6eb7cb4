"""Tool tasks: owns the asyncio task of every running tool in the process. A tool may outlive its turn.

A turn watches its tools through this class. When the turn is cancelled its tools are detached, and their late results
are admitted as commands, like every other input.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable
from typing import Any
from weakref import WeakValueDictionary

from msgspec import Struct

from everturn.core.events import AgentSwitched
from everturn.core.options import Spent
from everturn.core.parts import CallState, Output
from everturn.running.notifier import Notifier

log = logging.getLogger(__name__)


MAX_KEPT_ERRORS = 32  # exceptions of failed turns, kept for callers in this process
TOOL_SHUTDOWN_GRACE = 1.0  # seconds for tools to end when the process stops


class Suspension(Struct, frozen=True):
    """What a suspended tool waits for, and the state it saved for its resume."""

    saved_state: str = ""
    gates: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    child: str = ""
    waits: tuple[str, ...] = ()


class ToolOutcome(Struct, frozen=True):
    """The outcome of a tool: its final state and output, or its suspension."""

    state: CallState
    output: Output
    spent: Spent | None = None  # by its sub-agent runs
    recent_calls: tuple[str, ...] = ()  # fingerprints of their last calls
    needs_review: bool = False  # a person must review the result first
    suspension: Suspension | None = None  # the tool was suspended and has no outcome yet
    switch: AgentSwitched | None = None  # the call hands the turn to another agent


ToolCoroutine = Coroutine[Any, Any, ToolOutcome]
LateResultCallback = Callable[[str, ToolOutcome], Coroutine[Any, Any, None]]


class ToolTasks:
    """Owns tool tasks, by turn and call."""

    def __init__(self) -> None:
        self._turns: dict[str, dict[str, asyncio.Task[ToolOutcome]]] = {}
        self._errors: dict[str, BaseException] = {}  # turn -> its exception; the log has only the text
        self._detached: dict[str, set[asyncio.Task[ToolOutcome]]] = {}
        self._done: dict[str, dict[str, ToolOutcome]] = {}
        self._out: dict[str, set[str]] = {}  # turn -> detached calls whose result is not delivered yet
        self._watchers: dict[str, Callable[[], None]] = {}
        self._runs: dict[str, Any] = {}  # turn -> its active turn, for tools that outlive one drive
        self._filing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self.drive_notifier = Notifier()  # notified when the drive of a turn changes
        self._loose: set[asyncio.Task[Any]] = set()

    def files_lock(self, session: str) -> asyncio.Lock:
        """The lock for changing the files of a session."""
        if (lock := self._filing.get(session)) is None:
            lock = self._filing[session] = asyncio.Lock()
        return lock

    def active_turn(self, turn: str) -> Any:
        """The active turn that drives a turn here, or the last one while it has tools; None: there is none."""
        return self._runs.get(turn)

    def keep_error(self, turn: str, error: BaseException) -> None:
        """Keep the exception of a failed turn for a caller in this process; only the latest are kept."""
        self._errors[turn] = error
        while len(self._errors) > MAX_KEPT_ERRORS:
            del self._errors[next(iter(self._errors))]

    def error_of(self, turn: str) -> BaseException | None:
        """The exception of a turn, if it failed in this process recently."""
        return self._errors.get(turn)

    def set_active_turn(self, turn: str, run: Any) -> None:
        """Set the active turn that drives a turn; None: it has none any more."""
        if run is None:
            self._runs.pop(turn, None)
        else:
            self._runs[turn] = run
        self.drive_notifier.notify()

    def watch(self, turn: str, notify: Callable[[], None]) -> None:
        """Call `notify`, in place of any earlier watcher, whenever a tool of this turn is done."""
        self._watchers[turn] = notify

    def unwatch(self, turn: str, notify: Callable[[], None]) -> None:
        """Remove this watcher; one that has replaced it stays."""
        if self._watchers.get(turn) == notify:
            del self._watchers[turn]

    def spawn(self, turn: str, call: str, work: ToolCoroutine) -> None:
        """Run a tool."""

        async def run() -> ToolOutcome:
            try:
                outcome = await work
            except asyncio.CancelledError:
                if (
                    self._turns.get(turn, {}).get(call) is asyncio.current_task()
                ):  # a task that we cancel is removed from `_turns` first
                    self._finish(turn, call, ToolOutcome("failed", Output("the tool cancelled itself", code="failed")))
                raise
            except BaseException as error:
                log.exception("call %s failed inside Everturn, not in its tool", call)
                outcome = ToolOutcome("failed", Output(f"{type(error).__name__} while the call was run", code="failed"))
            self._finish(turn, call, outcome)
            return outcome

        self._turns.setdefault(turn, {})[call] = asyncio.get_running_loop().create_task(run())

    def _finish(self, turn: str, call: str, outcome: ToolOutcome) -> None:
        # At once, and not in a done callback: that would run one iteration of the event loop later.
        tasks = self._turns.get(turn, {})
        if tasks.pop(call, None) is not None:
            self._done.setdefault(turn, {})[call] = outcome
        if not tasks:
            self._turns.pop(turn, None)
        if (notify := self._watchers.get(turn)) is not None:
            notify()

    def running_calls(self, turn: str) -> set[str]:
        """The calls whose tools this process holds, finished ones included until they are forgotten."""
        return {*self._turns.get(turn, ()), *self._done.get(turn, ())}

    def outcomes(self, turn: str) -> dict[str, ToolOutcome]:
        """The outcomes of finished tools, kept until `forget` says that they are in the log."""
        return dict(self._done.get(turn, {}))

    def forget(self, turn: str, calls: Iterable[str]) -> None:
        """Drop the outcomes of these calls, which are in the log."""
        done = self._done.get(turn, {})
        for call in calls:
            done.pop(call, None)
        if not done:
            self._done.pop(turn, None)

    def abandon(self, turn: str) -> None:
        """Drop the tools of a turn that another process drives: their results cannot be written here."""
        self._done.pop(turn, None)
        self.set_active_turn(turn, None)
        for task in self._turns.pop(turn, {}).values():
            self._let_go(task)

    def give_up(self, turn: str, call: str, outcome: ToolOutcome) -> None:
        """Stop waiting for a tool that does not end: its call gets this outcome, its task is abandoned."""
        task = self._turns.get(turn, {}).get(call)
        if task is not None:
            self._finish(turn, call, outcome)
            self._let_go(task)

    def detach(self, turn: str, hand_in: LateResultCallback) -> None:
        """Let the tools of a finished turn continue; `hand_in` gets each result when it arrives."""
        tasks = self._turns.pop(turn, {})
        done = self._done.pop(turn, {})
        if tasks:
            self._detached[turn] = set(tasks.values())
        if tasks or done:
            self._out.setdefault(turn, set()).update(tasks, done)
        for call, outcome in done.items():
            self._own(self._deliver(turn, call, outcome, hand_in))
        for call, task in tasks.items():
            self._own(self._deliver(turn, call, task, hand_in))

    def has_undelivered(self, turn: str, call: str | None = None) -> bool:
        """Whether a detached tool of a turn has not delivered its result yet."""
        out = self._out.get(turn, set())
        return bool(out) if call is None else call in out

    async def _deliver(
        self, turn: str, call: str, ended: ToolOutcome | asyncio.Task[ToolOutcome], hand_in: LateResultCallback
    ) -> None:
        try:
            await hand_in(call, ended if isinstance(ended, ToolOutcome) else await self._end_of(turn, ended))
        finally:
            out = self._out.get(turn, set())
            out.discard(call)
            if not out:
                self._out.pop(turn, None)
            if (notify := self._watchers.get(turn)) is not None:
                notify()

    async def _end_of(self, turn: str, task: asyncio.Task[ToolOutcome]) -> ToolOutcome:
        try:
            return await task
        finally:
            remaining = self._detached.get(turn, set())
            remaining.discard(task)
            if not remaining:
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

    def run_detached(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that no turn waits for; `aclose` cancels it."""
        self._own(work)

    def _own(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._loose.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._loose.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a late result could not be stored", exc_info=error)

    async def wait_idle(self) -> None:
        """Wait until no tool runs: for tests, and for a shutdown that can wait."""
        while self._loose or self._turns:
            tasks = [*self._loose, *(task for turn in self._turns.values() for task in turn.values())]
            if not tasks:
                return
            await asyncio.wait(tasks)

    async def aclose(self) -> None:
        """Cancel all tools. The next driver finds a stopped `once` tool as `outcome_unknown`."""
        tasks = [*self._loose, *(task for turn in self._turns.values() for task in turn.values())]
        for task in tasks:
            task.cancel()
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        if tasks:  # a task that ignores the cancellation is abandoned
            await asyncio.wait(tasks, timeout=TOOL_SHUTDOWN_GRACE)
