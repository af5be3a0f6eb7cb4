"""The processes of compose.yaml, run by hand: nodes and workers as programs, and a turn that any node shows."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import aiohttp
import pytest

from tools.chaos.nodes import ApiNode, Installation, installation

pytestmark = [pytest.mark.live, pytest.mark.long]


async def ask(web: aiohttp.ClientSession, cell: Installation, node: ApiNode, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {cell.token}"}
    method = "GET" if body is None else "POST"
    async with web.request(method, node.address + path, json=body, headers=headers) as answer:
        assert answer.status < 300, await answer.text()
        return await answer.json() if "json" in answer.content_type else await answer.text()


def events(stream: str) -> list[str]:
    """What is in the log; text comes in as many pieces as there were when it was read."""
    return [line for line in stream.splitlines() if line.startswith('data: {"seq"')]


async def test_a_turn_is_begun_at_one_node_and_read_at_another_through_deaths_and_restarts() -> None:
    async with installation(nodes=2, workers=2) as cell, aiohttp.ClientSession() as web:
        node, other = cell.nodes
        begun = await ask(web, cell, node, "/api/sessions", {"text": "What time is it?"})
        path = f"/api/sessions/{begun['session']}/turns/{begun['turn']}/events"
        first = await ask(web, cell, node, path)
        assert "TurnCompleted" in first

        await node.kill9()
        assert node.status("/healthz") == 0
        assert events(await ask(web, cell, other, path)) == events(first), "the same at another node"

        [victim, *_] = cell.worker_pids()
        os.kill(victim, signal.SIGKILL)
        again = await cell.restart_node(other)
        assert again.address == other.address
        more = {"text": "And now?"}
        sent = await ask(web, cell, again, f"/api/sessions/{begun['session']}/messages", more)
        async with asyncio.timeout(30):
            shown = await ask(web, cell, again, f"/api/sessions/{begun['session']}/turns/{sent['turn']}/events")
        assert "TurnCompleted" in shown
        counts = await ask(web, cell, again, "/metrics")
        assert (
            'everturn_http_requests_total{route="/api/sessions/{session}/messages",method="POST",status="202"} 1'
            in counts
        )
    assert not cell.home.exists()
