"""Ledger: the only writer of a session's log, and the fold of its open turns.

Every append carries the position and the epoch it expects, so the store refuses a driver that has lost its claim. An
event is folded under the same lock under which it is written, so the state that a coroutine reads and the log cannot
diverge. Code that causes an effect awaits its own commit first: no effect happens before its event is written.

Staging and committing: a write to the store is the cost of a step, and many events are followed at once by another
one. `stage` folds an event immediately and writes it with the next commit. Invariant: between a `stage` and the commit
that follows, nothing is done that must not be done twice, because a process that dies there has not written the event
and another driver repeats the work. If an append fails, the fold may be ahead of the log: the ledger is broken, refuses
every further write, and another drive starts from the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import cast

from everturn import failpoints
from everturn.core.deltas import LogAdvanced
from everturn.core.events import Event, TurnEvent, TurnStarted
from everturn.core.phases import Phase
from everturn.core.ports import Bus
from everturn.core.projections.event_index import EventIndex, index_key
from everturn.core.state import TurnState
from everturn.core.store_ports import SessionClaim, Store, TurnSnapshotStore
from everturn.errors import DriverLost, InvalidEvent, Stale, StoreUnavailable
from everturn.turn_snapshot import SNAPSHOT_EVENTS, events_until_next, take_snapshot

log = logging.getLogger(__name__)

Announce = Callable[[str, TurnState, Phase], None]


class Ledger:
    """Writes one session's log for its driver, and holds the fold of every open turn."""

    def __init__(self, session: str, claim: SessionClaim, store: Store, bus: Bus, announce: Announce) -> None:
        self.session, self.tenant = session, claim.info.tenant
        self.head, self._epoch = claim.head, claim.epoch
        self.turns: dict[str, TurnState] = {}
        self._store, self._bus, self._announce = store, bus, announce
        self._lock = asyncio.Lock()
        self.trees: dict[str, str] = {}  # cache of file trees: root -> the last recorded tree
        self._staged: list[Event] = []
        self._then: list[Callable[[], None]] = []  # callbacks for when the staged events are written
        self._entered: dict[
            str, list[Phase]
        ] = {}  # turn with new events -> the phases it entered since the last commit
        self._failure: BaseException | None = None
        self._snapshots = cast("TurnSnapshotStore", store) if hasattr(store, "keep_snapshot") else None
        self._until_snapshot: dict[str, int] = {}  # turn -> events until its fold is stored again
        self._is_snapshot_due = False
        self._indexed: set[str] | None = None  # indexes that have events; None: only the store knows

    def start_empty(self) -> None:
        """Note that the log was empty when this driver claimed it: what is in it, this ledger has written."""
        self._indexed = set()

    def may_have_indexed(self, index: EventIndex) -> bool:
        """Whether the log may have events of an index, so that the store is worth asking."""
        return self._indexed is None or index in self._indexed

    def adopt(self, state: TurnState) -> None:
        """Add the state of a turn that another drive started."""
        self.turns[state.id] = state

    @property
    def is_broken(self) -> bool:
        """Whether an append has failed: what is folded here may not be written."""
        return self._failure is not None

    @property
    def write_lock(self) -> asyncio.Lock:
        """The lock to hold while cancelling tasks that may write: an append must not be interrupted, or its result is
        lost.
        """
        return self._lock

    def stage(
        self, make: Callable[[], Sequence[Event]] | Sequence[Event], then: Callable[[], None] | None = None
    ) -> None:
        """Fold events now, and write them with the next commit, which must follow at once.

        Nothing may be done in between that must not be done twice: a process that dies there has not written them.
        `then` is called once they are written, and never if they are not.
        """
        self.raise_if_broken()
        for event in make() if callable(make) else make:
            self._fold(event)
            self._staged.append(event)
        if then is not None:
            self._then.append(then)

    async def commit(self, make: Callable[[], Sequence[Event]] | Sequence[Event]) -> int:
        """Write events, all or none, and return the position of the last; a callable makes them under the lock."""
        async with self._lock:
            self.raise_if_broken()
            new_events = make() if callable(make) else make
            if not new_events and not self._staged:
                return self.head
            folded = 0
            try:
                for event in new_events:
                    self._fold(event)
                    folded += 1
                events, self._staged = [*self._staged, *new_events], []
                entered, self._entered = self._entered, {}
                callbacks, self._then = self._then, []
                if self._is_snapshot_due:
                    self._keep_snapshots(self.head + len(events))
                _hit_failpoints(events, "before")
                self.head = await self._store.append(self.session, self.head, events, self._epoch)
                _hit_failpoints(events, "after")
            except BaseException as error:
                # The fold and the log may differ now; another drive starts from the log. An event that was refused
                # before anything was folded did no harm (an abandoned hook that still writes).
                if folded or not isinstance(error, InvalidEvent):
                    self._failure = error
                raise
            for callback in callbacks:
                callback()
            self._notify(entered)
            return self.head

    def raise_if_broken(self) -> None:
        """Raise if an append has failed.

        Raises:
            Stale, StoreUnavailable, DriverLost: an earlier append failed; another drive starts from the log.
        """
        if isinstance(self._failure, Stale | StoreUnavailable):  # the session did not cause either
            raise type(self._failure)(str(self._failure)) from self._failure
        if self._failure is not None:
            raise DriverLost(f"an earlier append to {self.session} failed: {self._failure!r}") from self._failure

    def _fold(self, event: Event) -> None:
        if self._indexed is not None and (key := index_key(event)) is not None:
            self._indexed.add(key[0])
        turn: str | None = getattr(event, "turn", None)
        if turn is None:
            self._entered.setdefault("", [])  # an event of the session itself
            return
        state = self.turns.get(turn)
        if type(event) is TurnStarted:
            state = self.turns[turn] = TurnState(turn)
            self._entered.setdefault("", [])  # readers of the session must learn of a new turn,
        elif state is None or state.phase.is_terminal:
            self._entered.setdefault("", [])  # and of an event in a turn that they consider over
        entered = self._entered.get(turn)
        if entered is None:
            entered = self._entered[turn] = []
        if state is not None:  # a late result may arrive for a turn that ended long ago
            before = state.phase
            state.apply(cast("TurnEvent", event))
            if state.phase is not before:
                entered.append(state.phase)
            remaining = self._until_snapshot[turn] = self._until_snapshot.get(turn, SNAPSHOT_EVENTS) - 1
            if remaining <= 0:
                self._is_snapshot_due = True

    def _keep_snapshots(self, head: int) -> None:
        """Have the store write the folds of long turns with the next append, which must follow at once."""
        self._is_snapshot_due = False
        for turn, remaining in list(self._until_snapshot.items()):
            state = self.turns.get(turn)
            if remaining <= 0 and state is not None:
                snapshot = take_snapshot(state, head) if self._snapshots is not None else None
                self._until_snapshot[turn] = events_until_next(snapshot)
                if snapshot is not None and self._snapshots is not None:
                    self._snapshots.keep_snapshot(self.session, snapshot)

    def _notify(self, entered: dict[str, list[Phase]]) -> None:
        """Notify readers that the log has grown, and listeners of every phase that was entered."""
        moved = (LogAdvanced(self.head),)
        for turn, phases in entered.items():
            self._bus.publish(turn or self.session, moved)
            state = self.turns.get(turn)
            if state is not None and phases:
                for phase in phases:
                    self._announce(self.session, state, phase)
                if phases[-1].is_terminal:
                    self._bus.close(turn)


def _hit_failpoints(events: Sequence[Event], when: str) -> None:
    """Failpoints before and after the write of each kind of event, where a test can kill the process."""
    if failpoints.is_active():
        for event in events:
            failpoints.hit_failpoint(f"log.{type(event).__name__}.{when}")
