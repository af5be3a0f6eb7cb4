"""Stock clients of the mcp library, in front of an agent in this process or in one of its own."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TextIO

import mcp_types as types
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from everturn.app import App
from everturn.core.rules.policy import Rule
from everturn.mcp_server import AgentServer
from tests.mcp_server import served_agent

AGENT = Path(served_agent.__file__)
TOOLS = [served_agent.look, served_agent.burn, served_agent.warm, served_agent.forbidden, served_agent.partly]
RULES = [
    Rule(tool="forbidden", action="deny"),
    Rule(tool="partly", match={"path": "secret*"}, action="deny"),
    Rule(tool="partly", action="allow"),
    Rule(tool="look", action="allow"),
]
MODES = ("legacy", "auto")


class Person:
    """Answers forms as told, and keeps what it was shown."""

    def __init__(self, action: str = "accept", **content: Any) -> None:
        self.action, self.content = action, content
        self.shown: list[Any] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.shown.append(params)
        return types.ElicitResult(action=self.action, content=self.content or None)  # pyright: ignore[reportArgumentType]


@asynccontextmanager
async def serving(
    mode: str, person: Person | None = None, **options: Any
) -> AsyncGenerator[tuple[Client, AgentServer]]:
    app = App(served_agent.Obedient(), tools=TOOLS, rules=RULES, **options)
    agent = AgentServer(app, model="obedient", rules=RULES)
    try:
        await app.start()
        async with Client(agent.server, mode=mode, elicitation_callback=person) as client:
            yield client, agent
    finally:
        await app.aclose()


@asynccontextmanager
async def process(
    *words: str, mode: str = "auto", person: Person | None = None, trace: Path | None = None, log: Any = None
) -> AsyncGenerator[Client]:
    with _nowhere() as nowhere:
        program = StdioServerParameters(command=sys.executable, args=[str(AGENT), *words], env=environment(trace))
        async with Client(
            stdio_client(program, errlog=log or nowhere), mode=mode, elicitation_callback=person
        ) as client:
            yield client


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")


def environment(trace: Path | None = None) -> dict[str, str]:
    inherited = {key: os.environ[key] for key in ("PATH", "PYTHONPATH", "HOME") if key in os.environ}
    return {**inherited, **({"TRACE": str(trace)} if trace else {})}


def text(result: Any) -> str:
    return result.content[0].text


def ran(trace: Path) -> list[str]:
    return trace.read_text(encoding="utf-8").splitlines() if trace.exists() else []
