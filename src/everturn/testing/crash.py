"""Simulated crashes: a process that dies after any event, without ending the process of the test.

`MortalStore` wraps a real store and lets a given number of events through. Then the process counts as dead: that append
and everything after it raise `Crash`, so that nothing the old runtime still does changes anything. A fresh runtime on
the inner store is the process that takes over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from everturn.core.events import Event
from everturn.core.store_ports import Store, TurnSnapshot, TurnSnapshotStore
from everturn.stores.memory import MemoryStore


class Crash(BaseException):
    """The process is dead. Not an `Exception`, so that no handler catches it."""


class MortalStore(MemoryStore if TYPE_CHECKING else object):  # to a type checker it is a store like any other
    """A store whose process dies when its log has `lives` events.

    It dies right after writing the last of them, in the middle of a batch if necessary, or (`before_next`) when it is
    about to write the next one: then everything between the two has happened in the world and nothing of it is in the
    log.
    """

    def __init__(self, inner: Store, lives: int | None = None, *, before_next: bool = False) -> None:
        self.inner: Store = inner
        self._lives, self._before_next = lives, before_next
        self.died = asyncio.Event()

    def kill(self) -> None:
        """Die now."""
        self.died.set()

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        """Write events while alive. It yields to the event loop as a real store does, which exposes callers that do not
        await it.
        """
        await asyncio.sleep(0)
        self._must_live()
        if self._lives is None:
            return await self._write(session, after, events, epoch)
        room = self._lives - after
        if room > len(events) or (room == len(events) and self._before_next):
            return await self._write(session, after, events, epoch)
        if room > 0:
            await self.inner.append(session, after, events[:room], epoch)
        self.kill()
        raise Crash

    def keep_snapshot(self, session: str, snapshot: TurnSnapshot) -> None:
        """Hand a snapshot on, while alive."""
        if not self.died.is_set():
            cast("TurnSnapshotStore", self.inner).keep_snapshot(session, snapshot)

    async def _write(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        head = await self.inner.append(session, after, events, epoch)
        await asyncio.sleep(0)
        return head

    def _must_live(self) -> None:
        if self.died.is_set():
            raise Crash

    def __getattr__(self, name: str) -> Any:
        """Everything else is the inner store's, while alive."""
        method = getattr(self.inner, name)
        if name == "accounts":
            return method
        if name in ("user_memory", "schedules", "webhooks"):
            return _MortalPort(method, self._must_live)

        async def checked(*args: Any, **kwargs: Any) -> Any:
            self._must_live()
            return await method(*args, **kwargs)

        return checked


class _MortalPort:
    """A port of the store: its methods work while the process is alive."""

    def __init__(self, inner: object, must_live: Callable[[], None]) -> None:
        self._inner, self._must_live = inner, must_live

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)

        async def checked(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(0)
            self._must_live()
            return await method(*args, **kwargs)

        return checked
