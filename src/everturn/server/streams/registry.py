"""Stream registry: all open streams of a node, with limits per tenant, keep-alive, and an end for revoked credentials."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

from everturn.core.ports import Clock
from everturn.core.tenants.accounts import Accounts, Principal, is_at_least, lower_role
from everturn.errors import TooMuch
from everturn.server.streams.response import EventStreamResponse
from everturn.server.streams.sse import KEEP_ALIVE
from everturn.telemetry import metrics

log = logging.getLogger(__name__)

CHECK_INTERVAL = 2.0  # seconds between two checks for revoked credentials; a stream ends within twice that
CUT_AFTER = 10.0  # seconds after which a stream is cut whose client does not even read its end
DRAIN_CHECK_INTERVAL = (
    0.25  # seconds between two checks during shutdown for streams that no longer finish by themselves
)
END_TIMEOUT = 3.0  # seconds in which all streams may send their last event

CredentialCheck = Callable[[Collection[Principal]], Awaitable[set[str]]]
"""Given the principals of open streams, returns the ids of credentials that are no longer valid."""

SessionCheck = Callable[[Collection[tuple[Principal, str]]], Awaitable[set[tuple[str, str, str]]]]
"""Given (principal, session) of open streams, returns those that may no longer see it, as (tenant, user, session)."""


async def allow_all(_: Collection[tuple[Principal, str]]) -> set[tuple[str, str, str]]:
    """A check for streams that are not private."""
    return set()


def check_with_accounts(accounts: Accounts, clock: Clock) -> CredentialCheck:
    """A check against the accounts: which credentials are gone, expired, inactive, or have a lower role than before."""

    async def standing(principals: Collection[Principal]) -> set[str]:
        now, stored = clock.now(), [principal for principal in principals if principal.kind != "token"]
        known = await accounts.active_credentials({principal.credential for principal in stored}) if stored else {}
        invalid = {principal.credential for principal in principals if 0 < principal.expires <= now}
        for principal in stored:
            account = known.get(principal.credential)
            if (
                account is None
                or account.credential.revoked
                or 0 < account.credential.expires <= now
                or not (account.user.is_active and account.tenant.is_active)
                or not is_at_least(lower_role(account.user.role, account.credential.role), principal.role)
            ):
                invalid.add(principal.credential)
        for principal in principals:
            if principal.kind == "token" and principal.credential not in invalid:
                account = await accounts.user(principal.tenant, principal.user)
                if account is not None and not (account[0].is_active and account[1].is_active):
                    invalid.add(principal.credential)
        return invalid

    return standing


class StreamSlot:
    """A reserved stream of a tenant. It is reserved before a message is sent, so that a refused caller has sent nothing."""

    def __init__(self, give_back: Callable[[], None]) -> None:
        self._give_back, self._is_reserved = give_back, True

    def release(self) -> None:
        """Release the reservation, for the stream that takes its place."""
        if self._is_reserved:
            self._is_reserved = False
            self._give_back()

    def __enter__(self) -> StreamSlot:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()  # not used


class StreamRegistry:
    """All open streams. One timer keeps all of them alive."""

    def __init__(
        self,
        standing: CredentialCheck,
        limit: Callable[[str], int],
        keep_alive: float,
        find_lost: SessionCheck = allow_all,
    ) -> None:
        self._standing, self._limit, self._find_lost = standing, limit, find_lost
        self.all: set[EventStreamResponse] = set()
        self._per_tenant: Counter[str] = Counter()  # tenant -> number of streams
        # Each is visited once per `keep_alive`, a few at a time, to spread the load.
        self._wheel: list[set[EventStreamResponse]] = [set() for _ in range(max(1, round(keep_alive / 0.5)))]
        self._pause = keep_alive / len(self._wheel)
        self._at = 0
        self._ending: dict[EventStreamResponse, float] = {}  # ended and still open -> since when
        self._is_closed = False
        self._is_empty = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Start the keep-alive timer and the check for revoked credentials."""
        if not self._tasks:
            loop = asyncio.get_running_loop()
            self._tasks = [
                loop.create_task(self._turn_wheel()),
                loop.create_task(self._check_credentials()),
                loop.create_task(self._check_sessions()),
            ]

    def admit(self, principal: Principal) -> None:
        """Check that a tenant may open another stream.

        Raises:
            TooMuch: the tenant has reached its limit, or the node shuts down.
        """
        limit = self._limit(principal.tenant)
        if self._is_closed:
            raise TooMuch("this server is shutting down; another one continues your streams", 1.0)
        if limit and self._per_tenant[principal.tenant] >= limit:
            raise TooMuch(f"{limit} streams are open, which is the limit; close one, then connect again", 5.0)

    def reserve(self, principal: Principal) -> StreamSlot:
        """Reserve a stream.

        Raises:
            TooMuch: the tenant has reached its limit.
        """
        self.admit(principal)
        self._per_tenant[principal.tenant] += 1
        return StreamSlot(lambda: self._uncount(principal.tenant))

    def count_stream(self, stream: EventStreamResponse) -> EventStreamResponse:
        """Count a stream until it closes. It is in `all` only once it is served, so that one that never is gets collected."""
        self._per_tenant[stream.principal.tenant] += 1
        return stream

    def _uncount(self, tenant: str) -> None:
        self._per_tenant[tenant] -= 1
        if not self._per_tenant[tenant]:
            del self._per_tenant[tenant]

    def register(self, stream: EventStreamResponse) -> None:
        """Register a stream whose response has started."""
        self.all.add(stream)
        metrics.add("streams_open", 1, stream.kind)
        self._wheel[self._at - 1].add(stream)
        if self._is_closed and not stream.finishing():
            stream.end("drain")

    def unregister(self, stream: EventStreamResponse) -> None:
        """Remove a stream that has closed."""
        if stream in self.all:
            self.all.discard(stream)
            metrics.add("streams_open", -1, stream.kind)
            metrics.count("streams_ended_total", stream.kind, stream.end_reason)
            if stream.end_reason == "slow":
                metrics.count("slow_readers_total")
            elif stream.end_reason == "revoked":
                metrics.count("streams_revoked_total")
        self._uncount(stream.principal.tenant)
        for bucket in self._wheel:
            bucket.discard(stream)
        self._ending.pop(stream, None)
        if not self.all:
            self._is_empty.set()

    def count(self, tenant: str) -> int:
        """How many streams a tenant has on this node."""
        return self._per_tenant.get(tenant, 0)

    async def _turn_wheel(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._pause)
            self._at = (self._at + 1) % len(self._wheel)
            now = loop.time()
            for stream in list(self._wheel[self._at]):
                if stream.end_reason:
                    self._ending.setdefault(stream, now)
                elif stream.is_quiet:
                    stream.push(KEEP_ALIVE)
                stream.is_quiet = True
            for stream, since in list(self._ending.items()):
                if now - since > CUT_AFTER:
                    stream.cut()

    async def _check_credentials(self) -> None:
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            principals = {stream.principal.credential: stream.principal for stream in self.all}
            if not principals:
                continue
            try:
                invalid = await self._standing(list(principals.values()))
            except Exception as error:
                log.warning("%d credentials could not be checked again; trying again: %s", len(principals), error)
                continue
            if invalid:
                for stream in [stream for stream in self.all if stream.principal.credential in invalid]:
                    stream.end("revoked")

    async def _check_sessions(self) -> None:
        """End the streams of conversations that are no longer shared with their readers, by any node or by time."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            try:
                await self.end_lost_access()
            except Exception as error:
                log.warning("the shares of open conversations could not be checked; trying again: %s", error)

    async def end_lost_access(self) -> None:
        """End the streams whose readers may no longer see their session."""
        streams = {
            (stream.principal.tenant, stream.principal.user, stream.session): (stream.principal, stream.session)
            for stream in self.all
            if stream.session and not stream.end_reason
        }
        lost = await self._find_lost(list(streams.values())) if streams else set[tuple[str, str, str]]()
        for stream in list(self.all) if lost else ():
            if (stream.principal.tenant, stream.principal.user, stream.session) in lost:
                stream.end("unshared")

    async def aclose(self, grace: float = 0.0) -> None:
        """End every stream with `drain`; those that finish by themselves get `grace` seconds to do so."""
        self._is_closed = True
        loop = asyncio.get_running_loop()
        until = loop.time() + grace
        while True:
            for stream in list(self.all):
                if (
                    loop.time() >= until or not stream.finishing()
                ):  # a stream may have begun to wait for a person meanwhile
                    stream.end("drain")
            if not self.all or loop.time() >= until:
                break
            await self._wait_until_empty(min(DRAIN_CHECK_INTERVAL, until - loop.time()))
        await self._wait_until_empty(END_TIMEOUT)
        for task in self._tasks:
            task.cancel()
        for stream in list(self.all):
            stream.cut()

    async def _wait_until_empty(self, seconds: float) -> None:
        self._is_empty.clear()
        if self.all:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._is_empty.wait()
