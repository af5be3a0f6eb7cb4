"""HTTP transport of the MCP server: listens on this machine, requires a token in every request, and refuses web pages."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from typing import Any

from everturn.errors import ConfigError
from everturn.mcp_server.server import AgentServer
from everturn.mcp_server.stdio import STOP_SIGNALS

PATH = "/mcp"
SHORTEST_TOKEN = 16  # characters

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]


class TokenMiddleware:
    """Refuses every request without the token."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], token: str) -> None:
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError(
                f"a token needs at least {SHORTEST_TOKEN} plain characters without spaces; create a longer one"
            )
        self._app, self._wanted = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        values = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        if scope["type"] == "http" and len(values) == 1 and hmac.compare_digest(values[0], self._wanted):
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        text = b"a token is needed: Authorization: Bearer ..."
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": text})


async def serve_http(agent: AgentServer, port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serve on this machine until SIGINT or SIGTERM; `ready` is called with the address. Port 0 means any free port.

    Raises:
        ConfigError: the port is taken, or the token is invalid.
    """
    import uvicorn

    class QuietServer(uvicorn.Server):
        """Server that does not handle signals: uvicorn would raise them again at its end, before our resources are
        released."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    from mcp.server.transport_security import TransportSecuritySettings

    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"port {port} cannot be used: {error}; choose another port, or 0 for any free port"
            ) from None
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        security = TransportSecuritySettings(
            allowed_hosts=[address, address.replace("127.0.0.1", "localhost")],
            allowed_origins=[],  # a request with an Origin comes from a web page, and none of them is ours
        )
        app = agent.server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
        middleware: Any = TokenMiddleware(app, token)
        config = uvicorn.Config(
            middleware, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=5
        )
        server, loop = QuietServer(config), asyncio.get_running_loop()

        def leave() -> None:
            agent.is_stopping = server.should_exit = True

        for number in STOP_SIGNALS:
            loop.add_signal_handler(number, leave)
        listener.listen(128)
        ready(f"http://{address}{PATH}")
        try:
            await server.serve(sockets=[listener])
        finally:
            for number in STOP_SIGNALS:
                loop.remove_signal_handler(number)
    finally:
        listener.close()
