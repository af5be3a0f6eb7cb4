"""The wire of `everturn acp`: whatever comes in, it answers in JSON-RPC, goes on, and writes nothing else to stdout."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everturn.acp.connection import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    RpcConnection,
    RpcError,
)
from everturn.testing.provider import Call, Provider, Say
from tests.helpers.acp_editor import open_editor

METHODS = (
    *("initialize", "authenticate", "session/new", "session/load", "session/resume", "session/list", "session/close"),
    *("session/prompt", "session/cancel", "session/set_mode"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
IDS = st.integers() | st.text(max_size=5) | st.none() | JSON
MESSAGES = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {"jsonrpc": st.sampled_from(["2.0", "1.0", 2])},
        optional={
            "id": IDS,
            "method": st.sampled_from(["echo", "fails", "", "no/such"]) | JSON,
            "params": JSON,
            "result": JSON,
            "error": JSON,
        },
    ),
)


async def talk(lines: list[bytes]) -> tuple[list[Any], int]:
    """What a connection answers to these lines, and how many calls it made."""
    written: list[Any] = []
    calls = 0

    async def write(line: bytes) -> None:
        assert line.count(b"\n") == 1
        assert line.endswith(b"\n")
        written.append(json.loads(line))

    async def echo(params: dict[str, Any]) -> Any:
        nonlocal calls
        calls += 1
        return params

    async def fails(params: dict[str, Any]) -> Any:
        raise KeyError("a bug")

    connection = RpcConnection(write, {"echo": echo, "fails": fails})

    async def source() -> AsyncIterator[bytes]:
        for line in lines:
            yield line
            await asyncio.sleep(0)
        for _ in range(20):
            await asyncio.sleep(0)

    await connection.serve(source())
    return written, calls


@given(st.lists(MESSAGES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40), max_size=8))
def test_no_line_ends_the_connection(lines: list[bytes]) -> None:
    lines = [line.replace(b"\n", b" ") for line in lines]
    good = b'{"jsonrpc":"2.0","id":"last","method":"echo","params":{"a":1}}'

    written, _ = asyncio.run(talk([*lines, good]))

    assert {"jsonrpc": "2.0", "id": "last", "result": {"a": 1}} in written
    for message in written:
        assert message["jsonrpc"] == "2.0"
        assert ("result" in message) != ("error" in message)


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"{", PARSE_ERROR, None),
        (b"\xff\xfe", PARSE_ERROR, None),
        (b"[" * 100_000, PARSE_ERROR, None),
        (b"[]", INVALID_REQUEST, None),
        (b"7", INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":1}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":{},"method":"echo"}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"1.0","id":1,"method":"echo"}', INVALID_REQUEST, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"no"}', METHOD_NOT_FOUND, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}', INVALID_PARAMS, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"fails"}', -32603, 1),
    ],
)
async def test_what_is_wrong_is_answered_with_its_code(line: bytes, code: int, number: object) -> None:
    (answer,), calls = await talk([line])

    assert (answer["id"], answer["error"]["code"], calls) == (number, code, 0)
    assert "a bug" not in answer["error"]["message"]


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"no"}',
        b'{"jsonrpc":"2.0","id":99,"result":{}}',
        b'{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"?"}}',
        b'{"jsonrpc":"2.0","id":[],"result":1}',
        b"",
        b"   ",
    ],
)
async def test_notifications_and_answers_to_nothing_are_dropped(line: bytes) -> None:
    assert await talk([line]) == ([], 0)


async def test_an_answer_counts_once_and_an_error_is_raised() -> None:
    sent: list[Any] = []

    async def write(line: bytes) -> None:
        sent.append(json.loads(line))

    connection = RpcConnection(write, {})
    lines: asyncio.Queue[bytes] = asyncio.Queue()

    async def source() -> AsyncIterator[bytes]:
        while line := await lines.get():
            yield line

    serving = asyncio.create_task(connection.serve(source()))
    first, second = (asyncio.create_task(connection.request("ask", {})) for _ in range(2))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(sent) == 2
    for line in ({"id": 1, "result": 1}, {"id": 1, "result": 2}, {"id": 2, "error": {"message": "no"}}):
        lines.put_nowait(json.dumps({"jsonrpc": "2.0", **line}).encode())
    assert await first == 1
    with pytest.raises(RpcError, match="no"):
        await second
    lines.put_nowait(b"")
    await serving


@pytest.mark.timeout(300)
async def test_the_process_survives_a_storm_of_wrong_messages(tmp_path: Path) -> None:
    """Every method with parameters of every wrong shape; then a session is opened as if nothing had been."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    chance = random.Random(24)
    shapes: list[Any] = [
        *({}, [], None, 7, "x", {"sessionId": None}, {"sessionId": "../x"}, {"sessionId": "a" * 5000}),
        *({"cwd": "relative"}, {"cwd": "/no/such/folder"}, {"cwd": "/\0"}, {"cwd": 7, "sessionId": 7}),
        *({"sessionId": "x", "prompt": [{"type": "text"}]}, {"sessionId": "x", "prompt": "text"}, {"_meta": {"a": 1}}),
        {"sessionId": "x", "modeId": ["plan"]},
    ]
    async with open_editor(tmp_path, "--model", "offline:demo", initialize=False) as editor:
        waiting = [await editor.start(method, shape) for method in METHODS for shape in shapes]
        for _ in range(300):
            junk = bytes(chance.randrange(256) for _ in range(chance.randrange(1, 60)))
            await editor.write(junk.replace(b"\n", b"").replace(b"\r", b"") or b"?")
        async with asyncio.timeout(120):
            answers = await asyncio.gather(*waiting)
        assert all("error" in answer or "result" in answer for answer in answers)
        assert {answer["error"]["code"] for answer in answers if "error" in answer} <= {-32602, -32002, -32603}
        session = await editor.new(tmp_path / "project")
        answer = await editor.prompt(session, "What time is it?")
        assert answer["result"]["stopReason"] == "end_turn"
        assert editor.process.returncode is None
    assert editor.process.returncode == 0


@pytest.mark.timeout(300)
async def test_tools_that_print_do_not_reach_the_protocol(tmp_path: Path) -> None:
    """`Editor` fails on a line of stdout that is not a message; this tool prints, and starts a program that does."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    (tmp_path / "loud.py").write_text(
        "import os, subprocess, sys\nprint('imported')\nfrom everturn import tool\n"
        "@tool(read_only=True)\ndef loud() -> str:\n    'Make noise.'\n"
        "    print('noise'); os.write(1, b'noise'); subprocess.run(['echo', 'noise'])\n"
        "    return sys.stdin.read() or 'nothing on stdin'\n",
        encoding="utf-8",
    )
    (tmp_path / "c.toml").write_text('[tools]\npython = ["loud.py"]\n', encoding="utf-8")
    async with Provider() as provider:
        provider.script("m", [[Call("loud", "{}")], [Say("Quiet.")]], sequence=True)
        words = ["--model", "m", "--base-url", f"{provider.url}/v1", "--config", "c.toml"]
        async with open_editor(tmp_path, *words) as editor:
            answer = await editor.prompt(await editor.new(tmp_path / "project"), "Go")
        assert answer["result"]["stopReason"] == "end_turn"
        assert "nothing on stdin" in str(provider.seen[-1].body["messages"])
    assert "noise" in (tmp_path / "stderr.txt").read_text(encoding="utf-8")
