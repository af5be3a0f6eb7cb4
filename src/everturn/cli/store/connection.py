"""Store sharing between processes of one user: one process holds the store and serves it, the others are clients.

The problem: a store is driven by one process (a lock says which), and people open a second terminal. Rejected: to let
several processes drive one store (that takes a fencing token for every write, and is what a cluster is for), and a
daemon of our own (users would have to start, stop and update it).

The invariant: the process that holds the lock of the store serves it at the loopback, and publishes its address beside
the store. A process that wants the store looks for that server and attaches; if there is none, it takes the lock and
serves. It looks again whenever a request or a stream breaks off. So when the process that had the store has exited or
was killed, one of the others takes over, at the same port if that is free, and the rest attach to it: streams continue
where they were, and requests are sent again with their idempotency keys. Turns that ran are continued from their log.

Processes that take the store pass a turnstile, one at a time, which they hold until they serve. `everturn serve` holds
it while it asks a terminal for the store, so no other terminal can take the store first.
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

from everturn.access.auth.authentication import Authenticator
from everturn.access.auth.options import OidcOptions
from everturn.access.context.server_context import ServerContext
from everturn.cli.store.server import (
    StoreServer,
    find_server,
    folder_route,
    remove_server_file,
    server_file,
    store_routes,
    turnstile_path,
    write_server_file,
)
from everturn.client import Server
from everturn.config.server_options import ServerOptions
from everturn.core.tenants.accounts import LOCAL, Principal, User
from everturn.errors import ConfigError, ServerUnavailable, StoreBusy
from everturn.stores.sql.file_lock import FileLock

DRAIN: Final = 2.0  # seconds for turns to reach a point from which they can be continued
RELEASE_TIMEOUT: Final = 15.0  # seconds for a process that has the store without serving it to release it
TAKEOVER_TIMEOUT: Final = 60.0  # seconds for a process that takes the store to start serving
RETRY_INTERVAL: Final = (0.05, 0.25)  # seconds between two attempts, chosen at random
CREDENTIAL: Final = "terminal"

OpenServerContext = Callable[[], AbstractAsyncContextManager[ServerContext]]
ServerMovedCallback = Callable[[bool], None]
"""Called when the server of the store changes: with True if it is this process, False if it is another one."""


class StoreOwnerAuth(Authenticator):
    """Authentication at the process that has a store: accepts the token beside the store, and the credentials of its
    accounts.

    The token is made for this process and ends with it: a client that later sends it to another process at the same
    port gives nothing away.
    """

    def __init__(self, context: ServerContext, token: str, oidc: OidcOptions | None = None) -> None:
        super().__init__(context.accounts, context.app.clock, oidc)
        self._shown = f"Bearer {token}".encode()

    async def authenticate(self, authorization: str | None = None, cookie: str | None = None) -> Principal:
        """Return the owner of the store, by the token beside it; or a user, by an API key or a login.

        Raises:
            NotRecognised: the credentials are unknown.
        """
        if cookie is None and compare_digest((authorization or "").encode(), self._shown):
            return Principal(LOCAL, LOCAL, "operator", CREDENTIAL)
        return await super().authenticate(authorization, cookie)

    async def active_credentials(self, principals: Iterable[Principal]) -> set[str]:
        """Return the credentials that are still valid.

        The token is valid as long as the process; the accounts decide the rest.
        """
        return await super().active_credentials(
            principal for principal in principals if principal.credential != CREDENTIAL
        )


class StoreConnection:
    """Connection of a terminal to the server of its store, which may be this process.

    `place` is the path that the files about the store begin with; None for a store in memory, which no other process
    can have.
    """

    def __init__(self, place: Path | None, open_context: OpenServerContext, *, may_attach: bool = True) -> None:
        self._place, self._open_context, self._may_attach = place, open_context, may_attach
        self.server: Server | None = None
        self.on_moved: ServerMovedCallback | None = None
        self._current: StoreServer | None = None
        self._owner: asyncio.Task[None] | None = None
        self._leave = asyncio.Event()
        self._locating: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def owns_store(self) -> bool:
        """Whether this process has the store."""
        return self._owner is not None and not self._owner.done() and not self._leave.is_set()

    @property
    def address(self) -> str:
        """The address of the server."""
        return "" if self._current is None else self._current.address

    async def connect(self) -> Server:
        """Attach to the server that has the store, or take the store and serve it.

        Raises:
            StoreBusy: the process that has the store does not serve it, or this one must not attach to it.
            ConfigError: something of the configuration is not available here.
        """
        await self._locate()
        assert self.server is not None
        return self.server

    async def aclose(self) -> None:
        """Close the connection and, if this process has the store, release it for other processes."""
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
        """Hand the store over: running turns reach their next step, and the process that takes the store continues
        them."""
        if self._current is not None and self.owns_store:
            self._remove_server_file(self._current.token)  # first, so that no other process attaches
        self._leave.set()

    async def relocate(self) -> None:
        """Find the server again after it did not answer, or become the server.

        Raises:
            ServerUnavailable: the store is in use, and no process serves it.
        """
        if self._is_closed:
            return
        if self._locating is None or self._locating.done():
            self._locating = asyncio.create_task(self._locate_again())
            self._locating.add_done_callback(_retrieve_exception)
        # One caller may be cancelled meanwhile; the others still wait for the result.
        await asyncio.shield(self._locating)

    async def _locate_again(self) -> None:
        self._may_attach = True  # sessions of this terminal are in that store by now
        try:
            await self._locate()
        except StoreBusy as error:
            raise ServerUnavailable(str(error)) from error

    async def _locate(self) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        while not self.owns_store:
            if self._owner is not None:  # this process is releasing the store
                await asyncio.gather(self._owner, return_exceptions=True)
                self._owner = None
            if self._place is None:
                return await self._take()
            server = await find_server(self._place)
            if server is not None and not self._may_attach:
                raise StoreBusy(f"process {server.pid} serves this store at {server.address}")
            if server is not None:
                return self._point_to(server)
            is_starting = False
            try:
                lock = FileLock(turnstile_path(self._place))
            except StoreBusy:
                is_starting = True
            else:
                try:
                    return await self._take()
                except StoreBusy:
                    if loop.time() - started > RELEASE_TIMEOUT:
                        raise
                finally:
                    lock.release()
            if is_starting and loop.time() - started > TAKEOVER_TIMEOUT:
                raise StoreBusy("another process has been starting to serve this store for a minute")
            await asyncio.sleep(random.uniform(*RETRY_INTERVAL))

    def _point_to(self, server: StoreServer) -> None:
        previous, self._current = self._current, server
        if self.server is None:
            self.server = Server(server.address, server.token)
            self.server.node_client.relocate = self.relocate
            return
        self.server.node_client.set_server(server.address, server.token)
        if previous != server and self.on_moved is not None:
            self.on_moved(self.owns_store)

    # Owning the store ------------------------------------------------------------------------------------------------

    async def _take(self) -> None:
        """Take the store, and serve it in a task of its own, which opens and closes all resources."""
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
            raise ConfigError("the server of this process did not start; `everturn doctor` shows why")
        self._owner = owner
        self._point_to(started.result())

    async def _own(self, started: asyncio.Future[StoreServer], leave: asyncio.Event) -> None:
        from everturn.server import serve

        token = new_token()
        async with self._open_context() as context:
            if await context.accounts.user(LOCAL, LOCAL) is None:
                await context.accounts.put_user(User(LOCAL, LOCAL, role="operator", created=context.app.clock.now()))

            def ready(address: str) -> None:
                store_server = StoreServer(address, token, os.getpid(), "terminal")
                if self._place is not None:
                    with suppress(OSError):  # the folder is read-only: this process serves only itself
                        write_server_file(server_file(self._place), store_server)
                started.set_result(store_server)

            routes = [] if self._place is None else store_routes(token, self._place, self.release)
            if context.open_folder is not None:
                routes.append(folder_route(context.open_folder))
            options = ServerOptions(port=self._free_port(), drain=DRAIN)
            try:
                authenticator = StoreOwnerAuth(context, token)
                await serve.serve(context, authenticator, options, ready, routes, leave=leave, catches_signals=False)
            finally:
                self._remove_server_file(token)

    def _remove_server_file(self, token: str) -> None:
        if self._place is not None:
            remove_server_file(server_file(self._place), token)

    def _free_port(self) -> int:
        """Return the port of the previous server if it is free, so that a browser finds this server there; else 0."""
        from everturn.server import serve

        with suppress(ConfigError, ValueError):
            port = (urlsplit(self._current.address).port if self._current is not None else 0) or 0
            serve.listen(ServerOptions(port=port)).close()
            return port
        return 0


def new_token() -> str:
    """Return a random token for one process."""
    return f"evk_{secrets.token_urlsafe(32)}"


def _retrieve_exception(task: asyncio.Task[None]) -> None:
    """Mark the exception of a task as retrieved: its waiters have received it, and without any it does not matter."""
    if not task.cancelled():
        task.exception()
