"""Invocations of Restate into drives in this process: an HTTP/2 server inside the running event loop.

The drive runs where its store, its bus and its tools are. If Restate lets go of an invocation (the connection broke,
somebody killed it) its drive is cancelled here, for another one is on its way.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from datetime import timedelta
from typing import Any, cast

import granian._granian as rust
import restate
from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP2Settings
from granian.log import LogLevels
from granian.server.embed import Server
from restate.exceptions import RetryableError
from restate.retry_policy import InvocationRetryPolicy

from everturn.errors import SessionStuck, Stale

log = logging.getLogger(__name__)

FOREVER = timedelta(days=30)  # a drive takes as long as its tools; Restate would run a slow one a second time
GOODBYE = 5.0  # seconds in which the requests under way may be answered when a worker stops
AT_ONCE = timedelta(milliseconds=20)
# More than Restate asks for on one connection, so that ours is never the limit. With 16 here and 128 there, some of 200
# drives were not begun while the others were held, in two runs of five; never with 16 on both sides, or with this.
STREAMS = 4096
RETRIES = InvocationRetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    exponentiation_factor=2.0,
    max_interval=timedelta(seconds=5),
    max_attempts=1_000_000,  # two months; the store parks a session that cannot be driven long before
    on_max_attempts="pause",
)

Drive = Callable[[str], Awaitable[None]]
Event = MutableMapping[str, Any]


class _Attempt:
    """One request of Restate, and the drive it led to."""

    def __init__(self) -> None:
        self.driving: asyncio.Task[None] | None = None
        self.is_gone = False

    def leave(self) -> None:
        self.is_gone = True
        if self.driving is not None:
            self.driving.cancel()


_attempt: ContextVar[_Attempt] = ContextVar("attempt")


class _Shared(Server):
    """granian on a socket that is there already; by itself it would bind one of its own with SO_REUSEPORT."""

    def __init__(self, app: object, sock: socket.socket) -> None:
        self._given = sock
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http2,
            http2_settings=HTTP2Settings(max_concurrent_streams=STREAMS),
            websockets=False,
            backpressure=65_536,
            # Incremental, or it would close every log handler that the program has.
            log_level=LogLevels.error,
            log_dictconfig={"incremental": True, "handlers": {}, "loggers": {}},
        )

    def _init_shared_socket(self) -> None:
        # A copy, for granian closes what it is given.
        self._shd = cast("Any", rust.SocketHolder)(os.dup(self._given.fileno()), False, 1024)


class Worker:
    """Drives in this process what Restate sends here."""

    def __init__(self, drive: Drive, sock: socket.socket, service: str, identity_key: str | None) -> None:
        self._drive, self._sock = drive, sock
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._is_closing = self._is_leaving = False
        self._closing = asyncio.Event()
        self._app = self._endpoint(service, identity_key)
        self._server = _Shared(self._serve, sock)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to listen."""
        await asyncio.to_thread(asyncio.run, self._prime())
        self._serving = asyncio.get_running_loop().create_task(self._server.serve())

    def leave(self) -> None:
        """Begin nothing new: who comes now waits until this worker closes, and is then sent on at once."""
        self._is_leaving = True

    async def aclose(self) -> None:
        """Stop: what is under way is cancelled, has let go, and is given back to Restate at once."""
        self._is_closing = True
        self._closing.set()
        self._server.stop()
        tasks = list(self._driving.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._serving is not None:
            _, late = await asyncio.wait({self._serving}, timeout=GOODBYE)
            for task in late:
                log.warning("Restate did not close its requests within %g s; leaving without", GOODBYE)
                task.cancel()
        self._sock.close()

    def _endpoint(self, service: str, identity_key: str | None) -> Any:
        sessions = restate.VirtualObject(
            service,
            inactivity_timeout=FOREVER,
            abort_timeout=FOREVER,
            # A finished drive leaves nothing behind. The second one does it, although no wake has a key: with the
            # first alone, Restate 1.7.12 still lists every drive as completed.
            journal_retention=timedelta(0),
            idempotency_retention=timedelta(0),
            ingress_private=False,
            invocation_retry_policy=RETRIES,
        )

        async def drive(context: restate.ObjectContext) -> None:
            await self._attend(context.key(), _attempt.get())

        sessions.handler("drive")(drive)
        return restate.app([sessions], "bidi", [identity_key] if identity_key else None)

    async def _prime(self) -> None:
        """Let the SDK do what it does on its first request, in a thread where it cannot.

        It takes over SIGTERM, which belongs to the program. Only the main thread can set a handler; elsewhere the SDK
        shrugs and does not try again. May go when restate-sdk leaves signals alone.
        """
        try:
            await self._app({"type": "lifespan"}, None, None)
        except ValueError:
            pass  # it has no lifespan

    async def _serve(self, scope: Event, receive: Callable[[], Awaitable[Event]], send: Any) -> None:
        attempt = _Attempt()
        _attempt.set(attempt)

        async def watched() -> Event:
            event = await receive()
            if event["type"] == "http.disconnect":
                attempt.leave()
            return event

        await self._app(scope, watched, send)

    async def _attend(self, session: str, attempt: _Attempt) -> None:
        while (before := self._driving.get(session)) is not None:
            # Restate gave it up, or there would be no second one; it has to let go first.
            before.cancel()
            await asyncio.wait({before})
        if self._is_leaving:
            # Refused, it would come back over the same connection, and each time later.
            await self._closing.wait()
        if self._is_closing or attempt.is_gone:
            raise RetryableError("this worker is leaving", retry_after=AT_ONCE)
        task = asyncio.get_running_loop().create_task(self._once(session))
        self._driving[session] = attempt.driving = task
        task.add_done_callback(lambda _: self._driving.pop(session, None))
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if task.cancelled():
            raise RetryableError("this worker is leaving", retry_after=AT_ONCE)
        if (error := task.exception()) is not None:
            # Only its kind: what a drive has to say may hold what people wrote, and Restate keeps what it is told.
            raise RetryableError(f"the drive failed: {type(error).__name__}")

    async def _once(self, session: str) -> None:
        if "\0" in session:  # PostgreSQL cannot even look for it, and what fails is tried again for months
            log.warning("%r names no session; whoever reaches the ingress of Restate can ask for any", session)
            return
        try:
            await self._drive(session)
        except (Stale, SessionStuck) as error:
            # Somebody else drives it, or nobody should: trying again would help neither.
            log.warning("%s: %s", session, error)
        except Exception:
            log.exception("driving %s failed; Restate will have it tried again", session)
            raise
