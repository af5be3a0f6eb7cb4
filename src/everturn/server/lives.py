"""All open streams of a node: how many a tenant has, that they still live, and that whoever reads still may."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

from everturn.core.accounts import Accounts, Principal, is_at_least, least
from everturn.core.ports import Clock
from everturn.errors import TooMuch
from everturn.server.live import Live
from everturn.server.sse import KEEP_ALIVE
from everturn.telemetry import metrics

log = logging.getLogger(__name__)

LOOK = 2.0  # seconds between two looks for what was revoked; a stream ends within twice that
STALLED = 10.0  # seconds after which a stream is cut whose reader does not even take its end
LEAVING = 0.25  # seconds between two looks for what does not finish by itself any more
LAST_WORDS = 3.0  # seconds in which all streams may say that they end

Standing = Callable[[Collection[Principal]], Awaitable[set[str]]]
"""Of those who read here, the ids of credentials that hold no more."""


def standing_by(accounts: Accounts, clock: Clock) -> Standing:
    """Ask the accounts: who is gone, expired, no longer active, or may do less than when they came."""

    async def standing(principals: Collection[Principal]) -> set[str]:
        now, kept = clock.now(), [one for one in principals if one.kind != "token"]
        known = await accounts.standing({one.credential for one in kept}) if kept else {}
        gone = {one.credential for one in principals if 0 < one.expires <= now}
        for one in kept:
            found = known.get(one.credential)
            if (
                found is None
                or found.credential.revoked
                or 0 < found.credential.expires <= now
                or not (found.user.is_active and found.tenant.is_active)
                or not is_at_least(least(found.user.role, found.credential.role), one.role)
            ):
                gone.add(one.credential)
        for one in principals:
            if one.kind == "token" and one.credential not in gone:
                found = await accounts.user(one.tenant, one.user)
                if found is not None and not (found[0].is_active and found[1].is_active):
                    gone.add(one.credential)
        return gone

    return standing


class Seat:
    """A place among a tenant's streams that is kept while something is sent: whoever is refused has sent nothing."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back, self._is_kept = give_back, True

    def take(self) -> None:
        """Give the place to the stream that it was kept for."""
        if self._is_kept:
            self._is_kept = False
            self._give_back()

    def __enter__(self) -> Seat:
        return self

    def __exit__(self, *_: object) -> None:
        self.take()  # nobody came


class Lives:
    """The streams that are open. One timer keeps all of them alive."""

    def __init__(self, standing: Standing, limit: Callable[[str], int], keep_alive: float) -> None:
        self._standing, self._limit = standing, limit
        self.all: set[Live] = set()
        self._of: Counter[str] = Counter()  # tenant -> how many
        # Each is looked at once per `keep_alive`, a few at a time: all at once would be a jolt.
        self._wheel: list[set[Live]] = [set() for _ in range(max(1, round(keep_alive / 0.5)))]
        self._pause = keep_alive / len(self._wheel)
        self._at = 0
        self._ending: dict[Live, float] = {}  # ended, and still there: since when
        self._is_closed = False
        self._is_empty = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Begin to look after them."""
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [loop.create_task(self._turn_wheel()), loop.create_task(self._look())]

    def admit(self, principal: Principal) -> None:
        """See that a tenant may have another stream.

        Raises:
            TooMuch: it has as many as it may.
        """
        limit = self._limit(principal.tenant)
        if self._is_closed:
            raise TooMuch("this server is about to end; another one goes on with your streams", 1.0)
        if limit and self._of[principal.tenant] >= limit:
            raise TooMuch(f"{limit} streams are open at once, and no more may be; close one, then come again", 5.0)

    def seat(self, principal: Principal) -> Seat:
        """Keep a place for a stream.

        Raises:
            TooMuch: the tenant has as many as it may.
        """
        self.admit(principal)
        self._of[principal.tenant] += 1
        return Seat(lambda: self._uncount(principal.tenant))

    def count_in(self, live: Live) -> Live:
        """Count a stream, until it leaves. It is not held here before it is read: one that never is must go."""
        self._of[live.principal.tenant] += 1
        return live

    def _uncount(self, tenant: str) -> None:
        self._of[tenant] -= 1
        if not self._of[tenant]:
            del self._of[tenant]

    def arrived(self, live: Live) -> None:
        """Somebody reads it."""
        self.all.add(live)
        metrics.add("streams_open", 1, live.kind)
        self._wheel[self._at - 1].add(live)
        if self._is_closed and not live.finishing():
            live.end("drain")

    def left(self, live: Live) -> None:
        """It has left."""
        if live in self.all:
            self.all.discard(live)
            metrics.add("streams_open", -1, live.kind)
            metrics.count("streams_ended_total", live.kind, live.why)
            if live.why == "slow":
                metrics.count("slow_readers_total")
            elif live.why == "revoked":
                metrics.count("streams_revoked_total")
        self._uncount(live.principal.tenant)
        for bucket in self._wheel:
            bucket.discard(live)
        self._ending.pop(live, None)
        if not self.all:
            self._is_empty.set()

    def count(self, tenant: str) -> int:
        """How many streams a tenant has here."""
        return self._of.get(tenant, 0)

    async def _turn_wheel(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._pause)
            self._at = (self._at + 1) % len(self._wheel)
            now = loop.time()
            for live in list(self._wheel[self._at]):
                if live.why:
                    self._ending.setdefault(live, now)
                elif live.is_quiet:
                    live.push(KEEP_ALIVE)
                live.is_quiet = True
            for live, since in list(self._ending.items()):
                if now - since > STALLED:
                    live.cut()

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            principals = {live.principal.credential: live.principal for live in self.all}
            if not principals:
                continue
            try:
                gone = await self._standing(list(principals.values()))
            except Exception as error:
                log.warning(
                    "whether %d credentials still hold is not known, and asked again: %s", len(principals), error
                )
                continue
            if gone:
                for live in [live for live in self.all if live.principal.credential in gone]:
                    live.end("revoked")

    async def aclose(self, grace: float = 0.0) -> None:
        """Tell every reader to go on elsewhere; those that finish by themselves have so many seconds to do it."""
        self._is_closed = True
        loop = asyncio.get_running_loop()
        until = loop.time() + grace
        while True:
            for live in list(self.all):
                if loop.time() >= until or not live.finishing():  # it may have begun to wait for a person
                    live.end("drain")
            if not self.all or loop.time() >= until:
                break
            await self._emptied(min(LEAVING, until - loop.time()))
        await self._emptied(LAST_WORDS)
        for task in self._tasks:
            task.cancel()
        for live in list(self.all):
            live.cut()

    async def _emptied(self, seconds: float) -> None:
        self._is_empty.clear()
        if self.all:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._is_empty.wait()
