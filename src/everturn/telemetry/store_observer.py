"""Store observer: wraps a store and reports appended events to metrics and tracing. It changes nothing.

Only committed events are reported, and only by the process that wrote them: each one once or, if that process dies in
between, never. Code that needs all events reads the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast

from everturn.core.events import Entry, Event
from everturn.core.store_ports import SessionClaim, Store
from everturn.errors import EverturnError
from everturn.telemetry.metrics import METRICS

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Store)


class StoreObserver(Protocol):
    """Receives appended events. It is called between two steps of a turn, so it must return quickly."""

    def appended(self, store: Store, session: str, entries: Sequence[Entry]) -> None:
        """Called with entries that are now in the log."""
        ...


def observe_store(store: S, *watchers: StoreObserver) -> S:
    """The same store, with observers."""
    return cast("S", _ObservedStore(store, watchers)) if watchers else store


class _ObservedStore:
    """Forwards everything to the store, whatever its class."""

    def __init__(self, store: Store, watchers: Sequence[StoreObserver]) -> None:
        self._store, self._watchers = store, watchers
        self.inner: Store = getattr(store, "inner", store)  # the innermost store, where other wrappers are in between

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, session: str, now: float) -> SessionClaim | None:
        claim = await self._store.claim(session, now)
        if (
            claim is not None and claim.inbox and not claim.turns and not claim.folded
        ):  # otherwise the commands may have waited for the turn before them
            METRICS.observe("wake_seconds", now - min(command.at for command in claim.inbox))
        return claim

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        began = time.monotonic()
        try:
            head = await self._store.append(session, after, events, epoch)
        except EverturnError as error:
            METRICS.count("store_errors_total", type(error).__name__)
            raise
        METRICS.observe("store_append_seconds", time.monotonic() - began)
        first = head - len(events) + 1
        entries = [Entry(first + number, event) for number, event in enumerate(events)]
        for watcher in self._watchers:
            try:
                watcher.appended(self._store, session, entries)
            except Exception:  # a turn matters more than its trace
                log.exception("an observer of the log failed; the turn continues")
        return head
