"""A hostile server and whoever deals with it: its ledger, its tools by their names, and a person who is asked."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from everturn.core.gates import GateResolution
from everturn.core.parts import Output
from everturn.core.ports import Question, SubagentRequest, SubagentResult, Tool, ToolContext
from everturn.mcp.config import ServerSpec
from everturn.mcp.connection import ServerStatus
from everturn.mcp.servers import McpServers
from everturn.mcp.trust import Trust
from tests.helpers.waiting import wait_until

HOSTILE = Path(__file__).with_name("hostile_mcp_server.py")
PATIENCE = 20.0  # seconds for what must come in the end


def hostile(ledger: Path, mode: str = "plain", name: str = "h", **more: Any) -> ServerSpec:
    """The server, in a mode of its."""
    return ServerSpec(name, command=sys.executable, args=("-S", str(HOSTILE), str(ledger), mode), **more)


def noted(ledger: Path, key: str = "call") -> list[Any]:
    """What reached the server."""
    rows = [json.loads(line) for line in ledger.read_text("utf-8").splitlines()] if ledger.exists() else []
    return [row[key] for row in rows if key in row]


class MemoryBlobs:
    """Bytes under numbers."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        name = f"b{len(self.kept)}"
        self.kept[name] = data
        return name

    async def get(self, name: str) -> bytes:
        return self.kept[name]


class Person:
    """Somebody who is asked, and all that the context of a call has."""

    def __init__(self, reply: Callable[[Question], GateResolution] | None = None, kept: str = "") -> None:
        self.reply = reply or (lambda question: GateResolution(True, result='{"name": "Ada"}'))
        self.questions: list[Question] = []
        self.said: list[str] = []
        self.turns: list[SubagentRequest] = []
        self.kept, self.blobs = kept, MemoryBlobs()

    async def _ask(self, question: Question) -> GateResolution:
        self.questions.append(question)
        return self.reply(question)

    async def _sub_turn(self, turn: SubagentRequest) -> SubagentResult:
        self.turns.append(turn)
        return SubagentResult("s2", "t2", "hi")

    def _keep(self, state: str) -> None:
        self.kept = state

    def context(self, call: str = "c1") -> ToolContext:
        return ToolContext(
            session="s",
            turn="t",
            call=call,
            key=f"key-{call}",
            progress=self.said.append,
            run_subagent=self._sub_turn,
            ask=self._ask,
            saved_state=self.kept,
            save_state=self._keep,
            blobs=self.blobs,
        )


class House:
    """Servers that are open, and their tools."""

    def __init__(self, servers: McpServers) -> None:
        self.servers = servers
        self.tools: dict[str, dict[str, Tool]] = {}
        self.published = 0

    def publish(self, origin: str, tools: Sequence[Tool]) -> None:
        self.published += 1
        self.tools[origin] = {tool.spec.name: tool for tool in tools}

    def tool(self, name: str, server: str = "h") -> Tool:
        return self.tools[f"mcp:{server}"][f"{server}_{name}"]

    async def call(self, name: str, person: Person | None = None, server: str = "h", **arguments: Any) -> Output:
        answer = self.tool(name, server).run(arguments, (person or Person()).context())
        output = await answer  # pyright: ignore[reportGeneralTypeIssues]
        assert isinstance(output, Output)
        return output

    def status(self, server: str = "h") -> ServerStatus:
        return next(status for status in self.servers.status() if status.name == server)

    @property
    def link(self) -> Any:
        return self.servers._connections["h"].connection

    async def until(self, is_so: Callable[[], bool]) -> None:
        await wait_until(is_so, PATIENCE)


@asynccontextmanager
async def house(
    *specs: ServerSpec, trust: Trust | None = None, ready: bool = True, max_wait: float = 0.7
) -> AsyncGenerator[House]:
    """Open servers; with `ready` all of them are there."""
    servers = McpServers(specs, trust=trust, timeout=max_wait)
    home = House(servers)
    await servers.open(home.publish)
    try:
        if ready:
            await home.until(lambda: all(status.state == "ready" for status in servers.status()))
        yield home
    finally:
        await servers.aclose()
        assert all(link.connection.most_connections <= 1 for link in servers._connections.values())
