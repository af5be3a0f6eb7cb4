"""The one place that appends to a session's log.

Every append carries the position it expects; a driver that has been overtaken is refused and stops. An event is folded
under the same lock under which it is written, so what a coroutine reads and what the log says cannot drift apart, and
whoever wants to act waits for its own commit: nothing happens before it is written down.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Sequence

from everturn.core.deltas import LogMoved
from everturn.core.events import Event, TurnEvent, TurnStarted
from everturn.core.ports import Bus, Store
from everturn.core.state import Phase, TurnState
from everturn.errors import DriverLost

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
        self._failure: BaseException | None = None

    def adopt(self, state: TurnState) -> None:
        """Take over a turn that was begun before."""
        self.turns[state.id] = state

    @property
    def at_rest(self) -> asyncio.Lock:
        """Hold this to cancel what may be writing: an append under way is never interrupted, or nobody knew its end."""
        return self._lock

    async def commit(self, make: Callable[[], Sequence[Event]] | Sequence[Event]) -> int:
        """Write events, all or none, and return the position of the last; a callable makes them under the lock."""
        async with self._lock:
            if self._failure is not None:
                raise DriverLost(f"an earlier append to {self.session} failed: {self._failure!r}") from self._failure
            events = make() if callable(make) else make
            if not events:
                return self.head
            before = {turn: self._phase(turn) for turn in _turns_of(events)}
            try:
                for event in events:
                    self._fold(event)
                self.head = await self._store.append(self.session, self.head, events)
            except BaseException as error:
                # What is folded and what is written may differ now: only the log knows, and another drive reads it.
                self._failure = error
                raise
            if any(not isinstance(event, TurnEvent) for event in events):
                self._bus.publish(self.session, (LogMoved(self.head),))
            for turn, phase in before.items():
                self._bus.publish(turn, (LogMoved(self.head),))
                state = self.turns.get(turn)
                if state is not None and state.phase is not phase:
                    self._announce(self.session, state)
                if state is not None and state.phase.is_terminal:
                    self._bus.close(turn)
            return self.head

    def _phase(self, turn: str) -> Phase:
        state = self.turns.get(turn)
        return Phase.IDLE if state is None else state.phase

    def _fold(self, event: Event) -> None:
        if not isinstance(event, TurnEvent):
            return
        if isinstance(event, TurnStarted):
            self.turns[event.turn] = TurnState(event.turn)
        state = self.turns.get(event.turn)
        if state is not None:  # a late result may come for a turn that is long over
            state.apply(event)


def _turns_of(events: Iterable[Event]) -> list[str]:
    return list(dict.fromkeys(event.turn for event in events if isinstance(event, TurnEvent)))
