"""Streams on a node that does not drive: what one node does is shown on another, and a page may go on there."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everturn import Chat
from everturn.app import App
from everturn.bus.nats import NatsBus
from everturn.core.events import TurnCompleted
from everturn.running import log_poll
from everturn.stores.memory import MemoryStore
from tests.helpers.nats_server import BINARY, NatsServer
from tests.helpers.server_streams import Page, Taps, house_of, serving, so

pytestmark = [pytest.mark.live, pytest.mark.skipif(BINARY is None, reason="there is no nats-server here")]


@pytest.fixture
async def buses(tmp_path: Path) -> AsyncIterator[list[NatsBus]]:
    server = NatsServer(tmp_path)
    server.start()
    buses = [await NatsBus.connect(server.url, prefix="streams") for _ in range(2)]
    yield buses
    for bus in buses:
        await bus.aclose()
    server.stop()


async def test_a_page_that_changes_nodes_in_the_middle_of_a_word_ends_with_every_character_once(
    buses: list[NatsBus], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(log_poll, "POLL_INTERVAL", 1000.0)  # word of a new turn comes over the bus, or not at all
    model, store = Taps(), MemoryStore()
    driving, other = (App(model, store=store, bus=bus) for bus in buses)
    async with (
        serving(house_of(driving)) as near,
        serving(house_of(other)) as far,
        Chat("", app=driving, session="s") as chat,
    ):
        first = await chat.send("first")
        model.tap("first").put_nowait("a")
        model.tap("first").put_nowait("")
        await first
        page = Page(f"{far.url}/s")
        reading = asyncio.create_task(page.read(lambda page: "x" in page.live.values()))
        await so(lambda: page.has(TurnCompleted))
        turn = await chat.send("go")
        model.tap("go").put_nowait("x")
        await reading
        text = "x"
        for number in range(20):
            page.url = f"{(near, far)[number % 2].url}/s"
            text += f"{number} "
            model.tap("go").put_nowait(f"{number} ")
            await page.read(lambda page, text=text: page.live[turn.id] == text)
        model.tap("go").put_nowait("")
        await page.read(lambda page: page.has(TurnCompleted, 2))

    assert page.texts == {first.id: "a", turn.id: text}
