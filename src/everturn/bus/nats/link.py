"""A connection that is made again for ever.

The client's own way of reconnecting keeps what it could not send and promises nothing about it. Here a lost connection
is simply gone: whoever uses the link is told of every new one, and does then what it did for the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, cast

from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.errors import Error as NatsError

from everturn.errors import ConfigError

log = logging.getLogger(__name__)

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two tries to connect
PING = 5  # seconds between two looks whether the server is there; after two it did not answer, it is not
GLANCE = 1.0  # seconds after which a connection is looked at, should its end not have been announced
PENDING = 2 * 2**20  # bytes the client holds before whoever writes must wait


class Tasks:
    """What runs for one bus, and ends with it."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else."""
        if self._is_closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A connection that went while it was used; the next one makes up for it.
            log.debug("NATS: something was not finished: %r", error)

    async def aclose(self) -> None:
        """End all of it."""
        self._is_closed = True
        while self._running:
            # More than once: the client swallows a cancellation that comes while it sends.
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running, timeout=2.0)


class EncryptedClient(Client):
    """A client that says nothing to a server before the connection is encrypted.

    nats-py encrypts when the server's first line asks for it, and otherwise goes on in clear, `tls://` or not: whoever sits in
    between would only have to change that line. What it sends first, the name and password included, is made by this method
    (nats-py 2.10 to 2.16); without it `encrypted` below refuses.
    """

    def _connect_command(self) -> bytes:
        if not self._server_info.get("tls_required"):
            raise NatsError("nats: the server does not offer TLS, and tls:// was asked for")
        return super()._connect_command()


def encrypted(ca: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """How a server must show who it is, and how we do; names of files in PEM.

    Raises:
        ConfigError: a file cannot be read, or this nats-py cannot be held to TLS.
    """
    if not hasattr(Client, "_connect_command"):
        raise ConfigError("this version of nats-py cannot be held to TLS; install nats-py 2.10 to 2.16")
    try:
        context = ssl.create_default_context(cafile=ca or None)
        if certificate:
            context.load_cert_chain(certificate, key or None)
    except (OSError, ssl.SSLError) as error:
        named = ", ".join(name for name in (ca, certificate, key) if name)
        raise ConfigError(f"the files for TLS with NATS cannot be used ({named}): {error}") from None
    return context


class Link:
    """Keeps one connection, or none for as long as there is none to be had."""

    def __init__(
        self,
        servers: str | list[str],
        on_up: Callable[[Client], Awaitable[None]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._servers, self._on_up, self._tls = servers, on_up, tls
        self.nc: Client | None = None
        self.was_up = asyncio.Event()
        self._has_complained = False

    def complain(self, what: str, error: object) -> None:
        """Say what is wrong: once, until a connection was made again."""
        if not self._has_complained:
            self._has_complained = True
            log.warning("NATS: %s (%r); readers here make up for it from the log", what, error)

    async def run(self) -> None:
        """Connect, and again whenever that connection is lost; it ends when it is cancelled."""
        pause = FIRST_PAUSE
        while True:
            nc, is_lost = Client() if self._tls is None else EncryptedClient(), asyncio.Event()
            try:
                await self._connect(nc, is_lost)
                self.nc, self._has_complained = nc, False
                pause = FIRST_PAUSE
                await self._on_up(nc)
                self.was_up.set()
                while not nc.is_closed:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(is_lost.wait(), GLANCE)
            except Exception as error:
                self.complain("there is no connection", error)
            finally:
                self.nc = None
                await _close(nc)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _connect(self, nc: Client, is_lost: asyncio.Event) -> None:
        async def lost() -> None:
            self.nc = None if self.nc is nc else self.nc
            is_lost.set()

        async def failed(error: Exception) -> None:
            self.complain("the connection is in trouble", error)

        await nc.connect(
            servers=self._servers,
            error_cb=failed,
            closed_cb=lost,
            allow_reconnect=False,
            max_reconnect_attempts=1,  # of one try; the tries are ours
            reconnect_time_wait=0,
            connect_timeout=2,
            ping_interval=PING,
            max_outstanding_pings=2,
            no_echo=True,
            pending_size=PENDING,
            skip_subject_validation=True,  # ours are made of plain tokens only
            name="everturn",
            tls=self._tls,
        )


async def _close(nc: Client) -> None:
    try:
        async with asyncio.timeout(1.0):
            await nc.close()
    except Exception as error:  # it is gone either way
        log.debug("NATS: a connection did not close well: %r", error)


class _Sink:
    """Stands where the client keeps a queue for a subscription, and hands messages on as they are parsed."""

    def __init__(self, subscription: Any, heard: Callable[[bytes], None]) -> None:
        self._subscription, self._heard = subscription, heard

    def put_nowait(self, message: Msg) -> None:
        data = message.data
        self._subscription._pending_size -= len(data)  # what the client counts as waiting, and it does not
        try:
            self._heard(data)
        except Exception:  # the client would stop reading
            log.exception("NATS: a message could not be taken")

    def empty(self) -> bool:
        return True

    def qsize(self) -> int:
        return 0


async def subscribe(nc: Client, subject: str, heard: Callable[[bytes], None]) -> Subscription:
    """Hear a subject; `heard` is given one message after the other.

    The client would have a queue and a task for every subscription, which is a third of what a message costs to read
    and most of what a turn costs that says nothing. It has no option for it, so the queue is replaced (nats-py 2.10 to
    2.16). May go when nats-py calls a plain function; until then a client that keeps its queue elsewhere is given
    a coroutine.
    """

    async def one(message: Msg) -> None:
        heard(message.data)

    # Of all that the client takes, one parameter we never give has half a type.
    hear = cast("Callable[..., Awaitable[Any]]", nc.subscribe)  # pyright: ignore[reportUnknownMemberType]
    subscription = await hear(subject)
    early = getattr(subscription, "_pending_queue", None)
    if early is None:
        await subscription.unsubscribe()
        return await hear(subject, cb=one)
    subscription._pending_queue = _Sink(subscription, heard)
    while not early.empty():
        await one(early.get_nowait())
    return subscription


async def publish(nc: Client, messages: Sequence[tuple[str, bytes]]) -> None:
    """Publish messages, each a plain subject and what the server takes.

    The client would look at each three times over; written as one piece of protocol they cost a quarter (nats-py 2.10
    to 2.16). May go when nats-py publishes many at once; a client that sends in another way is asked one by one.
    """
    send, flush = getattr(nc, "_send_command", None), getattr(nc, "_flush_pending", None)
    if send is None or flush is None or nc.is_closed:
        for subject, data in messages:
            await nc.publish(subject, data)
        return
    await send(b"".join([b"PUB %b %d\r\n%b\r\n" % (subject.encode(), len(data), data) for subject, data in messages]))
    await flush()
