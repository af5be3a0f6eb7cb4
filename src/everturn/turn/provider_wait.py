"""Waiting for a provider's rate limit: what readers are shown meanwhile, and what is checked before the request is sent."""

from __future__ import annotations

import math
from typing import Final, Protocol

from everturn import failpoints
from everturn.core.chunks import WaitChunk
from everturn.core.deltas import CallProgress
from everturn.core.events import LimitReached
from everturn.running import budget
from everturn.running.active_turn import ActiveTurn

WAIT_TEXTS: Final = {
    "rate_limit": "waiting for the provider's rate limit, about {seconds} s",
    "breaker": "waiting because the provider failed several times; next try in about {seconds} s",
    "": "",  # the wait is over
}


class LimitDuringWait(Exception):
    """A budget was used up while the request waited for a rate limit; the request was not sent."""

    def __init__(self, limit: LimitReached) -> None:
        super().__init__(limit.text)
        self.limit = limit


class WaitingStream(Protocol):
    """The timeouts of a stream, which do not count while its request waits."""

    is_paused: bool

    def wait_for_limit(self, is_over: bool) -> None:
        """The request waits, or has waited."""
        ...


async def show_wait(run: ActiveTurn, wait: WaitChunk, stream: WaitingStream) -> None:
    """Tell readers that the request waits; at the end of the wait, check the budgets again: others went on meanwhile.

    Raises:
        LimitDuringWait: a budget is used up.
    """
    stream.wait_for_limit(is_over=not wait.reason)
    text = WAIT_TEXTS[wait.reason].format(seconds=max(1, math.ceil(wait.seconds)))
    run.setup.bus.publish(run.turn, (CallProgress(run.turn, "", text),))
    failpoints.hit_failpoint("model.wait")
    if not wait.reason and run.state.limit is None and budget.has_limits(run):
        stream.is_paused = True
        limit = await budget.find_reached_limit(run)
        stream.is_paused = False
        if limit is not None:
            raise LimitDuringWait(limit)
