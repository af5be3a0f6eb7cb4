"""Engine contract: a woken session is driven, by one driver at a time, and again if that driver fails."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import ClassVar

from everturn.core.ports import Engine
from everturn.testing.doubles import FakeClock


class RecordingDrive:
    """A `drive` that records its calls: which sessions, how often, and whether two ever overlap."""

    def __init__(self, failures: int = 0) -> None:
        self.begun, self.ended, self.cancelled = Counter[str](), Counter[str](), Counter[str]()
        self.most_at_once = Counter[str]()
        self.failures = failures  # how many drives of `bad` will still fail
        self._holds: dict[str, asyncio.Event] = {}
        self._now = Counter[str]()

    def block(self, session: str) -> asyncio.Event:
        """Block the drives of a session until this event is set."""
        return self._holds.setdefault(session, asyncio.Event())

    async def __call__(self, session: str) -> None:
        self.begun[session] += 1
        self._now[session] += 1
        self.most_at_once[session] = max(self.most_at_once[session], self._now[session])
        try:
            if session in self._holds:
                await self._holds[session].wait()
            if session == "bad" and self.failures:
                self.failures -= 1
                raise RuntimeError("the driver died, as it was told to")
            self.ended[session] += 1
        except asyncio.CancelledError:
            self.cancelled[session] += 1
            raise
        finally:
            self._now[session] -= 1


class EngineContract:
    """Wakes, drives and retries."""

    tries: ClassVar[int | None] = None
    """How often a session whose drives fail is driven before it is quarantined; None: no limit."""

    coalesces: ClassVar[bool] = True
    """Whether all wakes during a drive cause one more; an engine of many processes may drive for each."""

    async def make(self, clock: FakeClock) -> Engine:
        """An engine that uses this clock; one that cannot overrides `pass_time` as well."""
        raise NotImplementedError

    async def settle(self) -> None:
        """Let pending work happen; override it where that takes longer than a few iterations of the event loop."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def pass_time(self, clock: FakeClock, seconds: float) -> None:
        """Let time pass."""
        clock.advance(seconds)
        await self.settle()

    async def serving(self, drives: RecordingDrive) -> tuple[Engine, FakeClock]:
        clock = FakeClock()
        engine = await self.make(clock)
        await engine.serve(drives)
        return engine, clock

    async def test_a_woken_session_is_driven_and_a_sleeping_one_is_not(self) -> None:
        drives = RecordingDrive()
        engine, _ = await self.serving(drives)

        await engine.wake("s")
        await self.settle()

        assert drives.ended == {"s": 1}
        await engine.aclose()

    async def test_a_session_is_driven_by_one_driver_at_a_time(self) -> None:
        drives = RecordingDrive()
        hold = drives.block("s")
        engine, _ = await self.serving(drives)

        for _ in range(5):
            await engine.wake("s")
            await self.settle()
        assert drives.begun == {"s": 1}
        hold.set()
        await self.settle()

        assert drives.most_at_once == {"s": 1}
        await engine.aclose()

    async def test_a_wake_during_a_drive_drives_once_more_however_many_there_were(self) -> None:
        drives = RecordingDrive()
        hold = drives.block("s")
        engine, _ = await self.serving(drives)
        await engine.wake("s")
        await self.settle()

        for _ in range(5):
            await engine.wake("s")
        hold.set()
        await self.settle()

        assert 2 <= drives.ended["s"] <= (2 if self.coalesces else 6)
        await engine.aclose()

    async def test_many_wakes_at_once_are_soon_over(self) -> None:
        drives = RecordingDrive()
        engine, _ = await self.serving(drives)

        await asyncio.gather(*(engine.wake("s") for _ in range(50)))
        await self.settle()

        assert 1 <= drives.ended["s"] <= 2
        await engine.aclose()

    async def test_sessions_do_not_wait_for_each_other(self) -> None:
        drives = RecordingDrive()
        hold = drives.block("slow")
        engine, _ = await self.serving(drives)

        await engine.wake("slow")
        await engine.wake("quick")
        await self.settle()

        assert drives.ended == {"quick": 1}
        hold.set()
        await self.settle()
        assert drives.ended == {"quick": 1, "slow": 1}
        await engine.aclose()

    async def test_a_drive_that_fails_is_tried_again(self) -> None:
        drives = RecordingDrive(failures=1)
        engine, clock = await self.serving(drives)

        await engine.wake("bad")
        await engine.wake("good")
        await self.settle()
        assert drives.ended["good"] == 1  # it did not wait for the bad one
        await self.pass_time(clock, 60)

        assert drives.ended == {"good": 1, "bad": 1}
        await engine.aclose()

    async def test_a_drive_that_always_fails_is_left_alone_until_it_is_woken_again(self) -> None:
        drives = RecordingDrive(failures=1_000)
        engine, clock = await self.serving(drives)
        await engine.wake("bad")
        for _ in range(10):
            await self.pass_time(clock, 60)

        if self.tries is None:
            assert drives.begun["bad"] > 3
        else:
            assert drives.begun["bad"] == self.tries
        drives.failures = 0
        await engine.wake("bad")
        await self.pass_time(clock, 60)
        assert drives.ended["bad"] >= 1
        await engine.aclose()

    async def test_a_wake_during_the_last_try_is_not_lost_with_it(self) -> None:
        tries, clock = self.tries or 3, FakeClock()
        engine = await self.make(clock)
        runs = 0

        async def drive(session: str) -> None:
            nonlocal runs
            runs += 1
            if runs == tries:
                await engine.wake(session)  # something arrived, and this drive has not seen it
            if runs <= tries:
                raise RuntimeError("the driver died, as it was told to")

        await engine.serve(drive)
        await engine.wake("s")
        for _ in range(10):
            await self.pass_time(clock, 60)

        assert tries + 1 <= runs <= tries + (1 if self.coalesces else 2)
        await engine.aclose()

    async def test_a_wake_at_a_time_drives_then_and_not_before(self) -> None:
        drives = RecordingDrive()
        engine, clock = await self.serving(drives)

        await engine.wake("s", clock.now() + 60)
        await self.pass_time(clock, 59)
        assert drives.begun == {}
        await self.pass_time(clock, 1)

        assert drives.ended == {"s": 1}
        await engine.aclose()

    async def test_a_wake_at_a_time_that_has_passed_drives_at_once(self) -> None:
        drives = RecordingDrive()
        engine, clock = await self.serving(drives)

        await engine.wake("s", clock.now() - 60)
        await self.settle()

        assert drives.ended == {"s": 1}
        await engine.aclose()

    async def test_a_session_that_waits_for_a_time_can_be_woken_before(self) -> None:
        drives = RecordingDrive()
        engine, clock = await self.serving(drives)
        await engine.wake("s", clock.now() + 60)

        await engine.wake("s")
        await self.settle()
        assert drives.ended == {"s": 1}
        await self.pass_time(clock, 60)

        assert drives.ended == {"s": 2}
        await engine.aclose()

    async def test_closing_cancels_what_is_under_way_and_waits_until_it_has_let_go(self) -> None:
        drives = RecordingDrive()
        drives.block("s")
        engine, clock = await self.serving(drives)
        await engine.wake("s")
        await engine.wake("later", clock.now() + 60)
        await self.settle()

        await engine.aclose()

        assert (drives.cancelled, drives.ended) == ({"s": 1}, {})
        await engine.wake("s")
        await self.pass_time(clock, 60)
        assert drives.begun == {"s": 1}
