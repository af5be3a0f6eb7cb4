"""Store sharing between processes of one user: one process holds the store and serves it, the others are clients.

The problem: a store is driven by one process (a lock says which), and people open a second terminal. Rejected: to let
several processes drive one store (that takes a fencing token for every write, and is what a cluster is for), and a daemon
of our own (somebody has to start, stop and update it).

The invariant: whoever holds the lock of the store serves it at the loopback, and says where beside the store. A process
that wants the store looks for that server and attaches; where there is none it takes the lock and serves. It looks again
whenever a request or a stream breaks off, so when the process that had the store has left or was killed, one of the others
takes over, at the same port if that is free, and the rest attach to it: streams go on where they were, requests are sent
again with their keys. Turns that ran are continued from their log.

Takers pass a turnstile, one at a time, which they hold until they serve. `everturn serve` holds it while it asks a
terminal for the store, so no other terminal is quicker.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress
from hmac import compare_digest
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from everturn.access.access import House
from everturn.access.entrance import Entrance
from everturn.access.options import OidcOptions
from everturn.cli.store_server import (
    StoreServer,
    find_server,
    remove_server_file,
    server_file,
    store_routes,
    turnstile,
    write_server_file,
)
from everturn.client import Server
from everturn.config.options import ServerOptions
from everturn.core.accounts import LOCAL, Principal, User
from everturn.errors import ConfigError, ServerUnavailable, StoreBusy
from everturn.stores.sql.holding import Hold

DRAIN: Final = 2.0  # seconds that turns have to come to a place where they can be continued
LEAVING: Final = 15.0  # seconds for a process that has the store and does not serve it to let it go
STARTING: Final = 60.0  # seconds for a process that is taking the store to serve it
LOOK: Final = (0.05, 0.25)  # seconds between two looks
CREDENTIAL: Final = "terminal"

OpenHouse = Callable[[], AbstractAsyncContextManager[House]]
Moved = Callable[[bool], None]
"""Told that the store is now served by this process (True), or by another one."""


class Door(Entrance):
    """The entrance of the process that has a store: the token that it left beside it, and what its accounts know.

    The token is made for this process and ends with it: a client that goes on to show it to whoever has the port
    afterwards gives nothing away.
    """

    def __init__(self, house: House, token: str, oidc: OidcOptions | None = None) -> None:
        super().__init__(house.accounts, house.runtime.clock, oidc)
        self._shown = f"Bearer {token}".encode()

    async def recognise(self, authorization: str | None = None, cookie: str | None = None) -> Principal:
        """The owner of the store, by the token beside it; or a user, by a key or a login.

        Raises:
            NotRecognised: anybody else.
        """
        if cookie is None and compare_digest((authorization or "").encode(), self._shown):
            return Principal(LOCAL, LOCAL, "operator", CREDENTIAL)
        return await super().recognise(authorization, cookie)

    async def standing(self, principals: Iterable[Principal]) -> set[str]:
        """The token holds as long as the process; the rest is for the accounts to say."""
        return await super().standing(one for one in principals if one.credential != CREDENTIAL)


class StoreConnection:
    """The connection of a terminal to the server of its store, which may be this process.

    `place` is where the files about the store are; None: nobody else can have it, for it is in memory.
    """

    def __init__(self, place: Path | None, open_house: OpenHouse, *, may_attach: bool = True) -> None:
        self._place, self._open_house, self._may_attach = place, open_house, may_attach
        self.server: Server | None = None
        self.moved: Moved | None = None
        self._at: StoreServer | None = None
        self._owner: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._locating: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def is_here(self) -> bool:
        """Whether this process has the store."""
        return self._owner is not None and not self._owner.done() and not self._leave.is_set()

    @property
    def address(self) -> str:
        """Where the server is."""
        return "" if self._at is None else self._at.address

    async def connect(self) -> Server:
        """Attach to the server that has the store, or take the store and serve it.

        Raises:
            StoreBusy: a process has it that does not serve it, or one that must not be attached to.
            ConfigError: what is configured cannot be had here.
        """
        await self._locate()
        assert self.server is not None
        return self.server

    async def aclose(self) -> None:
        """Let go of the connection and, if it is here, of the store: another process can have it then."""
        self._is_closed = True
        if self._locating is not None:
            self._locating.cancel()
            await asyncio.gather(self._locating, return_exceptions=True)
        if self.server is not None:
            await self.server.aclose()
        self.release()
        if self._owner is not None:
            await asyncio.gather(self._owner, return_exceptions=True)

    def release(self) -> None:
        """Hand the store over: what runs comes to its next step, and whoever takes the store continues it."""
        if self._at is not None and self.is_here:
            self._take_back(self._at.token)  # first: nobody else shall come
        self._leave.set()

    async def relocate(self) -> None:
        """Find the server again, after it did not answer; or be it.

        Raises:
            ServerUnavailable: the store is in use, and nobody serves it.
        """
        if self._is_closed:
            return
        if self._locating is None or self._locating.done():
            self._locating = asyncio.create_task(self._locate_again())
            self._locating.add_done_callback(_seen)
        # Whoever asked may be cancelled meanwhile; the others still want to know.
        await asyncio.shield(self._locating)

    async def _locate_again(self) -> None:
        self._may_attach = True  # by now sessions of this terminal are in that store
        try:
            await self._locate()
        except StoreBusy as error:
            raise ServerUnavailable(str(error)) from error

    async def _locate(self) -> None:
        loop = asyncio.get_running_loop()
        begun = loop.time()
        while not self.is_here:
            if self._owner is not None:  # it is on its way out
                await asyncio.gather(self._owner, return_exceptions=True)
                self._owner = None
            if self._place is None:
                return await self._take()
            found = await find_server(self._place)
            if found is not None and not self._may_attach:
                raise StoreBusy(f"process {found.pid} serves this store at {found.address}")
            if found is not None:
                return self._point(found)
            is_starting = False
            try:
                gate = Hold(turnstile(self._place))
            except StoreBusy:
                is_starting = True
            else:
                try:
                    return await self._take()
                except StoreBusy:
                    if loop.time() - begun > LEAVING:
                        raise
                finally:
                    gate.let_go()
            if is_starting and loop.time() - begun > STARTING:
                raise StoreBusy("another process has been starting to serve this store for a minute")
            await asyncio.sleep(random.uniform(*LOOK))

    def _point(self, found: StoreServer) -> None:
        before, self._at = self._at, found
        if self.server is None:
            self.server = Server(found.address, found.token)
            self.server.speaker.relocate = self.relocate
            return
        self.server.speaker.point_to(found.address, found.token)
        if before != found and self.moved is not None:
            self.moved(self.is_here)

    # To have the store ---------------------------------------------------------------------------------------------------

    async def _take(self) -> None:
        """Take the store, and serve it in a task of its own: that one opens and closes everything."""
        self._leave = asyncio.Event()
        started: asyncio.Future[StoreServer] = asyncio.get_running_loop().create_future()
        owner = asyncio.create_task(self._own(started, self._leave))
        try:
            await asyncio.wait({owner, started}, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            self._leave.set()
            await asyncio.gather(owner, return_exceptions=True)
            raise
        if owner.done():
            owner.result()
            raise ConfigError("the server of this process did not start; `everturn doctor` says more")
        self._owner = owner
        self._point(started.result())

    async def _own(self, started: asyncio.Future[StoreServer], leave: asyncio.Event) -> None:
        from everturn.server import serving

        token = new_token()
        async with self._open_house() as house:
            if await house.accounts.user(LOCAL, LOCAL) is None:
                await house.accounts.put_user(User(LOCAL, LOCAL, role="operator", created=house.runtime.clock.now()))

            def ready(address: str) -> None:
                at = StoreServer(address, token, os.getpid(), "terminal")
                if self._place is not None:
                    with suppress(OSError):  # a folder that cannot be written to: it serves itself alone
                        write_server_file(server_file(self._place), at)
                started.set_result(at)

            routes = [] if self._place is None else store_routes(token, self._place, self.release)
            options = ServerOptions(port=self._free_port(), drain=DRAIN)
            try:
                door = Door(house, token)
                await serving.serve(house, door, options, ready, routes, leave=leave, catches_signals=False)
            finally:
                self._take_back(token)

    def _take_back(self, token: str) -> None:
        if self._place is not None:
            remove_server_file(server_file(self._place), token)

    def _free_port(self) -> int:
        """The port of the server before, if nobody has taken it: a browser that was there finds us by it."""
        from everturn.server import serving

        with suppress(ConfigError, ValueError):
            port = (urlsplit(self._at.address).port if self._at is not None else 0) or 0
            serving.listen(ServerOptions(port=port)).close()
            return port
        return 0


def new_token() -> str:
    """A token for one process."""
    return f"evk_{secrets.token_urlsafe(32)}"


def _seen(task: asyncio.Task[None]) -> None:
    """Whoever waited has been told; if nobody did, it is no news."""
    if not task.cancelled():
        task.exception()
