"""An MCP server made with the SDK, with prompts and resources, some of them hostile, served over HTTP in this process."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Generator

import uvicorn
from mcp.server.mcpserver import MCPServer

from tests.helpers.waiting import wait_until

server = MCPServer("notes")
BIDI = "safe\u202e gnihtemos \u2066esle\u2069"


@server.prompt(description="Review code \u202ewith care")
def review(path: str, focus: str = "bugs") -> str:
    return f"Review {path} for {focus}."


@server.prompt()
def plain() -> str:
    return "Say good morning."


@server.prompt()
def hostile() -> str:
    return BIDI + "\x1b[2J" + "x" * 300_000


@server.resource("notes://today", description="The notes of today")
def today() -> str:
    return "Buy milk."


@server.resource("notes://hostile")
def hostile_text() -> str:
    return BIDI


@server.resource("file:///etc/passwd")
def path_like() -> str:
    return "not the file of this machine"


@server.resource("notes://large")
def large() -> str:
    return "x" * 10_000_000


@server.resource("notes://picture", mime_type="image/png")
def picture() -> bytes:
    return b"\x89PNG\r\n\x1a\n"


@server.tool()
def add(a: int, b: int) -> int:
    return a + b


class _Server(uvicorn.Server):
    """A server that leaves signals to the tests."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


@contextlib.asynccontextmanager
async def offering_server() -> AsyncGenerator[str]:
    """Serve until the block ends; the URL."""
    config = uvicorn.Config(server.streamable_http_app(), port=0, log_config=None, access_log=False, ws="none")
    running, socket = _Server(config), config.bind_socket()
    task = asyncio.create_task(running.serve(sockets=[socket]))
    try:
        await wait_until(lambda: running.started, 20.0)
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/mcp"
    finally:
        running.should_exit = running.force_exit = True
        await task
        socket.close()
