"""Three nodes of Restate: each of them dies in turn, and sessions are driven all the same."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.helpers.waiting import wait_until

from everturn.engine.restate import RestateEngine
from tools.servers.restate import restate_cluster

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


async def test_a_node_that_dies_stops_no_session(tmp_path: Path) -> None:
    driven: set[str] = set()

    async def drive(session: str) -> None:
        driven.add(session)

    async with restate_cluster(tmp_path) as nodes:
        ingress = ",".join(node.ingress for node in nodes)
        admin = ",".join(node.admin for node in nodes)
        worker = RestateEngine(ingress, admin, listen=("127.0.0.1", 0))
        client = RestateEngine(ingress, admin, listen=None)
        try:
            await worker.serve(drive)
            for number, node in enumerate(nodes):
                node.kill9()
                sessions = {f"session-{number}-{each}" for each in range(10)}
                await asyncio.gather(*(client.wake(session) for session in sessions))
                await wait_until(lambda sessions=sessions: sessions <= driven, 60)
                assert (await client.health()).is_up
                await node.start()
        finally:
            await client.aclose()
            await worker.aclose()
