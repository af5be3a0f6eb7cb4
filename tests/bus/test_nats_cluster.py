"""The bus on three NATS servers that form a cluster: one of them dies, and readers at every node see every character."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.bus.test_nats import Story, read, session, text_until
from tests.helpers.nats_server import BINARY, NatsServer, make_nats_cluster
from tests.helpers.waiting import wait_until

from everturn.bus.nats import NatsBus

pytestmark = [pytest.mark.live, pytest.mark.skipif(BINARY is None, reason="there is no nats-server here")]


@pytest.fixture
async def servers(tmp_path: Path) -> AsyncIterator[list[NatsServer]]:
    servers = make_nats_cluster(tmp_path)
    for server in servers:
        server.start()
    await wait_until(lambda: has_leader(servers[0]), 30)
    yield servers
    for server in servers:
        server.stop(signal.SIGKILL)


async def has_leader(server: NatsServer) -> bool:
    state = await server.ask("jsz")
    return bool(state.get("meta_cluster", {}).get("leader")) and state["meta_cluster"].get("cluster_size") == 3


async def streams(server: NatsServer) -> int:
    return (await server.ask("jsz"))["streams"]


async def test_a_server_that_dies_costs_no_reader_a_character(servers: list[NatsServer]) -> None:
    async with AsyncExitStack() as nodes:

        async def join(*order: int) -> NatsBus:
            bus = await NatsBus.connect([servers[number].url for number in order], prefix="cell")
            nodes.push_async_callback(bus.aclose)
            return bus

        sender, receiver, late = await join(0, 1, 2), await join(1, 2, 0), await join(2, 0, 1)
        holders = [server for server in servers if await streams(server)]
        assert len(holders) == 1, "the backlog of live text is on one of the servers"
        story = Story(await session(), sender)
        await story.begin()
        readers = [asyncio.create_task(read(story.store, bus)) for bus in (sender, receiver, late)]
        for at in range(10):
            story.say(f"before {at}. ")
            await asyncio.sleep(0.02)
        holders[0].stop(signal.SIGKILL)  # for good
        for at in range(10):
            story.say(f"without {at}. ")
            await asyncio.sleep(0.02)
        tail = late.tail("t")
        assert await text_until(tail, len(story.said)) == story.said, "a reader that comes now gets the whole step"
        await tail.aclose()
        await story.end()
        for reader in readers:
            assert await reader == (story.said, True)
