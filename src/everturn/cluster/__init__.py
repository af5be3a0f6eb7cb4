"""Many processes that drive the same sessions: PostgreSQL keeps them, Restate says who drives, NATS shows the live edge.

    def make(**ports):
        return Runtime("openai:gpt-5.2", tools=[send_mail], **ports)

    async with Cluster(database="postgresql://…", listen="127.0.0.1:9080").join(make) as runtime:
        ...

`everturn worker MODULE:make` is this, and stays until it is told to leave.
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
from everturn.core.ports import Bus, Engine, Store
from everturn.errors import ConfigError, UnknownSession
from everturn.turn.driver import CAUGHT, Driven
from everturn.wiring import Runtime


class Make(Protocol):
    """Makes a runtime on the ports it is given."""

    def __call__(self, *, store: Store, bus: Bus, engine: Engine) -> Runtime: ...


class Cluster(Struct, frozen=True):
    """Where the parts of a cluster are. One that does not `listen` sends commands and reads, and drives nothing."""

    database: str = "postgresql://127.0.0.1:5432/everturn"
    restate: str = "http://127.0.0.1:8080"
    admin: str = "http://127.0.0.1:9070"
    nats: str = "nats://127.0.0.1:4222"  # or several, with commas between them; tls:// for TLS
    listen: str = ""  # host:port on which Restate calls this worker, or fd:N for a socket it shares with others
    writes: int = 0  # the version of the log format to write while workers of an older release still run
    advertise: str = ""  # the address Restate knows the workers by, where that is another one
    live_bytes: int = 64 * 2**20  # of live text that NATS keeps for readers that come late, of all sessions
    nats_ca: str = ""  # files in PEM: who vouches for the servers, and who we are
    nats_certificate: str = ""
    nats_key: str = ""
    identity_key: str = ""  # publickeyv1_…: with it workers obey only the Restate that signs its requests so
    loop_timeout: float = LIMIT  # seconds a worker's event loop may stand still before the worker ends; 0: for ever

    @asynccontextmanager
    async def join(self, make: Make | Callable[..., Runtime]) -> AsyncGenerator[Runtime]:
        """Be a part of it until the block ends.

        Raises:
            ConfigError: what it needs is not installed, or an address makes no sense.
        """
        try:
            from everturn.bus.nats import NatsBus, encrypted
            from everturn.engine.restate import RestateEngine
            from everturn.stores.sql.store import SqlStore

            for needed in ("asyncpg", *(("granian", "restate") if self.listen else ())):
                import_module(needed)
        except ModuleNotFoundError as error:
            name = (error.name or "a part of it").partition(".")[0]
            raise ConfigError(f"{name} is not installed; `pip install 'everturn[cluster]'`") from error
        wire.write_as(self.writes)
        async with AsyncExitStack() as stack:
            store = SqlStore.postgres(self.database)
            stack.push_async_callback(store.aclose)
            with suppress(UnknownSession):
                await store.head("")  # a database that is not there is better known now
            servers = nats_servers(self.nats)
            tls = encrypted(self.nats_ca, self.nats_certificate, self.nats_key) if is_encrypted(servers) else None
            bus = await NatsBus.connect(servers, max_bytes=self.live_bytes, tls=tls)
            stack.push_async_callback(bus.aclose)
            engine = RestateEngine(
                ingress=self.restate,
                admin=self.admin,
                listen=address(self.listen),
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

    async def work(self, make: Make | Callable[..., Runtime], ready: Callable[[], None] | None = None) -> None:
        """Drive sessions until SIGTERM or SIGINT; then bring the steps under way to their ends, and leave."""
        async with self.join(make) as runtime:
            watchdog = LoopWatchdog(self.loop_timeout, self._caught)
            watchdog.start()
            try:
                await runtime.work(ready)
            finally:
                watchdog.stop()

    def _caught(self, driven: Driven | None) -> None:
        """Write down which session stopped the event loop, so that it rests and its neighbours are not suspected."""
        if driven is not None:
            asyncio.run(self._accuse(driven))

    async def _accuse(self, driven: Driven) -> None:
        from everturn.stores.sql.store import SqlStore

        store = SqlStore.postgres(self.database)
        try:
            await store.release(driven.session, driven.epoch, max(driven.tries, CAUGHT))
        finally:
            await store.aclose()


def address(listen: str) -> tuple[str, int] | socket.socket | None:
    """Where to listen, from a text.

    Raises:
        ConfigError: it is none.
    """
    if not listen:
        return None
    if listen.startswith("fd:") and listen[3:].isdecimal():
        return socket.socket(fileno=int(listen[3:]))
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{listen!r} is no address to listen on; for example 127.0.0.1:9080")
    return host.strip("[]"), int(port)
