"""A server over HTTP that misbehaves as it is told, in the process of the test."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

TOOLS = "echo slow big never cut packed junk hold".split()


class Server:
    """Its sessions, and what reached it."""

    def __init__(self) -> None:
        self.port = 0
        self.sessions: set[str] = set()
        self.began = 0
        self.calls: list[str] = []
        self.cancelled = 0
        self.status = 0  # what it answers to everything
        self.more: dict[str, str] = {}  # headers of that
        self.is_streaming = False
        self.headers: list[dict[str, str]] = []
        self.runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self) -> None:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/mcp", self._handle)
        self.runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self.runner.setup()
        site = web.TCPSite(self.runner, "127.0.0.1", self.port)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]

    async def stop(self) -> None:
        if self.runner is not None:
            await self.runner.cleanup()
            self.runner = None

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        if self.status:
            return web.Response(status=self.status, headers=self.more)
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        method, id = message.get("method"), message.get("id")
        if method == "server/discover":
            return self._said(id, error={"code": -32601, "message": "no"})
        if method == "initialize":
            self.began += 1
            session = f"s{self.began}"
            self.sessions.add(session)
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "w", "version": "1"},
            }
            return self._said(id, result=result, headers={"mcp-session-id": session})
        if request.headers.get("mcp-session-id") not in self.sessions:
            return web.Response(status=404)
        if id is None:
            self.cancelled += method == "notifications/cancelled"
            return web.Response(status=202)
        if method == "tools/list":
            return self._said(
                id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
            )
        if method == "tools/call":
            return await self._call(request, id, message["params"])
        return self._said(id, result={})

    def _said(self, id: Any, headers: dict[str, str] | None = None, **body: Any) -> web.Response:
        text = json.dumps({"jsonrpc": "2.0", "id": id, **body}).replace("CUT", r"\ud83d")
        return web.json_response(text=text, headers=headers)

    async def _call(self, request: web.Request, id: Any, params: dict[str, Any]) -> web.StreamResponse:
        name, arguments = params["name"], params.get("arguments") or {}
        self.calls.append(name)
        text = arguments.get("text", "")
        match name:
            case "slow" | "never":
                await asyncio.sleep(arguments.get("seconds", 30 if name == "never" else 0.2))
            case "cut":
                assert request.transport is not None
                request.transport.abort()
            case "packed":
                answer = {"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "x" * 2**24}]}}
                body = gzip.compress(json.dumps(answer).encode())
                return web.Response(body=body, headers={"content-encoding": "gzip"}, content_type="application/json")
            case "junk":
                return web.Response(text="<html>Log in</html>", content_type="text/html")
            case "big":
                text = "x" * (arguments.get("n", 1) * 2**20)
            case _:
                pass
        result = {"content": [{"type": "text", "text": text}]}
        if not self.is_streaming:
            return self._said(id, result=result)
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        progress = {"progressToken": params["_meta"]["progressToken"], "progress": 1, "total": 2}
        for message in (
            {"method": "notifications/progress", "params": progress},
            {"id": id, "result": result},
        ):
            text = json.dumps({"jsonrpc": "2.0", **message}).replace("CUT", r"\ud83d")
            rows = f"event: message\ndata: {text}\n\n".encode()
            for piece in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
                await response.write(piece)
        return response


@asynccontextmanager
async def serving() -> AsyncGenerator[Server]:
    server = Server()
    await server.start()
    try:
        yield server
    finally:
        await server.stop()
