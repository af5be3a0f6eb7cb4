"""Ticket: a request that waits for a rate limit, and then its permission to be sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from everturn.core.ports import Clock
from everturn.core.rate_limit_state import Head
from everturn.core.rate_limits import Amounts


class TicketOwner(Protocol):
    """The bucket of a ticket."""

    clock: Clock

    def give_back(self, cost: Amounts) -> None:
        """Return amounts that were granted and not used."""
        ...

    def correct(self, cost: Amounts, input_tokens: int, cached_tokens: int, output_tokens: int) -> None:
        """Replace an estimate by what was used."""
        ...


class LeasedPermit:
    """A permission out of the lease that a process holds."""

    __slots__ = ("_cost", "_owner")

    def __init__(self, owner: TicketOwner, cost: Amounts) -> None:
        self._owner, self._cost = owner, cost

    def settle(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> None:
        """Record what the request really used, in place of the estimate."""
        self._owner.correct(self._cost, input_tokens, cached_tokens, output_tokens)


class QueuedTicket:
    """A request in the queue of a bucket."""

    def __init__(self, owner: TicketOwner, head: Head, leave: Callable[[int], None]) -> None:
        self._owner, self._leave, self.head = owner, leave, head
        self.began = owner.clock.now()
        self.is_granted = self._is_sent = self._is_closed = False
        self.is_for_breaker = False
        self._due = self.began  # when it is expected to be granted
        self._waker: asyncio.Future[None] | None = None

    @property
    def seconds(self) -> float:
        """The estimated wait from now on."""
        return max(0.0, self._due - self._owner.clock.now())

    def expect(self, seconds: float, is_for_breaker: bool) -> None:
        """Set the estimated wait."""
        self._due, self.is_for_breaker = self._owner.clock.now() + seconds, is_for_breaker

    def grant(self) -> None:
        """Let the request be sent."""
        self.is_granted = True
        self._wake()

    async def wait_for_news(self, seconds: float) -> None:
        """Return when it is granted, or after this time."""
        if self.is_granted:
            return
        self._waker = asyncio.get_running_loop().create_future()
        timer = self._owner.clock.call_later(seconds, self._wake)
        try:
            await self._waker
        finally:
            timer.cancel()
            self._waker = None

    def _wake(self) -> None:
        if self._waker is not None and not self._waker.done():
            self._waker.set_result(None)

    def sent(self) -> None:
        """Record that the request is sent: its amounts cannot be given back any more."""
        self._is_sent = True

    def close(self) -> None:
        """Stop waiting; amounts that were granted and not used are given back."""
        if self._is_closed:
            return
        self._is_closed = True
        if self.is_granted and not self._is_sent:
            self._owner.give_back(self.head.cost)
        elif not self.is_granted:
            self._leave(self.head.id)

    def settle(self, input_tokens: int, cached_tokens: int, output_tokens: int) -> None:
        """Record what the request really used, in place of the estimate."""
        self._owner.correct(self.head.cost, input_tokens, cached_tokens, output_tokens)
