"""The agent in a process of its own, over stdio and HTTP, with the stock client of the mcp library."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult, InputRequiredResult

from everturn.stores.registry import get_store
from tests.mcp_server.clients import AGENT, MODES, Person, environment, process, ran, text

TOKEN = "a-token-of-the-tests"


async def test_fifty_tasks_at_once_have_fifty_answers():
    async with process() as client:
        results = await asyncio.gather(*(client.call_tool("ask", {"task": f"task {n}"}) for n in range(50)))
    assert [text(result) for result in results] == [f"message 1: task {n}" for n in range(50)]
    assert len({result.structured_content["session"] for result in results if result.structured_content}) == 50


async def test_a_question_is_answered_after_the_server_was_killed(tmp_path: Path):
    words, trace = ("--store", str(tmp_path / "talks.db")), tmp_path / "trace"
    arguments = {"task": 'call burn {"what":"wood"}'}
    log_path = tmp_path / "stderr"
    with log_path.open("w", encoding="utf-8") as log:
        async with process(*words, person=Person(), trace=trace, log=log) as client:
            pending: Any = await client.session.call_tool("ask", arguments, allow_input_required=True)
            assert isinstance(pending, InputRequiredResult)
            pid = json.loads(log_path.read_text(encoding="utf-8").splitlines()[0])["pid"]
            os.kill(pid, signal.SIGKILL)
    assert ran(trace) == []
    yes = ElicitResult(action="accept", content={"decision": "once"})
    async with process(*words, person=Person(), trace=trace) as client:
        done: Any = await client.session.call_tool(
            "ask",
            arguments,
            input_responses=dict.fromkeys(pending.input_requests or {}, yes),
            request_state=pending.request_state,
            allow_input_required=True,
        )
    assert text(done) == "it came to: wood is ash"
    assert ran(trace) == ["wood"]


async def test_nothing_but_protocol_is_on_stdout_and_garbage_on_stdin_ends_nothing():
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        str(AGENT),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
    )
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    sent: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "look", "arguments": {"what": "it"}}},
    ]
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"this is no JSON \xff\xfe\n")
    child.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in sent))
    await child.stdin.drain()
    lines: list[Any] = []
    async with asyncio.timeout(30):
        while not any(line.get("id") == 2 for line in lines):
            lines.append(json.loads(await child.stdout.readline()))
    child.stdin.close()
    rest, errors = await child.communicate()
    assert rest == b""
    assert all(line["jsonrpc"] == "2.0" for line in lines)
    assert lines[-1]["result"]["content"][0]["text"] == "it is fine"
    for stray in (b"what is loaded may print", b"this is not protocol", b"nor is this"):
        assert stray in errors
    assert child.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_told_to_stop_it_ends_at_once_and_what_hangs_is_left_for_the_next(number: signal.Signals, tmp_path: Path):
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        str(AGENT),
        "--store",
        str(tmp_path / "talks.db"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment(),
    )
    info = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    hang = {"name": "ask", "arguments": {"task": "hang"}, "_meta": {"progressToken": 7}}
    sent: list[Any] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": info},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": hang},
    ]
    assert child.stdin is not None
    assert child.stdout is not None
    child.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in sent))
    await child.stdout.readline()
    assert json.loads(await child.stdout.readline())["method"] == "notifications/progress"
    child.send_signal(number)
    async with asyncio.timeout(20):
        assert await child.wait() == 0
    child.stdin.close()
    store = get_store(str(tmp_path / "talks.db"))
    (session,) = await store.sessions()
    assert len(await store.open_turns(session.id)) == 1
    await store.aclose()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_over_http_too_it_ends_in_order_when_it_is_told_to(number: signal.Signals, tmp_path: Path):
    store = str(tmp_path / "talks.db")
    async with listening("--store", store, number=number) as address:
        async with connected(address, "auto") as client:
            assert text(await client.call_tool("ask", {"task": "hello"})) == "message 1: hello"
    # What it wrote beside the file is put into it when the store is closed, and only then.
    assert [name for name in os.listdir(tmp_path) if name.endswith("-wal")] == []


@asynccontextmanager
async def listening(
    *words: str, trace: Path | None = None, number: signal.Signals = signal.SIGTERM
) -> AsyncGenerator[str]:
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        str(AGENT),
        "--http",
        "0",
        *words,
        stderr=asyncio.subprocess.PIPE,
        env={**environment(trace), "EVERTURN_MCP_TOKEN": TOKEN},
    )
    assert child.stderr is not None
    try:
        address = ""
        async with asyncio.timeout(30):
            while not address:
                line = (await child.stderr.readline()).decode()
                assert TOKEN not in line
                address = line.partition("serving at ")[2].strip()
        yield address
    finally:
        child.send_signal(number)
        await child.communicate()
        assert child.returncode == 0


@asynccontextmanager
async def connected(address: str, mode: str, person: Person | None = None) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(address, http_client=http)
        async with Client(transport, mode=mode, elicitation_callback=person) as client:
            yield client


async def test_over_http_it_serves_both_kinds_of_clients_and_nobody_without_the_token(tmp_path: Path):
    trace = tmp_path / "trace"
    async with listening(trace=trace) as address:
        for mode in MODES:
            person = Person(decision="once")
            async with connected(address, mode, person) as client:
                results = await asyncio.gather(*(client.call_tool("ask", {"task": f"{n}"}) for n in range(10)))
                burnt = await client.call_tool("burn", {"what": mode})
            assert [text(result) for result in results] == [f"message 1: {n}" for n in range(10)]
            assert text(burnt) == f"{mode} is ash"
            assert len(person.shown) == 1
        assert ran(trace) == list(MODES)
        await _check_walls(address)


async def _check_walls(address: str) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    kinds = {"Accept": "application/json, text/event-stream"}
    right = {"Authorization": f"Bearer {TOKEN}", **kinds}
    port = address.rpartition(":")[2].partition("/")[0]
    cases: list[tuple[dict[str, str], int]] = [
        (kinds, 401),
        ({**kinds, "Authorization": f"Bearer {TOKEN}x"}, 401),
        ({**kinds, "Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({**kinds, "Authorization": f"Basic {TOKEN}"}, 401),
        ({**right, "Origin": "https://evil.example"}, 403),
        ({**right, "Origin": f"http://127.0.0.1:{port}"}, 403),
        ({**right, "Host": "evil.example"}, 421),
        ({**right, "Host": f"evil.example:{port}"}, 421),
    ]
    fresh = httpx2.Limits(max_keepalive_connections=0)  # a refusal may end its connection
    async with httpx2.AsyncClient(timeout=30, limits=fresh) as http:
        for headers, status in cases:
            answer = await http.post(address, json=ping, headers=headers)
            assert answer.status_code == status, headers
        for path in ("/", "/docs", "/.well-known/oauth-protected-resource"):
            assert (await http.get(address.replace("/mcp", path))).status_code == 401


@pytest.mark.parametrize("token", ["", "short", "with a blank in it", "ümläut-token-0123456789"])
async def test_a_token_that_is_none_is_refused(token: str):
    from everturn.errors import ConfigError
    from everturn.mcp_server.http import TokenMiddleware

    with pytest.raises(ConfigError, match="a token needs at least"):
        TokenMiddleware(lambda *_: asyncio.sleep(0), token)
