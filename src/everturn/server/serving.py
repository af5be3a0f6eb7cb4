"""An application → a server that listens, and leaves in order: it says so, ends its streams, finishes, and hands over."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import signal
import socket
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

import uvicorn

from everturn.access.access import House
from everturn.access.entrance import Entrance
from everturn.config.options import ServerOptions
from everturn.errors import ConfigError
from everturn.server.app import Application, make_app
from everturn.server.connections import SWEEP, bounded, sweep
from everturn.server.live import SlowReader
from everturn.server.routing import Route
from everturn.server.streams import Streams
from everturn.telemetry import metrics

log = logging.getLogger("everturn.server")

FINISH: Final = 0.4
"""The part of the time for leaving in which an answer that is given as a whole may still be finished."""


class _Server(uvicorn.Server):
    """One that leaves signals to us: it raises them again when it is done, before anything of ours is let go of."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


class _Quiet(logging.Filter):
    """Whoever does not read what they asked for is no news, and nothing that they should be able to fill a log with."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], SlowReader):
            return False
        return "Invalid HTTP request" not in record.getMessage() and "upgrade request" not in record.getMessage()


def listen(options: ServerOptions) -> socket.socket:
    """A socket at the configured address.

    Raises:
        ConfigError: it cannot be listened on.
    """
    if not 0 <= options.port <= 65_535:  # what is more would be taken for what is left of it
        raise ConfigError(f"there is no port {options.port}; name one up to 65535, or 0 for any")
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, proto)
    except OSError as error:
        raise ConfigError(f"{options.host!r} is no address of this machine: {error}") from None
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or error
        raise ConfigError(f"port {options.port} cannot be listened on: {why}; name another, or 0 for any") from None
    return listening


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def address_of(listening: socket.socket, options: ServerOptions) -> str:
    """Where the server is found, as people write it."""
    if options.public_url:
        return options.public_url.rstrip("/")
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def serve(
    house: House,
    entrance: Entrance,
    options: ServerOptions,
    ready: Callable[[str], None],
    extra: Sequence[Route] = (),
    *,
    streams: Streams | None = None,
    leave: asyncio.Event | None = None,
    catches_signals: bool = True,
    **more: Any,
) -> None:
    """Serve until SIGINT or SIGTERM, or until `leave` is set; `ready` is told the address.

    Without `catches_signals`, which is for a server inside another program, only `leave` ends it.

    The runtime is started and closed by whoever made it; it is drained here, so that others can go on with its turns.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    leave = leave or asyncio.Event()
    streams = streams or Streams(house, options, entrance.standing)
    listening = listen(options)
    with contextlib.closing(listening):
        app = make_app(house, entrance, streams, options, extra, **more)
        server = _Server(_config(app, options))
        if not _is_loopback(listening.getsockname()[0]):
            log.warning("this server can be reached from other machines, and speaks plain HTTP: put TLS in front of it")
        await streams.start()
        with _told_to_leave(leave) if catches_signals else contextlib.nullcontext(), _quiet():
            serving = asyncio.create_task(server.serve(sockets=[listening]))
            sweeping = asyncio.create_task(_sweep(server))
            leaving, rising = asyncio.create_task(leave.wait()), asyncio.create_task(server.is_up.wait())
            try:
                await asyncio.wait({serving, rising}, return_when=asyncio.FIRST_COMPLETED)
                if not serving.done():
                    ready(address_of(listening, options))
                await asyncio.wait({serving, leaving}, return_when=asyncio.FIRST_COMPLETED)
                await _leave(app, server, serving, streams, house, options)
            finally:
                server.should_exit = server.force_exit = True
                for task in (sweeping, leaving, rising):
                    task.cancel()
                await asyncio.gather(serving, sweeping, leaving, rising, return_exceptions=True)


def _config(app: Application, options: ServerOptions) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=bounded(options),
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="warning",
        access_log=False,
        proxy_headers=False,  # nothing here depends on who a proxy says that somebody is
        server_header=False,
        h11_max_incomplete_event_size=options.headers,
        timeout_keep_alive=max(1, int(options.idle)),
        timeout_graceful_shutdown=max(1, int(options.drain * 0.6)),
    )


async def _leave(
    app: Application,
    server: uvicorn.Server,
    serving: asyncio.Task[None],
    streams: Streams,
    house: House,
    options: ServerOptions,
) -> None:
    """Come to an end: no new streams, the old ones told where to go on, requests finished, turns handed over."""
    until = time.monotonic() + options.drain
    app.is_leaving = True
    metrics.set_level("draining", 1)
    server.should_exit = True
    await streams.aclose(options.drain * FINISH)
    await asyncio.wait({serving}, timeout=max(0.1, until - time.monotonic()))
    await house.runtime.drain(max(0.1, until - time.monotonic()))


async def _sweep(server: uvicorn.Server) -> None:
    while True:
        await asyncio.sleep(SWEEP)
        sweep(server.server_state.connections)


@contextlib.contextmanager
def _told_to_leave(leave: asyncio.Event) -> Generator[None]:
    loop = asyncio.get_running_loop()
    caught: list[signal.Signals] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not in the main thread, or on a system without: whoever started us ends us.
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, leave.set)
            caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


@contextlib.contextmanager
def _quiet() -> Generator[None]:
    quiet, logger = _Quiet(), logging.getLogger("uvicorn.error")
    logger.addFilter(quiet)
    try:
        yield
    finally:
        logger.removeFilter(quiet)
