"""The one place that appends to a session's log.

Every append carries the position it expects; a driver that has been overtaken is refused and stops. An event is folded
under the same lock under which it is written, so what a coroutine reads and what the log says cannot drift apart, and
whoever wants to act waits for its own commit: nothing happens before it is written down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import cast

from everturn import faults
from everturn.core.deltas import LogMoved
from everturn.core.events import Event, TurnEvent, TurnStarted
from everturn.core.ports import Bus, Claim, Store
from everturn.core.state import Phase, TurnState
from everturn.errors import DriverLost, InvalidEvent, Stale, StoreUnavailable

log = logging.getLogger(__name__)

Announce = Callable[[str, TurnState, Phase], None]


class Ledger:
    """A session's log as its driver writes it, and the fold of every turn that is open in it."""

    def __init__(self, session: str, claim: Claim, store: Store, bus: Bus, announce: Announce) -> None:
        self.session, self.tenant = session, claim.info.tenant
        self.head, self._epoch = claim.head, claim.epoch
        self.turns: dict[str, TurnState] = {}
        self._store, self._bus, self._announce = store, bus, announce
        self._lock = asyncio.Lock()
        self.trees: dict[str, str] = {}  # of files, as far as somebody asked; root -> the last one
        self._staged: list[Event] = []
        self._then: list[Callable[[], None]] = []  # to be called once these are written
        self._entered: dict[str, list[Phase]] = {}  # turn that moved -> the phases it entered since it was written last
        self._failure: BaseException | None = None

    def adopt(self, state: TurnState) -> None:
        """Take over a turn that was begun before."""
        self.turns[state.id] = state

    @property
    def is_broken(self) -> bool:
        """Whether an append has failed: what is folded here may not be written."""
        return self._failure is not None

    @property
    def at_rest(self) -> asyncio.Lock:
        """Hold this to cancel what may be writing: an append under way is never interrupted, or nobody knew its end."""
        return self._lock

    def stage(
        self, make: Callable[[], Sequence[Event]] | Sequence[Event], then: Callable[[], None] | None = None
    ) -> None:
        """Let events have happened, to be written with the next commit: for those that are followed by one at once.

        Nothing may be done in between that must not be done twice: a process that dies there has not written them.
        `then` is called when they are written, and never if they are not.
        """
        self.check()
        for event in make() if callable(make) else make:
            self._fold(event)
            self._staged.append(event)
        if then is not None:
            self._then.append(then)

    async def commit(self, make: Callable[[], Sequence[Event]] | Sequence[Event]) -> int:
        """Write events, all or none, and return the position of the last; a callable makes them under the lock."""
        async with self._lock:
            self.check()
            made = make() if callable(make) else make
            if not made and not self._staged:
                return self.head
            folded = 0
            try:
                for event in made:
                    self._fold(event)
                    folded += 1
                events, self._staged = [*self._staged, *made], []
                entered, self._entered = self._entered, {}
                then, self._then = self._then, []
                _mark(events, "before")
                self.head = await self._store.append(self.session, self.head, events, self._epoch)
                _mark(events, "after")
            except BaseException as error:
                # What is folded and what is written may differ now: only the log knows, and another drive reads it.
                # One that was refused before anything was folded did no harm (a hook that was left behind, writing).
                if folded or not isinstance(error, InvalidEvent):
                    self._failure = error
                raise
            for each in then:
                each()
            self._tell(entered)
            return self.head

    def check(self) -> None:
        """Refuse to go on when an append has failed.

        Raises:
            Stale, StoreUnavailable, DriverLost: another drive reads what was written.
        """
        if isinstance(self._failure, Stale | StoreUnavailable):  # neither is the session's fault
            raise type(self._failure)(str(self._failure)) from self._failure
        if self._failure is not None:
            raise DriverLost(f"an earlier append to {self.session} failed: {self._failure!r}") from self._failure

    def _fold(self, event: Event) -> None:
        turn = getattr(event, "turn", None)
        if turn is None:
            self._entered.setdefault("", [])  # an event of the session itself
            return
        state = self.turns.get(turn)
        if type(event) is TurnStarted:
            state = self.turns[turn] = TurnState(turn)
            self._entered.setdefault("", [])  # whoever follows the session has to hear of a turn they do not know,
        elif state is None or state.phase.is_terminal:
            self._entered.setdefault("", [])  # and of one that they take to be over
        entered = self._entered.get(turn)
        if entered is None:
            entered = self._entered[turn] = []
        if state is not None:  # a late result may come for a turn that is long over
            before = state.phase
            state.apply(cast("TurnEvent", event))
            if state.phase is not before:
                entered.append(state.phase)

    def _tell(self, entered: dict[str, list[Phase]]) -> None:
        """Tell readers that the log moved, and listeners of every phase that was entered."""
        moved = (LogMoved(self.head),)
        for turn, phases in entered.items():
            self._bus.publish(turn or self.session, moved)
            state = self.turns.get(turn)
            if state is not None and phases:
                for phase in phases:
                    self._announce(self.session, state, phase)
                if phases[-1].is_terminal:
                    self._bus.close(turn)


def _mark(events: Sequence[Event], when: str) -> None:
    """Every kind of event has a place before and after it is written where a test may let the process die."""
    if faults.is_on():
        for event in events:
            faults.hit(f"log.{type(event).__name__}.{when}")
