"""Store handover: attach to a store that another process serves, or ask a terminal to release it.

`everturn run --store …` beside an open terminal is a client of that terminal. `everturn serve` does not share: it has
an address, users and a configuration of its own, so it asks the terminal to hand the store over, and the terminal
becomes a client of it. `cli.store.connection` describes the whole.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from everturn.access.context.server_context import ServerContext
from everturn.cli.store.connection import (
    RELEASE_TIMEOUT,
    RETRY_INTERVAL,
    TAKEOVER_TIMEOUT,
    OpenServerContext,
    new_token,
)
from everturn.cli.store.server import (
    StoreServer,
    ask_to_release,
    find_server,
    remove_server_file,
    server_file,
    store_routes,
    turnstile_path,
    write_server_file,
)
from everturn.client import Server
from everturn.errors import ServerUnavailable, StoreBusy
from everturn.stores.sql.file_lock import FileLock

log = logging.getLogger(__name__)

MAX_RELEASE_REQUESTS: Final = 5  # times that a terminal is asked to release the store


class StoreClient(Struct):
    """A client of the process that has a store."""

    server: Server
    address: str
    pid: int


@asynccontextmanager
async def attach(place: Path, busy: StoreBusy) -> AsyncGenerator[StoreClient]:
    """Connect to the process that has the store; when it exits, to the process that takes over.

    Raises:
        StoreBusy: that process does not serve the store; the error is `busy`.
    """
    owner = await _find(place, TAKEOVER_TIMEOUT if _is_held(turnstile_path(place)) else 0.0)
    if owner is None:
        raise busy
    async with Server(owner.address, owner.token) as server:

        async def relocate() -> None:
            successor = await _find(place, RELEASE_TIMEOUT)
            if successor is None:
                raise ServerUnavailable(
                    f"process {owner.pid}, which had the store, has ended; the messages that it accepted are stored"
                )
            server.node_client.set_server(successor.address, successor.token)

        server.node_client.relocate = relocate
        yield StoreClient(server, owner.address, owner.pid)


async def _find(place: Path, max_wait: float) -> StoreServer | None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    while True:
        server = await find_server(place)
        if server is not None or loop.time() - started >= max_wait:
            return server
        await asyncio.sleep(random.uniform(*RETRY_INTERVAL))


def _is_held(path: Path) -> bool:
    try:
        FileLock(path).release()
    except StoreBusy:
        return True
    return False


class TakenOverStore:
    """A store that `everturn serve` has taken: its server context, and what other processes need to find the server."""

    def __init__(self, context: ServerContext, place: Path, gate: ExitStack) -> None:
        self.context, self.token = context, new_token()
        self.routes = store_routes(self.token, place)
        self._file, self._gate = server_file(place), gate

    def publish_address(self, address: str) -> None:
        """Publish the address beside the store; other processes may look for it now."""
        try:
            write_server_file(self._file, StoreServer(address, self.token, os.getpid(), "serve"))
        except OSError as error:
            log.warning("%s cannot be written, so terminals cannot find this server: %s", self._file, error.strerror)
        self._gate.close()

    def close(self) -> None:
        """Remove the published address."""
        remove_server_file(self._file, self.token)
        self._gate.close()


@asynccontextmanager
async def take_store(place: Path, open_context: OpenServerContext) -> AsyncGenerator[TakenOverStore]:
    """Open a server context on a store. If a terminal has the store, it is asked to release it, and becomes a client.

    Raises:
        StoreBusy: another `everturn serve` has the store, or a program that does not serve it.
        ConfigError: something of the configuration is not available here.
    """
    async with AsyncExitStack() as stack:
        with ExitStack() as turnstile_stack:
            turnstile_stack.callback((await _pass_turnstile(place)).release)
            taken = TakenOverStore(await _open_or_ask(place, open_context, stack), place, turnstile_stack.pop_all())
        stack.callback(taken.close)
        yield taken


async def _pass_turnstile(place: Path) -> FileLock:
    loop = asyncio.get_running_loop()
    started = loop.time()
    while True:
        try:
            return FileLock(turnstile_path(place))
        except StoreBusy:
            if loop.time() - started > TAKEOVER_TIMEOUT:
                raise
            await asyncio.sleep(random.uniform(*RETRY_INTERVAL))


async def _open_or_ask(place: Path, open_context: OpenServerContext, stack: AsyncExitStack) -> ServerContext:
    loop = asyncio.get_running_loop()
    started, requests = loop.time(), 0
    while True:
        try:
            return await stack.enter_async_context(open_context())
        except StoreBusy as error:
            owner = await find_server(place)
            if owner is not None and owner.kind != "terminal":
                where = f"`everturn serve` (process {owner.pid}) has this store, at {owner.address}"
                advice = "use that server, stop that one first, or give this one a file of its own"
                raise StoreBusy(f"{where}; {advice}") from error
            if owner is not None and requests < MAX_RELEASE_REQUESTS and await ask_to_release(owner):
                started, requests = loop.time(), requests + 1
            elif loop.time() - started > RELEASE_TIMEOUT:
                raise
            await asyncio.sleep(random.uniform(*RETRY_INTERVAL))
