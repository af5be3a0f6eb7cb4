"""Serving: runs the application on uvicorn until a signal, then shuts down: ends streams, finishes requests, drains turns."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

import uvicorn

from everturn.access.auth.authentication import Authenticator
from everturn.access.context.server_context import ServerContext
from everturn.config.server_options import ServerOptions
from everturn.core.rules.urls import is_loopback
from everturn.errors import ConfigError
from everturn.server.app import Application, make_app
from everturn.server.connections import SWEEP, abort_stalled, protocol_with_limits
from everturn.server.route import Route
from everturn.server.streams.open import StreamEndpoints
from everturn.server.streams.response import SlowReader
from everturn.telemetry import metrics

log = logging.getLogger("everturn.server")

FINISH_SHARE: Final = 0.4
"""The share of the drain time in which a non-streaming response may still finish."""


class _SignalFreeServer(uvicorn.Server):
    """A uvicorn server that leaves signals to us: uvicorn raises them again on exit, before our resources are closed."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class _NoiseFilter(logging.Filter):
    """Drops log records about slow readers and malformed requests, with which clients could fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], SlowReader):
            return False
        return "Invalid HTTP request" not in record.getMessage() and "upgrade request" not in record.getMessage()


def listen(options: ServerOptions) -> socket.socket:
    """Open a socket at the configured address.

    Raises:
        ConfigError: the server cannot listen on it.
    """
    if not 0 <= options.port <= 65_535:  # the system would silently use the remainder of a larger number
        raise ConfigError(f"{options.port} is not a port; use 1 to 65535, or 0 for any free port")
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, proto)
    except OSError as error:
        raise ConfigError(f"{options.host!r} is not an address of this machine: {error}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, OverflowError) as error:
        listening.close()
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(
            f"port {options.port} cannot be used: {reason}; choose another port, or 0 for any free port"
        ) from None
    return listening


def server_url(listening: socket.socket, options: ServerOptions) -> str:
    """The URL of the server."""
    if options.public_url:
        return options.public_url.rstrip("/")
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    server_context: ServerContext,
    authenticator: Authenticator,
    options: ServerOptions,
    ready: Callable[[str], None],
    extra: Sequence[Route] = (),
    *,
    streams: StreamEndpoints | None = None,
    leave: asyncio.Event | None = None,
    catches_signals: bool = True,
    **more: Any,
) -> None:
    """Serve until SIGINT or SIGTERM, or until `leave` is set; calls `ready` with the address.

    Without `catches_signals`, which is for a server inside another program, only `leave` ends it.

    The caller starts and closes the runtime; this drains it, so that other nodes can continue its turns.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    leave = leave or asyncio.Event()
    streams = streams or StreamEndpoints(server_context, options, authenticator.active_credentials)
    listening = listen(options)
    with contextlib.closing(listening):
        app = make_app(server_context, authenticator, streams, options, extra, **more)
        server = _SignalFreeServer(_config(app, options))
        if not is_loopback(listening.getsockname()[0]):
            log.warning(
                "this server can be reached from other machines over plain HTTP: put a reverse proxy with TLS in "
                "front of it"
            )
        await streams.start()
        with _signals_set(leave) if catches_signals else contextlib.nullcontext(), _quiet():
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            connection_check = asyncio.create_task(_abort_stalled_connections(server))
            leaving, starting = asyncio.create_task(leave.wait()), asyncio.create_task(server.is_up.wait())
            try:
                await asyncio.wait({serving, starting}, return_when=asyncio.FIRST_COMPLETED)
                if not serving.done():
                    ready(server_url(listening, options))
                await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
                await _leave(app, server, serving, streams, server_context, options)
            finally:
                server.should_exit = server.force_exit = True
                for task in (connection_check, leaving, starting):
                    task.cancel()
                await asyncio.gather(serving, connection_check, leaving, starting, return_exceptions=True)


def _config(app: Application, options: ServerOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=protocol_with_limits(options),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # server/forwarded.py reads the client address, from trusted proxies only
        server_header=False,
        h11_max_incomplete_event_size=options.headers,
        timeout_keep_alive=max(1, int(options.idle)),
        timeout_graceful_shutdown=max(1, int(options.drain * 0.6)),
    )


async def _leave(
    app: Application,
    server: uvicorn.Server,
    serving: asyncio.Task[None],
    streams: StreamEndpoints,
    server_context: ServerContext,
    options: ServerOptions,
) -> None:
    """Shut down: refuse new streams, end the open ones with `drain`, finish requests, hand over turns."""
    until = time.monotonic() + options.drain
    app.is_leaving = True
    metrics.set_level("draining", 1)
    server.should_exit = True
    await streams.aclose(options.drain * FINISH_SHARE)
    await asyncio.wait({serving}, timeout=max(0.1, until - time.monotonic()))
    await server_context.app.drain(max(0.1, until - time.monotonic()))


async def _abort_stalled_connections(server: uvicorn.Server) -> None:
    while True:
        await asyncio.sleep(SWEEP)
        abort_stalled(server.server_state.connections)


@contextlib.contextmanager
def _signals_set(leave: asyncio.Event) -> Generator[None]:
    loop = asyncio.get_running_loop()
    handled: list[signal.Signals] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not possible outside the main thread or on some systems; then the caller sets `leave`.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, leave.set)
            handled.append(number)
    try:
        yield
    finally:
        for number in handled:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    quiet, logger = _NoiseFilter(), logging.getLogger("uvicorn.error")
    logger.addFilter(quiet)
    try:
        yield
    finally:
        logger.removeFilter(quiet)
