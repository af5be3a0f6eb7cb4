"""A store that tells what was written through it: to whom counts, and to whom traces. It changes nothing.

Told is only what is in the log, and only by the process that wrote it: each event once, or (a process that died between
the two) never. Whoever needs all of it reads the log.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, cast

from everturn.core.events import Entry, Event
from everturn.core.ports import Claim, Store
from everturn.errors import EverturnError
from everturn.telemetry.metrics import METRICS

log = logging.getLogger(__name__)

S = TypeVar("S", bound=Store)


class Watcher(Protocol):
    """Is told of what was written. It is called between two steps of a turn, so it takes note and returns."""

    def appended(self, store: Store, session: str, entries: Sequence[Entry]) -> None:
        """These are in the log now."""
        ...


def watched(store: S, *watchers: Watcher) -> S:
    """The same store, with somebody looking over its shoulder."""
    return cast("S", _Watched(store, watchers)) if watchers else store


class _Watched:
    """Hands everything on, whatever store it is."""

    def __init__(self, store: Store, watchers: Sequence[Watcher]) -> None:
        self._store, self._watchers = store, watchers
        self.inner: Store = getattr(store, "inner", store)  # the one at the bottom, where others stand between

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def claim(self, session: str, now: float) -> Claim | None:
        claim = await self._store.claim(session, now)
        if claim is not None and claim.inbox and not claim.turns:  # else they may have waited for the turn before them
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
            except Exception:  # a turn is worth more than its trace
                log.exception("a watcher of the log failed; the turn does not mind")
        return head
