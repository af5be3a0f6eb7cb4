"""Cluster: many processes that drive the same sessions. PostgreSQL stores them, Restate decides which process drives, NATS
carries live deltas.

    def make(**ports):
        return Runtime("openai:gpt-5.2", tools=[send_mail], **ports)

    async with Cluster(database="postgresql://…", listen="127.0.0.1:9080").join(make) as runtime:
        ...

`everturn worker MODULE:make` does this until it is stopped.

- `workers`: a parent process that starts and restarts workers
- `watchdog`: ends a worker whose event loop is blocked
- `nats_address`: parses addresses of NATS servers
- `ps`: lists active sessions and open gates
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib import import_module
from typing import Protocol

from msgspec import Struct

from everturn import wire
from everturn.cluster.nats_address import is_encrypted, nats_servers
from everturn.cluster.watchdog import LIMIT, LoopWatchdog
from everturn.core.ports import Bus, Engine
from everturn.core.store_ports import Store
from everturn.driver.driver import CAUGHT_TRIES, ActiveDrive
from everturn.errors import ConfigError, UnknownSession
from everturn.runtime import Runtime


class RuntimeFactory(Protocol):
    """Creates a runtime with the given ports."""

    def __call__(self, *, store: Store, bus: Bus, engine: Engine) -> Runtime: ...


class Cluster(Struct, frozen=True):
    """The addresses of a cluster. Without `listen` a process sends commands and reads, and drives nothing."""

    database: str = "postgresql://127.0.0.1:5432/everturn"
    restate: str = "http://127.0.0.1:8080"
    admin: str = "http://127.0.0.1:9070"
    nats: str = "nats://127.0.0.1:4222"  # or several, separated by commas; tls:// for TLS
    listen: str = ""  # host:port on which Restate calls this worker, or fd:N for a shared socket
    writes: int = 0  # the version of the log format to write while workers of an older release still run
    advertise: str = ""  # the address at which Restate reaches the workers, if it differs
    live_bytes: int = 64 * 2**20  # bytes of live text that NATS keeps for late readers, of all sessions
    nats_ca: str = ""  # PEM files: the CA of the servers, and our certificate
    nats_certificate: str = ""
    nats_key: str = ""
    identity_key: str = ""  # publickeyv1_…: with it workers accept only requests that this Restate has signed
    loop_timeout: float = LIMIT  # seconds a worker's event loop may be blocked before the worker ends; 0: no limit

    @asynccontextmanager
    async def join(self, make: RuntimeFactory | Callable[..., Runtime]) -> AsyncGenerator[Runtime]:
        """Join the cluster until the block ends.

        Raises:
            ConfigError: a package is not installed, or an address is invalid.
        """
        try:
            from everturn.bus.nats import NatsBus, tls_context
            from everturn.engine.restate import RestateEngine
            from everturn.stores.sql.store import SqlStore

            for package in ("asyncpg", *(("granian", "restate") if self.listen else ())):
                import_module(package)
        except ModuleNotFoundError as error:
            name = (error.name or "a part of it").partition(".")[0]
            raise ConfigError(f"{name} is not installed; `pip install 'everturn[cluster]'`") from error
        wire.set_write_version(self.writes)
        async with AsyncExitStack() as stack:
            store = SqlStore.postgres(self.database)
            stack.push_async_callback(store.aclose)
            with suppress(UnknownSession):
                await store.head("")  # fail early if the database does not answer
            servers = nats_servers(self.nats)
            tls = tls_context(self.nats_ca, self.nats_certificate, self.nats_key) if is_encrypted(servers) else None
            bus = await NatsBus.connect(servers, max_bytes=self.live_bytes, tls=tls)
            stack.push_async_callback(bus.aclose)
            engine = RestateEngine(
                ingress=self.restate,
                admin=self.admin,
                listen=parse_listen_address(self.listen),
                advertise=self.advertise or None,
                identity_key=self.identity_key or None,
            )
            try:
                runtime = make(store=store, bus=bus, engine=engine)
            except TypeError as error:
                raise ConfigError(f"{make!r} does not make a Runtime of store, bus and engine: {error}") from error
            if not isinstance(runtime, Runtime):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise ConfigError(f"{make!r} made {runtime!r}, and not a Runtime")
            stack.push_async_callback(runtime.aclose)
            await runtime.start()
            yield runtime

    async def work(
        self, make: RuntimeFactory | Callable[..., Runtime], ready: Callable[[], None] | None = None
    ) -> None:
        """Drive sessions until SIGTERM or SIGINT; then finish the running steps, and leave."""
        async with self.join(make) as runtime:
            watchdog = LoopWatchdog(self.loop_timeout, self._on_blocked)
            watchdog.start()
            try:
                await runtime.serve_until_signal(ready)
            finally:
                watchdog.stop()

    def _on_blocked(self, driven: ActiveDrive | None) -> None:
        """Record which session blocked the event loop, so that it is quarantined and no other session is suspected."""
        if driven is not None:
            asyncio.run(self._record_blocking_drive(driven))

    async def _record_blocking_drive(self, driven: ActiveDrive) -> None:
        from everturn.stores.sql.store import SqlStore

        store = SqlStore.postgres(self.database)
        try:
            await store.release(driven.session, driven.epoch, max(driven.tries, CAUGHT_TRIES))
        finally:
            await store.aclose()


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
        raise ConfigError(f"{listen!r} is no address to listen on; for example 127.0.0.1:9080")
    return host.strip("[]"), int(port)
