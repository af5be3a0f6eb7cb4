"""NATS connection that is re-established for ever.

The client's own reconnect buffers what it could not send and guarantees nothing about it. Here a lost connection is simply
gone: `on_up` is called for every new one, and does the same as for the first.
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

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds between two attempts to connect
PING = 5  # seconds between two pings; after two without an answer the server counts as lost
CHECK_INTERVAL = 1.0  # seconds after which a connection is checked, in case its end was not announced
PENDING = 2 * 2**20  # bytes the client buffers before a writer must wait


class BusTasks:
    """Background tasks of one bus, which end with it."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a background task."""
        if self._is_closed:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            # A connection was lost while it was used; the next one makes up for it.
            log.debug("NATS: a task of the connection failed: %r", error)

    async def aclose(self) -> None:
        """Cancel all tasks."""
        self._is_closed = True
        while self._running:
            # More than once: the client swallows a cancellation that comes while it sends.
            for task in self._running:
                task.cancel()
            await asyncio.wait(self._running, timeout=2.0)


class EncryptedClient(Client):
    """A client that sends nothing to a server before the connection is encrypted.

    nats-py encrypts when the server's first line asks for it, and otherwise continues in clear, `tls://` or not: a man in
    the middle would only have to change that line. What the client sends first, including the name and password, comes from this
    method (nats-py 2.10 to 2.16); without it `tls_context` below refuses.
    """

    def _connect_command(self) -> bytes:
        if not self._server_info.get("tls_required"):
            raise NatsError("nats: the URL begins with tls://, but the server does not offer TLS")
        return super()._connect_command()


def tls_context(ca: str = "", certificate: str = "", key: str = "") -> ssl.SSLContext:
    """The TLS context: how servers are verified, and how this node authenticates; names of PEM files.

    Raises:
        ConfigError: a file cannot be read, or this nats-py cannot be forced to use TLS.
    """
    if not hasattr(Client, "_connect_command"):
        raise ConfigError("this version of nats-py does not enforce TLS; install nats-py 2.10 to 2.16")
    try:
        context = ssl.create_default_context(cafile=ca or None)
        if certificate:
            context.load_cert_chain(certificate, key or None)
    except (OSError, ssl.SSLError) as error:
        files = ", ".join(name for name in (ca, certificate, key) if name)
        raise ConfigError(f"the files for TLS with NATS cannot be used ({files}): {error}") from None
    return context


class NatsConnection:
    """Keeps one connection, or None while no server answers."""

    def __init__(
        self,
        servers: str | list[str],
        on_up: Callable[[Client], Awaitable[None]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._servers, self._on_up, self._tls = servers, on_up, tls
        self.nc: Client | None = None
        self.was_up = asyncio.Event()
        self._has_logged = False

    @property
    def message_limit(self) -> int | None:
        """How many bytes a message may have; None while there is no connection."""
        return self.nc.max_payload if self.nc is not None else None

    async def send(self, messages: Sequence[tuple[str, bytes]]) -> None:
        """Send messages, each with its subject."""
        if self.nc is None:
            raise ConnectionError("the connection is closed")
        await publish(self.nc, messages)

    def log_problem(self, problem: str, error: object) -> None:
        """Log a problem: once, until a connection was made again."""
        if not self._has_logged:
            self._has_logged = True
            log.warning("NATS: %s (%r); readers on this node get what is missing from the log", problem, error)

    async def run(self) -> None:
        """Connect, and again whenever the connection is lost, until cancelled."""
        pause = FIRST_PAUSE
        while True:
            nc, is_lost = Client() if self._tls is None else EncryptedClient(), asyncio.Event()
            try:
                await self._connect(nc, is_lost)
                self.nc, self._has_logged = nc, False
                pause = FIRST_PAUSE
                await self._on_up(nc)
                self.was_up.set()
                while not nc.is_closed:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(is_lost.wait(), CHECK_INTERVAL)
            except Exception as error:
                self.log_problem("there is no connection", error)
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
            self.log_problem("the connection is in trouble", error)

        await nc.connect(
            servers=self._servers,
            error_cb=failed,
            closed_cb=lost,
            allow_reconnect=False,
            max_reconnect_attempts=1,  # per attempt; the retries are ours
            reconnect_time_wait=0,
            connect_timeout=2,
            ping_interval=PING,
            max_outstanding_pings=2,
            no_echo=True,
            pending_size=PENDING,
            skip_subject_validation=True,  # ours consist of plain tokens only
            name="everturn",
            tls=self._tls,
        )


async def _close(nc: Client) -> None:
    try:
        async with asyncio.timeout(1.0):
            await nc.close()
    except Exception as error:  # the connection is closed either way
        log.debug("NATS: a connection did not close cleanly: %r", error)


class _MessageSink:
    """Replaces the client's queue of a subscription, and passes messages on as they are parsed."""

    def __init__(self, subscription: Any, on_message: Callable[[bytes], None]) -> None:
        self._subscription, self._on_message = subscription, on_message

    def put_nowait(self, message: Msg) -> None:
        data = message.data
        self._subscription._pending_size -= len(data)  # the client counts the message as pending, and it is not
        try:
            self._on_message(data)
        except Exception:  # the client would stop reading
            log.exception("NATS: a message could not be processed")

    def empty(self) -> bool:
        return True

    def qsize(self) -> int:
        return 0


async def subscribe(nc: Client, subject: str, handler: Callable[[bytes], None]) -> Subscription:
    """Subscribe to a subject; `handler` is called for one message after the other.

    The client would have a queue and a task for every subscription, which is a third of the cost of reading a message and
    most of the cost of a silent turn. It has no option for that, so the queue is replaced (nats-py 2.10 to 2.16). This can
    go when nats-py calls a plain function; until then a client that keeps its queue elsewhere gets a coroutine.
    """

    async def on_message(message: Msg) -> None:
        handler(message.data)

    # One parameter of the client's method, which we never pass, is only partly typed.
    client_subscribe = cast("Callable[..., Awaitable[Any]]", nc.subscribe)  # pyright: ignore[reportUnknownMemberType]
    subscription = await client_subscribe(subject)
    queue = getattr(subscription, "_pending_queue", None)
    if queue is None:
        await subscription.unsubscribe()
        return await client_subscribe(subject, cb=on_message)
    subscription._pending_queue = _MessageSink(subscription, handler)
    while not queue.empty():
        await on_message(queue.get_nowait())
    return subscription


async def publish(nc: Client, messages: Sequence[tuple[str, bytes]]) -> None:
    """Publish messages, each a subject and a payload within the server's limit.

    The client would check each one three times; written as one piece of protocol they cost a quarter (nats-py 2.10 to 2.16).
    This can go when nats-py publishes many at once; a client with other internals is called for each message.
    """
    send, flush = getattr(nc, "_send_command", None), getattr(nc, "_flush_pending", None)
    if send is None or flush is None or nc.is_closed:
        for subject, data in messages:
            await nc.publish(subject, data)
        return
    await send(b"".join([b"PUB %b %d\r\n%b\r\n" % (subject.encode(), len(data), data) for subject, data in messages]))
    await flush()
