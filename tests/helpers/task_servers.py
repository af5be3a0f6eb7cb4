"""The server of tasks, over both transports, and a process that drives a turn with it until it is killed."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from everturn import Chat, McpServers
from everturn.events import GateOpened
from everturn.mcp.config import ServerSpec
from everturn.testing import ScriptedModel, call, calls, say
from tests.helpers.waiting import wait_until_sync

SERVER = Path(__file__).with_name("task_mcp_server.py")
ROOT = Path(__file__).parents[2]
Transport = Literal["stdio", "http"]


@contextmanager
def task_server(folder: Path, transport: Transport = "stdio", **more: Any) -> Generator[ServerSpec]:
    """The server. Over stdio, each connection starts it; over HTTP, it is one process."""
    folder.mkdir(exist_ok=True)
    if transport == "stdio":
        yield ServerSpec("h", command=sys.executable, args=("-S", str(SERVER), str(folder)), **more)
        return
    with subprocess.Popen([sys.executable, "-S", str(SERVER), str(folder), "0"]) as process:
        try:
            port = wait_until_sync(lambda: (folder / "port").exists() and (folder / "port").read_text())
            yield ServerSpec("h", url=f"http://127.0.0.1:{port}/mcp", **more)
        finally:
            process.kill()


def requests(folder: Path, key: str = "call") -> list[Any]:
    """What reached the server."""
    ledger = folder / "ledger.jsonl"
    rows = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()] if ledger.exists() else []
    return [row[key] for row in rows if key in row]


def open_chat(spec: ServerSpec, store: str, tool: str, source: McpServers | None = None) -> Chat:
    """A session whose model calls a tool of the server once."""
    servers = source or McpServers([spec], timeout=600)
    model = ScriptedModel(calls(call(f"h_{tool}", text="x")), say("Done."))
    return Chat(model, tools=[servers], store=store, session="s")


async def _drive(spec: ServerSpec, store: str, tool: str) -> None:
    async with open_chat(spec, store, tool) as chat:
        turn = await chat.send("go", key="k")
        async for event in turn:
            if isinstance(event, GateOpened) and event.gate.kind == "call":
                await turn.answer(event.gate, allow="once")


@contextmanager
def driving_process(spec: ServerSpec, store: str, tool: str) -> Generator[subprocess.Popen[bytes]]:
    """A process that sends the message and drives its turn. It is killed in the end."""
    address = spec.url or json.dumps(spec.args)
    command = [sys.executable, "-m", "tests.helpers.task_servers", address, store, tool]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            yield process
        finally:
            process.kill()


if __name__ == "__main__":
    address, store, tool = sys.argv[1:]
    is_url = address.startswith("http")
    spec = (
        ServerSpec("h", url=address)
        if is_url
        else ServerSpec("h", command=sys.executable, args=tuple(json.loads(address)))
    )
    asyncio.run(_drive(spec, store, tool))
