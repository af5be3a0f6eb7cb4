"""Cluster: many processes that drive the same sessions. PostgreSQL stores them, decides which process drives, and carries
live deltas; Restate (or Temporal) and NATS do the last two in a larger cluster.

    def make(**ports):
        return App("openai:gpt-5.2", tools=[send_mail], **ports)

    async with Cluster(database="postgresql://…").join(make, drives=True) as runtime:
        ...

`everturn worker MODULE:make` does this until it is stopped.

- `workers`: a parent process that starts and restarts workers
- `nats_address`: parses addresses of NATS servers
- `ps`: lists active sessions and open gates
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from typing import Any, TypeVar

from msgspec import Struct

from everturn import wire
from everturn.base_app import BaseApp
from everturn.cluster.nats_address import is_encrypted, nats_servers
from everturn.core.ports import Bus, Engine
from everturn.errors import ConfigError, UnknownSession
from everturn.shared_database import SharedDatabase, blocked_drive_recorder
from everturn.watchdog import LIMIT, LoopWatchdog

AppT = TypeVar("AppT", bound=BaseApp)
AppFactory = Callable[..., AppT]
"""Makes an app of `store`, `bus` and `engine`."""


class Cluster(Struct, frozen=True):
    """The addresses of a cluster. Without `restate` or `temporal` its engine is PostgreSQL, and without `nats` its bus.

    With Restate, a process without `listen` sends commands and reads, and drives nothing.
    """

    database: str = "postgresql://127.0.0.1:5432/everturn"
    restate: str = ""  # the ingress, such as http://127.0.0.1:8080; of several nodes, separated by commas
    admin: str = "http://127.0.0.1:9070"
    nats: str = ""  # nats://127.0.0.1:4222, or several, separated by commas; tls:// for TLS
    listen: str = ""  # host:port on which Restate calls this worker, or fd:N for a shared socket
    writes: int = 0  # the version of the log format to write while workers of an older release still run
    advertise: str = ""  # the address at which Restate reaches the workers, if it differs
    live_bytes: int = 64 * 2**20  # bytes of live text that NATS keeps for late readers, of all sessions
    nats_ca: str = ""  # PEM files: the CA of the servers, and our certificate
    nats_certificate: str = ""
    nats_key: str = ""
    identity_key: str = ""  # publickeyv1_…: with it workers accept only requests that this Restate has signed
    loop_timeout: float = LIMIT  # seconds a worker's event loop may be blocked before the worker ends; 0: no limit
    temporal: str = ""  # temporal://127.0.0.1:7233, or tls://host:7233 for TLS
    temporal_namespace: str = "default"
    temporal_api_key: str = ""  # of Temporal Cloud
    temporal_ca: str = ""  # PEM files: the CA of the server, and our certificate
    temporal_certificate: str = ""
    temporal_key: str = ""
    heartbeat_timeout: float = 10.0  # seconds a worker may be silent before Temporal gives its sessions to another one

    @asynccontextmanager
    async def join(self, make: AppFactory[AppT], *, drives: bool = False) -> AsyncGenerator[AppT]:
        """Join the cluster until the block ends, and with `drives` drive its sessions; with Restate `listen` decides.

        Raises:
            ConfigError: a package is not installed, or an address is invalid.
        """
        if self.restate and self.temporal:
            raise ConfigError("a cluster has one engine: set `restate` or `temporal`, not both")
        try:
            from everturn.stores.sql.store import SqlStore

            for package in self._packages():
                import_module(package)
        except ModuleNotFoundError as error:
            name = (error.name or "a part of it").partition(".")[0]
            extra = "temporal" if name == "temporalio" else "cluster"
            raise ConfigError(f"{name} is not installed; `pip install 'everturn[{extra}]'`") from error
        wire.set_write_version(self.writes)
        async with AsyncExitStack() as stack:
            store = SqlStore.postgres(self.database)
            stack.push_async_callback(store.aclose)
            with suppress(UnknownSession):
                await store.head("")  # fail early if the database does not answer
            shared = SharedDatabase(self.database)
            bus = await self._open_bus(shared, stack)
            engine = self._open_engine(shared, drives)
            try:
                app = make(store=store, bus=bus, engine=engine)
            except TypeError as error:
                raise ConfigError(f"{make!r} cannot create an App from store, bus and engine: {error}") from error
            if not isinstance(app, BaseApp):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"{make!r} made {app!r}, and not an App")
            stack.push_async_callback(app.aclose)
            await app.start()
            yield app

    def _packages(self) -> list[str]:
        restate = ["granian", "restate"] if self.listen and self.restate else []
        temporal = ["temporalio"] if self.temporal else []
        return [
            "asyncpg",
            *(["nats"] if self.nats else []),
            *(["aiohttp"] if self.restate else []),
            *restate,
            *temporal,
        ]

    async def _open_bus(self, shared: SharedDatabase, stack: AsyncExitStack) -> Bus:
        if not self.nats:
            bus = shared.bus()
        else:
            from everturn.bus.nats import NatsBus, tls_context

            servers = nats_servers(self.nats)
            tls = tls_context(self.nats_ca, self.nats_certificate, self.nats_key) if is_encrypted(servers) else None
            bus = await NatsBus.connect(servers, max_bytes=self.live_bytes, tls=tls)
        stack.push_async_callback(bus.aclose)
        return bus

    def _open_engine(self, shared: SharedDatabase, drives: bool) -> Engine:
        if self.temporal:
            return self._temporal_engine(drives)
        if not self.restate:
            return shared.engine(drives=drives, loop_timeout=0.0)  # `work` has a watchdog of its own
        from everturn.engine.restate import RestateEngine

        return RestateEngine(
            ingress=self.restate,
            admin=self.admin,
            listen=parse_listen_address(self.listen),
            advertise=self.advertise or None,
            identity_key=self.identity_key or None,
        )

    def _temporal_engine(self, drives: bool) -> Engine:
        from everturn.engine.temporal import TemporalAddress, TemporalEngine

        address = TemporalAddress(
            self.temporal,
            self.temporal_namespace,
            self.temporal_api_key,
            self.temporal_ca,
            self.temporal_certificate,
            self.temporal_key,
        )
        return TemporalEngine(address, drives=drives, heartbeat_timeout=self.heartbeat_timeout)

    async def work(self, make: AppFactory[Any], ready: Callable[[], None] | None = None) -> None:
        """Drive sessions until SIGTERM or SIGINT; then finish the running steps, and leave."""
        async with self.join(make, drives=True) as app:
            watchdog = LoopWatchdog(self.loop_timeout, blocked_drive_recorder(self.database))
            watchdog.start()
            try:
                await app.serve_until_signal(ready)
            finally:
                watchdog.stop()


def parse_listen_address(listen: str) -> tuple[str, int] | socket.socket | None:
    """Parse the address to listen on.

    Raises:
        ConfigError: the address is invalid.
    """
    if not listen:
        return None
    if listen.startswith("fd:") and listen[3:].isdecimal():
        return socket.socket(fileno=int(listen[3:]))
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{listen!r} is not an address to listen on; for example 127.0.0.1:9080")
    return host.strip("[]"), int(port)
