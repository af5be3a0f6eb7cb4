"""Store handover: attach to a store that another process serves, or ask a terminal to release it.

`everturn run --store …` beside an open terminal is a client of that terminal. `everturn serve` does not share: it has an
address, users and a configuration of its own, so it asks the terminal to hand the store over, and the terminal becomes a
client of it. See `store_connection` for the whole.
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

from everturn.access.access import House
from everturn.cli.store_connection import LEAVING, LOOK, STARTING, OpenHouse, new_token
from everturn.cli.store_server import (
    StoreServer,
    ask_to_release,
    find_server,
    remove_server_file,
    server_file,
    store_routes,
    turnstile,
    write_server_file,
)
from everturn.client import Server
from everturn.errors import ServerUnavailable, StoreBusy
from everturn.stores.sql.holding import Hold

log = logging.getLogger(__name__)

ASKED: Final = 5  # times that a terminal is asked for the store


class Attached(Struct):
    """A client of the process that has a store."""

    server: Server
    address: str
    pid: int


@asynccontextmanager
async def attach(place: Path, busy: StoreBusy) -> AsyncGenerator[Attached]:
    """The server of the process that has the store; when that one goes, of whoever takes the store then.

    Raises:
        StoreBusy: `busy`: it does not serve the store.
    """
    found = await _find(place, STARTING if _is_held(turnstile(place)) else 0.0)
    if found is None:
        raise busy
    async with Server(found.address, found.token) as server:

        async def relocate() -> None:
            again = await _find(place, LEAVING)
            if again is None:
                raise ServerUnavailable(f"process {found.pid} had the store, and has gone; what it was told is kept")
            server.speaker.point_to(again.address, again.token)

        server.speaker.relocate = relocate
        yield Attached(server, found.address, found.pid)


async def _find(place: Path, patience: float) -> StoreServer | None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while True:
        found = await find_server(place)
        if found is not None or loop.time() - begun >= patience:
            return found
        await asyncio.sleep(random.uniform(*LOOK))


def _is_held(path: Path) -> bool:
    try:
        Hold(path).let_go()
    except StoreBusy:
        return True
    return False


class TakenStore:
    """A store that `everturn serve` has taken: its house, and what other processes need to find its server."""

    def __init__(self, house: House, place: Path, gate: ExitStack) -> None:
        self.house, self.token = house, new_token()
        self.routes = store_routes(self.token, place)
        self._file, self._gate = server_file(place), gate

    def served_at(self, address: str) -> None:
        """Leave the address beside the store; other processes may look for it now."""
        try:
            write_server_file(self._file, StoreServer(address, self.token, os.getpid(), "serve"))
        except OSError as error:
            log.warning("%s cannot be written, so terminals do not find this server: %s", self._file, error.strerror)
        self._gate.close()

    def close(self) -> None:
        """Take it back."""
        remove_server_file(self._file, self.token)
        self._gate.close()


@asynccontextmanager
async def take_store(place: Path, open_house: OpenHouse) -> AsyncGenerator[TakenStore]:
    """A house on a store, also where a terminal has it: that one is asked to hand it over, and becomes a client.

    Raises:
        StoreBusy: another `everturn serve` has it, or a program that does not serve it.
        ConfigError: what is configured cannot be had here.
    """
    async with AsyncExitStack() as stack:
        with ExitStack() as gate:
            gate.callback((await _pass_turnstile(place)).let_go)
            taken = TakenStore(await _open_or_ask(place, open_house, stack), place, gate.pop_all())
        stack.callback(taken.close)
        yield taken


async def _pass_turnstile(place: Path) -> Hold:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    while True:
        try:
            return Hold(turnstile(place))
        except StoreBusy:
            if loop.time() - begun > STARTING:
                raise
            await asyncio.sleep(random.uniform(*LOOK))


async def _open_or_ask(place: Path, open_house: OpenHouse, stack: AsyncExitStack) -> House:
    loop = asyncio.get_running_loop()
    begun, asked = loop.time(), 0
    while True:
        try:
            return await stack.enter_async_context(open_house())
        except StoreBusy as error:
            found = await find_server(place)
            if found is not None and found.kind != "terminal":
                where = f"`everturn serve` (process {found.pid}) has this store, at {found.address}"
                how = "use that server, stop that one first, or give this one a file of its own"
                raise StoreBusy(f"{where}; {how}") from error
            if found is not None and asked < ASKED and await ask_to_release(found):
                begun, asked = loop.time(), asked + 1
            elif loop.time() - begun > LEAVING:
                raise
            await asyncio.sleep(random.uniform(*LOOK))
