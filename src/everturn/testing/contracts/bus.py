"""Bus contract: live frames to every reader of a turn, signals to the driver of a session, announcements to a topic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from everturn.core.deltas import DriverGone, Frame, LogAdvanced, TextDelta
from everturn.core.ports import ANNOUNCEMENT_LIMIT, Bus, LiveTail


def delta(text: str, offset: int = 0, turn: str = "t", seq: int = 1) -> TextDelta:
    """A piece of the text that is being streamed."""
    return TextDelta(turn, seq, 0, offset, text)


class BusContract:
    """Frames to readers, signals to drivers. A bus may lose frames; it must not mix, reorder or block."""

    timeout = 5.0
    """Seconds after which a missing frame counts as lost."""

    async def make(self) -> Bus:
        """An unused bus."""
        raise NotImplementedError

    async def dispose(self, bus: Bus) -> None:
        """Close a bus after its test: by its `aclose`, if it has one. Override it where that is not enough."""
        if (close := getattr(bus, "aclose", None)) is not None:
            async with asyncio.timeout(self.timeout):
                await close()

    @pytest.fixture(autouse=True)
    async def _dispose_after(self) -> AsyncIterator[None]:
        async with self.dispose_made():
            yield

    @asynccontextmanager
    async def dispose_made(self) -> AsyncGenerator[None, None]:
        """Close every bus that is made within: one with tasks or connections of its own would keep the test run
        alive.
        """
        buses: list[Bus] = []
        make = self.make

        async def made_here() -> Bus:
            buses.append(await make())
            return buses[-1]

        self.make = made_here  # of this test alone: pytest makes an instance for each
        try:
            yield
        finally:
            for bus in buses:
                await self.dispose(bus)

    async def settle(self) -> None:
        """Let pending messages arrive; override it where that takes longer than a few iterations of the event loop."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def read(self, tail: LiveTail, last: Frame) -> list[Frame]:
        """The frames that a reader receives, up to a frame that it must receive."""
        shown: list[Frame] = []
        async with asyncio.timeout(self.timeout):
            while last not in shown:
                shown += await anext(tail)
        return shown

    async def rest(self, tail: LiveTail) -> list[Frame]:
        """The frames that a reader receives until the turn is closed."""
        async with asyncio.timeout(self.timeout):
            return [frame async for frames in tail for frame in frames]

    # Readers -----------------------------------------------------------------------------------------------------

    async def test_a_reader_is_shown_every_frame_once_and_in_order(self) -> None:
        bus = await self.make()
        frames: list[Frame] = [delta(str(at % 10), at) for at in range(200)]
        tail = bus.tail("t")
        await self.settle()
        bus.publish("t", [LogAdvanced(1)])
        shown = await self.read(tail, LogAdvanced(1))

        for at in range(0, 200, 4):
            bus.publish("t", frames[at : at + 4])
            if at % 3 == 0:
                shown += await self.read(tail, frames[at + 3])
        shown += await self.read(tail, frames[-1]) if frames[-1] not in shown else []

        assert shown == [LogAdvanced(1), *frames]
        await tail.aclose()

    async def test_a_reader_that_comes_late_is_shown_the_step_that_is_under_way(self) -> None:
        bus = await self.make()
        bus.publish("t", [LogAdvanced(1)])
        bus.publish("t", [delta("Hello, "), delta("dear ", 7)])
        await self.settle()

        tail = bus.tail("t")
        shown = await self.read(tail, delta("dear ", 7))
        bus.publish("t", [delta("world", 12)])
        shown += await self.read(tail, delta("world", 12))

        assert "".join(frame.text for frame in shown if isinstance(frame, TextDelta)) == "Hello, dear world"
        await tail.aclose()

    async def test_a_reader_may_come_before_anything_is_said(self) -> None:
        bus = await self.make()
        tail = bus.tail("t")
        reading = asyncio.ensure_future(self.read(tail, delta("Hello")))
        await self.settle()

        bus.publish("t", [delta("Hello")])

        assert await reading == [delta("Hello")]
        await tail.aclose()

    async def test_turns_do_not_mix(self) -> None:
        bus = await self.make()
        bus.publish("t", [delta("one")])
        bus.publish("t2", [delta("two", turn="t2")])
        await self.settle()
        tails = bus.tail("t"), bus.tail("t2")

        assert await self.read(tails[0], delta("one")) == [delta("one")]
        assert await self.read(tails[1], delta("two", turn="t2")) == [delta("two", turn="t2")]
        for tail in tails:
            await tail.aclose()

    async def test_a_slow_reader_delays_nobody_and_is_told_where_the_log_is(self) -> None:
        bus = await self.make()
        slow, fast = bus.tail("t"), bus.tail("t")
        await self.settle()
        bus.publish("t", [LogAdvanced(1)])
        await self.read(slow, LogAdvanced(1))
        shown = await self.read(fast, LogAdvanced(1))

        for at in range(1_000):
            bus.publish("t", [delta("x", at)])
            shown += await self.read(fast, delta("x", at))
        bus.publish("t", [LogAdvanced(2)])

        assert len(shown) == 1_001
        missed = await self.read(slow, LogAdvanced(2))
        offsets = [frame.offset for frame in missed if isinstance(frame, TextDelta)]
        assert offsets == sorted(set(offsets))  # it may have missed some, and has received none twice
        for tail in (slow, fast):
            await tail.aclose()

    async def test_a_reader_that_is_nudged_is_given_an_empty_batch_behind_what_came_before(self) -> None:
        bus = await self.make()
        tail, other = bus.tail("t"), bus.tail("t2")
        await self.settle()

        bus.publish("t", [LogAdvanced(1)])
        await self.settle()
        bus.publish("t", [DriverGone("")])  # for the readers of this process: check the log, and the driver

        assert await self.read(tail, LogAdvanced(1)) == [LogAdvanced(1)]
        async with asyncio.timeout(self.timeout):
            assert list(await anext(tail)) == []
        bus.close("t2")
        assert await self.rest(other) == []
        await tail.aclose()

    async def test_a_reader_that_leaves_takes_nothing_from_the_others(self) -> None:
        bus = await self.make()
        leaving, staying = bus.tail("t"), bus.tail("t")
        await self.settle()
        bus.publish("t", [LogAdvanced(1)])
        await self.read(leaving, LogAdvanced(1))
        await self.read(staying, LogAdvanced(1))

        await leaving.aclose()
        bus.publish("t", [delta("still here")])

        assert await self.read(staying, delta("still here")) == [delta("still here")]
        await staying.aclose()

    async def test_when_a_turn_is_closed_its_readers_are_shown_the_rest_and_then_end(self) -> None:
        bus = await self.make()
        tails = [bus.tail("t") for _ in range(3)]
        await self.settle()
        bus.publish("t", [LogAdvanced(1)])
        for tail in tails:
            await self.read(tail, LogAdvanced(1))

        bus.publish("t", [delta("bye"), LogAdvanced(2)])
        bus.close("t")

        for tail in tails:
            assert (await self.rest(tail))[-1] == LogAdvanced(2)

    async def test_a_reader_that_has_not_read_yet_when_its_turn_is_closed_ends_too(self) -> None:
        bus = await self.make()
        tail = bus.tail("t")
        await self.settle()

        bus.publish("t", [delta("bye"), LogAdvanced(2)])
        bus.close("t")

        assert (await self.rest(tail))[-1] == LogAdvanced(2)

    async def test_closing_a_turn_nobody_follows_is_nothing(self) -> None:
        bus = await self.make()

        bus.close("nobody")
        bus.close("nobody")

    # Drivers -----------------------------------------------------------------------------------------------------

    async def is_signalled(self, waiting: asyncio.Future[None]) -> bool:
        await self.settle()
        return waiting.done()

    async def test_a_signal_wakes_whoever_listens_to_its_session(self) -> None:
        bus = await self.make()
        ears = bus.listen("s"), bus.listen("s"), bus.listen("other")
        waiting = [asyncio.ensure_future(ear.wait()) for ear in ears]
        await self.settle()

        bus.signal("s")

        async with asyncio.timeout(self.timeout):
            await asyncio.gather(*waiting[:2])
        assert not await self.is_signalled(waiting[2])
        waiting[2].cancel()
        for ear in ears:
            ear.close()

    async def test_a_signal_between_two_waits_is_not_lost(self) -> None:
        bus = await self.make()
        ear = bus.listen("s")
        await self.settle()

        for _ in range(3):
            bus.signal("s")
            await self.settle()
            async with asyncio.timeout(self.timeout):
                await ear.wait()
        ear.close()

    async def test_a_signal_is_heard_once(self) -> None:
        bus = await self.make()
        ear = bus.listen("s")
        await self.settle()
        bus.signal("s")  # of two, the second may be on its way when the first was received, and that is allowed
        async with asyncio.timeout(self.timeout):
            await ear.wait()

        again = asyncio.ensure_future(ear.wait())

        assert not await self.is_signalled(again)
        again.cancel()
        ear.close()

    async def test_a_signal_to_nobody_is_nothing(self) -> None:
        bus = await self.make()
        bus.signal("s")
        ear = bus.listen("s")
        ear.close()
        ear.close()

        bus.signal("s")

    # Announcements ------------------------------------------------------------------------------------------------

    async def test_an_announcement_reaches_all_who_hear_its_topic_and_nobody_else(self) -> None:
        bus = await self.make()
        heard: list[tuple[str, bytes]] = []
        done = asyncio.Event()

        def hear(name: str) -> Callable[[bytes], None]:
            def on_message(message: bytes) -> None:
                heard.append((name, message))
                if len(heard) >= 3:
                    done.set()

            return on_message

        bus.announce("a topic/ä", b"too early")
        await self.settle()
        stops = [bus.hear("a topic/ä", hear("first")), bus.hear("a topic/ä", hear("second")), bus.hear("b", hear("b"))]
        await self.settle()

        long = "ä".encode() * (ANNOUNCEMENT_LIMIT // 2)
        bus.announce("c", b"not heard")
        bus.announce("a topic/ä", long)
        bus.announce("b", b"x")
        async with asyncio.timeout(self.timeout):
            await done.wait()
        await self.settle()

        assert sorted(heard) == [("b", b"x"), ("first", long), ("second", long)]
        for stop in stops:
            stop()

    async def test_announcements_come_in_order_until_they_are_not_heard_any_more(self) -> None:
        bus = await self.make()
        heard: list[bytes] = []
        others: list[bytes] = []
        done = asyncio.Event()

        def on_message(message: bytes) -> None:
            others.append(message)
            if message == b"last":
                done.set()

        stop, stop_other = bus.hear("t", heard.append), bus.hear("t", on_message)
        await self.settle()
        numbers = [b"%d" % number for number in range(20)]
        for number in numbers:
            bus.announce("t", number)
        await self.settle()
        stop()
        stop()
        bus.announce("t", b"last")
        async with asyncio.timeout(self.timeout):
            await done.wait()

        assert others == [*numbers, b"last"]
        assert heard == numbers
        stop_other()
