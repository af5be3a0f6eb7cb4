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

from everturn.core.deltas import LogMoved
from everturn.core.events import Event, TurnEvent, TurnStarted
from everturn.core.ports import Bus, Store
from everturn.core.state import Phase, TurnState
from everturn.errors import DriverLost, InvalidEvent

log = logging.getLogger(__name__)

Announce = Callable[[str, TurnState], None]


class Ledger:
    """A session's log as its driver writes it, and the fold of every turn that is open in it."""

    def __init__(self, session: str, head: int, store: Store, bus: Bus, announce: Announce) -> None:
        self.session = session
        self.head = head
        self.turns: dict[str, TurnState] = {}
        self._store, self._bus, self._announce = store, bus, announce
        self._lock = asyncio.Lock()
        self._staged: list[Event] = []
        self._before: dict[str, Phase] = {}  # the phases of turns as they were written last
        self._failure: BaseException | None = None

    def adopt(self, state: TurnState) -> None:
        """Take over a turn that was begun before."""
        self.turns[state.id] = state

    @property
    def at_rest(self) -> asyncio.Lock:
        """Hold this to cancel what may be writing: an append under way is never interrupted, or nobody knew its end."""
        return self._lock

    def stage(self, make: Callable[[], Sequence[Event]] | Sequence[Event]) -> None:
        """Let events have happened, to be written with the next commit: for those that are followed by one at once.

        Nothing may be done in between that must not be done twice: a process that dies there has not written them.
        """
        self._check()
        for event in make() if callable(make) else make:
            self._fold(event)
            self._staged.append(event)

    async def commit(self, make: Callable[[], Sequence[Event]] | Sequence[Event]) -> int:
        """Write events, all or none, and return the position of the last; a callable makes them under the lock."""
        async with self._lock:
            self._check()
            made = make() if callable(make) else make
            if not made and not self._staged:
                return self.head
            folded = 0
            try:
                for event in made:
                    self._fold(event)
                    folded += 1
                events, self._staged = [*self._staged, *made], []
                before, self._before = self._before, {}
                self.head = await self._store.append(self.session, self.head, events)
            except BaseException as error:
                # What is folded and what is written may differ now: only the log knows, and another drive reads it.
                # One that was refused before anything was folded did no harm (a hook that was left behind, writing).
                if folded or not isinstance(error, InvalidEvent):
                    self._failure = error
                raise
            self._tell(before)
            return self.head

    def _check(self) -> None:
        if self._failure is not None:
            raise DriverLost(f"an earlier append to {self.session} failed: {self._failure!r}") from self._failure

    def _fold(self, event: Event) -> None:
        turn, before = getattr(event, "turn", None), self._before
        if turn is None:
            before[""] = Phase.IDLE  # an event of the session itself
            return
        state = self.turns.get(turn)
        if type(event) is TurnStarted:
            state = self.turns[turn] = TurnState(turn)
        if turn not in before:
            before[turn] = Phase.IDLE if state is None else state.phase
        if state is not None:  # a late result may come for a turn that is long over
            state.apply(cast("TurnEvent", event))

    def _tell(self, before: dict[str, Phase]) -> None:
        """Tell readers that the log moved, and listeners of every phase that was entered."""
        moved = (LogMoved(self.head),)
        for turn, phase in before.items():
            self._bus.publish(turn or self.session, moved)
            state = self.turns.get(turn)
            if state is not None and state.phase is not phase:
                self._announce(self.session, state)
                if state.phase.is_terminal:
                    self._bus.close(turn)
