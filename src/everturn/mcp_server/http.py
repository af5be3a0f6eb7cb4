"""An agent's server → one that listens on this machine: a token in every request, and no page of a browser gets in."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from typing import Any

from everturn.errors import ConfigError
from everturn.mcp_server.serving import AgentServer
from everturn.mcp_server.stdio import TOLD

PATH = "/mcp"
SHORTEST_TOKEN = 16  # characters

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Scope]]
Send = Callable[[Scope], Awaitable[None]]


class TokenWall:
    """Lets nobody in without the token, whatever they ask for."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]], token: str) -> None:
        if len(token) < SHORTEST_TOKEN or not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigError(
                f"a token is at least {SHORTEST_TOKEN} plain characters without blanks; make a longer one"
            )
        self._app, self._wanted = app, f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve, or refuse."""
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        given = [value for name, value in scope.get("headers", ()) if name == b"authorization"]
        if scope["type"] == "http" and len(given) == 1 and hmac.compare_digest(given[0], self._wanted):
            return await self._app(scope, receive, send)
        if scope["type"] != "http":
            return await send({"type": "websocket.close", "code": 1008})
        text = b"a token is needed: Authorization: Bearer ..."
        headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer"), (b"connection", b"close")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        await send({"type": "http.response.body", "body": text})


async def serve_http(agent: AgentServer, port: int, token: str, ready: Callable[[str], None]) -> None:
    """Serve on this machine until SIGINT or SIGTERM; `ready` is told the address. Port 0 is any that is free.

    Raises:
        ConfigError: the port is taken, or the token is none.
    """
    import uvicorn

    class Server(uvicorn.Server):
        """One that leaves signals to us: it raises them again when it is done, before anything of ours is let go of."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

    from mcp.server.transport_security import TransportSecuritySettings

    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise ConfigError(f"port {port} cannot be listened on: {error}; name another, or 0 for any") from None
        place = f"127.0.0.1:{listening.getsockname()[1]}"
        security = TransportSecuritySettings(
            allowed_hosts=[place, place.replace("127.0.0.1", "localhost")],
            allowed_origins=[],  # what sends one is a page in a browser, and none of ours
        )
        app = agent.server.streamable_http_app(streamable_http_path=PATH, transport_security=security)
        wall: Any = TokenWall(app, token)
        config = uvicorn.Config(wall, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=5)
        server, loop = Server(config), asyncio.get_running_loop()

        def leave() -> None:
            agent.is_leaving = server.should_exit = True

        for number in TOLD:
            loop.add_signal_handler(number, leave)
        listening.listen(128)
        ready(f"http://{place}{PATH}")
        try:
            await server.serve(sockets=[listening])
        finally:
            for number in TOLD:
                loop.remove_signal_handler(number)
    finally:
        listening.close()
