"""A node as a process: it is found, logged in to, talked to, and told to leave."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest

from everturn.config.server_options import ServerOptions
from everturn.errors import ConfigError
from everturn.server.serve import listen
from tests.helpers.node_process import WorldNode, a_node


@pytest.fixture(scope="module")
def node() -> Iterator[WorldNode]:
    with a_node() as node:
        yield node


def bearer(node: WorldNode, role: str = "owner") -> dict[str, str]:
    return {"authorization": f"Bearer {node.keys[f'ours/{role}']}"}


async def test_a_turn_is_sent_followed_and_read_over_http(node: WorldNode) -> None:
    async with aiohttp.ClientSession(node.url, headers=bearer(node)) as http:
        key = {"Idempotency-Key": "once"}
        async with http.post("/api/sessions", json={"text": "hello"}, headers=key) as answer:
            assert answer.status == 201
            sent = await answer.json()
        async with http.post("/api/sessions", json={"text": "hello"}, headers=key) as answer:
            assert await answer.json() == {**sent, "is_new": False}
        async with http.post("/api/sessions", json={"text": "goodbye"}, headers=key) as answer:
            assert answer.status == 409
        path = f"/api/sessions/{sent['session']}/turns/{sent['turn']}/events"
        async with http.get(path) as answer:
            text = (await answer.read()).decode()
        items = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: ")]
        assert items[0]["event"]["type"] == "TurnStarted"
        assert items[-1]["end"] == "over"
        cursors = re.findall(r"^id: (.*)$", text, re.MULTILINE)
        async with http.get(path, headers={"Last-Event-ID": cursors[2]}) as answer:
            rest = (await answer.read()).decode()
        assert text.endswith(rest[rest.index("data: ") :])
        assert len(rest) < len(text)
        async with http.get(f"/api/sessions/{sent['session']}/messages") as answer:
            messages = (await answer.json())["messages"]
        assert [message["role"] for message in messages] == ["user", "assistant"]


async def test_a_session_goes_out_and_comes_in_as_a_file(node: WorldNode) -> None:
    async with aiohttp.ClientSession(node.url, headers=bearer(node)) as http:
        async with http.post("/api/sessions", json={"text": "take me along"}) as answer:
            sent = await answer.json()
        async with http.get(f"/api/sessions/{sent['session']}/turns/{sent['turn']}/events") as answer:
            await answer.read()
        async with http.get(f"/api/sessions/{sent['session']}/export") as answer:
            assert (answer.status, answer.content_type) == (200, "application/zip")
            data = await answer.read()
        async with http.post("/api/import", data=data, headers={"content-type": "application/zip"}) as answer:
            assert answer.status == 201, await answer.text()
            view = await answer.json()
        assert view["id"] != sent["session"]
        async with http.get(f"/api/sessions/{view['id']}/messages") as answer:
            assert "take me along" in await answer.text()
        for broken in (data[:-30], data[: len(data) // 2], b"PK\x03\x04" + b"\0" * 100, b"PK\x05\x06" + b"\0" * 18):
            async with http.post("/api/import", data=broken, headers={"content-type": "application/zip"}) as answer:
                assert answer.status == 422, await answer.text()


async def test_a_file_is_kept_and_given_back_to_be_saved(node: WorldNode) -> None:
    async with aiohttp.ClientSession(node.url, headers=bearer(node)) as http:
        svg = b"<svg onload=alert(1)></svg>"
        async with http.post("/api/files?name=a.svg", data=svg, headers={"content-type": "image/svg+xml"}) as answer:
            assert answer.status == 201
            file = await answer.json()
        async with http.post("/api/sessions", json={"text": "look", "files": [file["file"]]}) as answer:
            sent = await answer.json()
        async with http.get(f"/api/sessions/{sent['session']}/turns/{sent['turn']}/events") as answer:
            await answer.read()
        async with http.get(f"/api/sessions/{sent['session']}/blobs/{file['part']['blob']}") as answer:
            assert await answer.read() == svg
            assert answer.headers["content-type"] == "application/octet-stream"
            assert answer.headers["content-disposition"] == "attachment"


async def test_a_gate_is_found_and_answered_over_http() -> None:
    with a_node() as node:
        async with aiohttp.ClientSession(node.url, headers=bearer(node, "approver")) as http:
            async with http.get("/api/gates") as answer:
                gate = (await answer.json())["gates"][0]
            path = f"/api/sessions/{gate['session']}/gates/{gate['gate']['id']}/answer"
            async with http.post(path, json={"hash": "another", "allow": "once"}) as answer:
                assert answer.status == 409
            body = {"hash": gate["gate"]["hash"], "allow": "once"}
            async with http.post(path, json=body) as answer:
                assert answer.status == 204
            async with http.get(f"/api/sessions/{gate['session']}/turns/{gate['gate']['turn']}/events") as answer:
                assert "sold 7" in await answer.text()
            async with http.post(path, json={**body, "allow": None, "deny": "no"}) as answer:
                assert answer.status == 409


async def test_told_to_leave_a_node_ends_its_streams_and_is_gone() -> None:
    with a_node() as node:
        async with aiohttp.ClientSession(node.url, headers=bearer(node)) as http:
            async with http.get(f"/api/sessions/{node.things['session']}/events") as answer:
                assert (await answer.content.readline()).startswith(b"id: ")
                node.process.send_signal(signal.SIGTERM)
                async with asyncio.timeout(10):
                    rest = await answer.read()
            assert b'"end":"drain"' in rest
        assert await asyncio.to_thread(node.process.wait, 10) == 0
        assert node.process.stdout is not None
        assert node.process.stdout.read() == "left\n"


async def test_revoking_a_key_ends_its_stream_soon() -> None:
    with a_node() as node:
        async with aiohttp.ClientSession(node.url) as http:
            owner, viewer = bearer(node, "owner"), bearer(node, "viewer")
            path = f"/api/sessions/{node.things['session']}/events"
            async with http.get(path, headers=viewer) as answer:
                await answer.content.readline()
                body = {"role": "viewer", "is_active": False}
                async with http.put("/api/users/viewer", json=body, headers=owner) as put:
                    assert put.status == 200
                async with asyncio.timeout(8):
                    rest = await answer.read()
            assert b'"end":"revoked"' in rest
            async with asyncio.timeout(5):  # who somebody is, is remembered for two seconds
                while True:
                    async with http.get("/api/me", headers=viewer) as answer:
                        if answer.status == 401:
                            break
                    await asyncio.sleep(0.1)


def test_a_port_that_is_taken_is_said() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match=r"cannot be used: [A-Z]"):
            listen(ServerOptions(port=taken.getsockname()[1]))


@pytest.mark.parametrize("options", [{"host": "no.such.host.invalid"}, {"port": 99999}])
def test_an_address_that_is_none_is_said(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        listen(ServerOptions(**options))
