"""The bus on PostgreSQL: here every `PostgresBus` is a process."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack

import pytest
from tests.bus.test_nats import crumbs
from tests.helpers.stores import URL

from everturn.bus.postgres import PostgresBus
from everturn.core.deltas import DriverGone, Frame, LogAdvanced, TextDelta
from everturn.core.ports import LiveTail
from everturn.testing.contracts import BusContract

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]

Node = Callable[[], PostgresBus]


def delta(text: str, offset: int = 0, turn: str = "t", seq: int = 1) -> TextDelta:
    return TextDelta(turn, seq, 0, offset, text)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    """Makes buses that share channels which nobody else uses."""
    url = f"{URL}?schema=bus_{uuid.uuid4().hex[:16]}"
    async with AsyncExitStack() as nodes:

        def make() -> PostgresBus:
            bus = PostgresBus(url)
            nodes.push_async_callback(bus.aclose)
            return bus

        yield make


class TestPostgresBus(BusContract):
    @pytest.fixture(autouse=True)
    def _node(self, node: Node) -> None:
        self.node = node

    async def make(self) -> PostgresBus:
        self.bus = self.node()
        await self.bus.flush()
        return self.bus

    async def settle(self) -> None:
        await self.bus.flush()
        await super().settle()


class Apart:
    """A bus whose publisher is `here` and whose readers and drivers are `there`."""

    def __init__(self, sender: PostgresBus, receiver: PostgresBus) -> None:
        self.here, self.there = sender, receiver
        self.close, self.signal = sender.close, sender.signal
        self.tail, self.listen, self.announce, self.hear = (
            receiver.tail,
            receiver.listen,
            sender.announce,
            receiver.hear,
        )

    def publish(self, turn: str, frames: Sequence[Frame]) -> None:
        if isinstance(frames[0], DriverGone):  # for the readers of one process
            self.there.publish(turn, frames)
            return
        self.here.publish(turn, frames)
        self.here._node.publisher.flush_now()  # the contract waits for single deltas, a thousand times


class TestTwoProcesses(BusContract):
    """The same promises when whoever publishes is in one process, and whoever reads in another."""

    @pytest.fixture(autouse=True)
    def _node(self, node: Node) -> None:
        self.node = node

    async def make(self) -> Apart:
        self.bus = Apart(self.node(), self.node())
        await self.settle()
        return self.bus

    async def settle(self) -> None:
        for bus in (self.bus.there, self.bus.here, self.bus.there):
            await bus.flush()
        await asyncio.sleep(0.02)

    async def read(self, tail: LiveTail, last: Frame) -> list[Frame]:
        shown: list[Frame] = []
        async with asyncio.timeout(self.timeout):
            while last not in shown:
                for frame in await anext(tail):
                    shown += crumbs(frame, last)
        return shown


async def test_a_reader_that_asks_while_a_step_begins_is_told_to_read_the_log_before_its_text(node: Node) -> None:
    driver, other = node(), node()
    tail = other.tail("t")
    await other.flush()
    await driver.flush()
    # The request of the reader comes after the step has begun, and before anything of it was sent.
    driver.publish("t", [LogAdvanced(7)])
    driver.publish("t", [delta("Hello", seq=7)])
    driver._node.publisher.resend("t")
    shown: list[Frame] = []
    async with asyncio.timeout(10):
        while delta("Hello", seq=7) not in shown:
            shown += await anext(tail)
    await tail.aclose()
    at = shown.index(delta("Hello", seq=7))
    assert any(isinstance(frame, LogAdvanced) and frame.seq >= 7 for frame in shown[:at]), shown
