"""An engine whose server has its own clock, for the engine contract: twenty seconds of the test's clock are one of ours."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from everturn.core.ports import Engine
from everturn.testing import FakeClock

SPEED = 20
RETRY = 5.6  # seconds: a session that fails may pause for five, and whoever wakes it waits behind it
PAUSE = 0.3  # seconds: nothing new was asked for


class HurriedEngine:
    """An engine under test, and the time that it needs."""

    is_durable = True

    def __init__(self, engine: Engine, clock: FakeClock, drives: Engine | None = None) -> None:
        """`drives` is the engine that drives, if another one wakes."""
        self.engine, self.clock = engine, clock
        self.serve: Any = (drives or engine).serve
        self.stop_accepting = (drives or engine).stop_accepting
        self._others = [drives] if drives is not None else []
        self.anchor: tuple[float, float] | None = None  # a moment of the test's clock, and the same of ours
        self.is_woken = False

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        self.is_woken = True
        if at is not None and at > self.clock.now():
            self.anchor = (self.clock.now(), time.time())
            at = time.time() + (at - self.clock.now()) / SPEED
        elif at is not None:
            at = time.time() - 1
        await self.engine.wake(session, at, is_reminder=is_reminder)

    async def aclose(self) -> None:
        for engine in (*self._others, self.engine):
            await engine.aclose()

    async def pass_time(self, seconds: float, settle: float) -> None:
        """Let time pass on both clocks; `settle` is how long the engine needs for a drive."""
        self.clock.advance(seconds)
        if self.anchor is None:
            await asyncio.sleep(RETRY if self.is_woken else min(settle, PAUSE))
            self.is_woken = False
            return
        then, real = self.anchor
        due = real + (self.clock.now() - then) / SPEED
        # "Not before" is looked at a little before, "then" a little after.
        await asyncio.sleep(due - time.time() + (settle if seconds != 59 else -0.3))
