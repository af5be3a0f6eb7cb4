"""Restate worker: runs invocations of Restate as drives in this process, in an HTTP/2 server inside the running event loop.

The drive runs where its store, its bus and its tools are. If Restate drops an invocation (the connection broke, or it was
killed), its drive is cancelled here, because another one is on its way.
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

from everturn.errors import SessionQuarantined, Stale

log = logging.getLogger(__name__)

FOREVER = timedelta(
    days=30
)  # a drive takes as long as its tools; after a timeout Restate would run a slow one a second time
STOP_TIMEOUT = 5.0  # seconds in which running requests may be answered when a worker stops
RETRY_NOW = timedelta(milliseconds=20)
# More than Restate requests on one connection, so that ours is never the limit. With 16 here and 128 there, some of 200
# drives did not start while the others were held, in two runs of five; never with 16 on both sides, or with this.
STREAMS = 4096
RETRIES = InvocationRetryPolicy(
    initial_interval=timedelta(milliseconds=100),
    exponentiation_factor=2.0,
    max_interval=timedelta(seconds=5),
    max_attempts=1_000_000,  # two months; the store quarantines a session that cannot be driven long before
    on_max_attempts="pause",
)

Drive = Callable[[str], Awaitable[None]]
Event = MutableMapping[str, Any]


class _Attempt:
    """One request of Restate, and its drive."""

    def __init__(self) -> None:
        self.driving: asyncio.Task[None] | None = None
        self.is_gone = False

    def leave(self) -> None:
        self.is_gone = True
        if self.driving is not None:
            self.driving.cancel()


_attempt: ContextVar[_Attempt] = ContextVar("attempt")


class _SharedSocketServer(Server):
    """granian on an existing socket; by itself it would bind one of its own with SO_REUSEPORT."""

    def __init__(self, app: object, sock: socket.socket) -> None:
        self._given_socket = sock
        super().__init__(
            app,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http2,
            http2_settings=HTTP2Settings(max_concurrent_streams=STREAMS),
            websockets=False,
            backpressure=65_536,
            # Incremental, or it would close every log handler of the program.
            log_level=LogLevels.error,
            log_dictconfig={"incremental": True, "handlers": {}, "loggers": {}},
        )

    def _init_shared_socket(self) -> None:
        # A duplicate, because granian closes what it is given.
        self._shd = cast("Any", rust.SocketHolder)(os.dup(self._given_socket.fileno()), False, 1024)


class RestateWorker:
    """Runs what Restate sends as drives in this process."""

    def __init__(self, drive: Drive, sock: socket.socket, service: str, identity_key: str | None) -> None:
        self._drive, self._sock = drive, sock
        self._driving: dict[str, asyncio.Task[None]] = {}
        self._is_closing = self._is_leaving = False
        self._closing = asyncio.Event()
        self._app = self._endpoint(service, identity_key)
        self._server = _SharedSocketServer(self._serve, sock)
        self._serving: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start listening."""
        await asyncio.to_thread(asyncio.run, self._prime())
        self._serving = asyncio.get_running_loop().create_task(self._server.serve())

    def leave(self) -> None:
        """Start no new drives: a request that comes now waits until this worker closes, and is then refused at once."""
        self._is_leaving = True

    async def aclose(self) -> None:
        """Stop: running drives are cancelled, and returned to Restate at once when they have ended."""
        self._is_closing = True
        self._closing.set()
        self._server.stop()
        tasks = list(self._driving.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._serving is not None:
            _, late = await asyncio.wait({self._serving}, timeout=STOP_TIMEOUT)
            for task in late:
                log.warning("Restate did not close its requests within %g s; this worker ends anyway", STOP_TIMEOUT)
                task.cancel()
        self._sock.close()

    def _endpoint(self, service: str, identity_key: str | None) -> Any:
        sessions = restate.VirtualObject(
            service,
            inactivity_timeout=FOREVER,
            abort_timeout=FOREVER,
            # A finished drive leaves nothing in Restate. The second setting is needed although no wake has a key: with the
            # first alone, Restate 1.7.12 still lists every drive as completed.
            journal_retention=timedelta(0),
            idempotency_retention=timedelta(0),
            ingress_private=False,
            invocation_retry_policy=RETRIES,
        )

        async def drive(context: restate.ObjectContext) -> None:
            await self._run_attempt(context.key(), _attempt.get())

        sessions.handler("drive")(drive)
        return restate.app([sessions], "bidi", [identity_key] if identity_key else None)

    async def _prime(self) -> None:
        """Let the SDK handle its first request in a thread, where it cannot install a signal handler.

        It would take over SIGTERM, which belongs to the program. Only the main thread can set a handler; in another one the SDK
        ignores the error and does not try again. This can go when restate-sdk leaves signals alone.
        """
        try:
            await self._app({"type": "lifespan"}, None, None)
        except ValueError:
            pass  # the SDK has no lifespan

    async def _serve(self, scope: Event, receive: Callable[[], Awaitable[Event]], send: Any) -> None:
        attempt = _Attempt()
        _attempt.set(attempt)

        async def watched_receive() -> Event:
            event = await receive()
            if event["type"] == "http.disconnect":
                attempt.leave()
            return event

        await self._app(scope, watched_receive, send)

    async def _run_attempt(self, session: str, attempt: _Attempt) -> None:
        while (before := self._driving.get(session)) is not None:
            # Restate gave it up, or there would be no second one; it has to end first.
            before.cancel()
            await asyncio.wait({before})
        if self._is_leaving:
            # If refused, it would come back over the same connection, and later each time.
            await self._closing.wait()
        if self._is_closing or attempt.is_gone:
            raise RetryableError("this worker is shutting down", retry_after=RETRY_NOW)
        task = asyncio.get_running_loop().create_task(self._drive_once(session))
        self._driving[session] = attempt.driving = task
        task.add_done_callback(lambda _: self._driving.pop(session, None))
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if task.cancelled():
            raise RetryableError("this worker is shutting down", retry_after=RETRY_NOW)
        if (error := task.exception()) is not None:
            # Only the type: an error text may contain what people wrote, and Restate stores what it gets.
            raise RetryableError(f"the drive failed: {type(error).__name__}")

    async def _drive_once(self, session: str) -> None:
        if "\0" in session:  # PostgreSQL cannot even query it, and a failure would be retried for months
            log.warning(
                "%r is not a session; note that any client that can reach the ingress of Restate can send such a request",
                session,
            )
            return
        try:
            await self._drive(session)
        except (Stale, SessionQuarantined) as error:
            # Another process drives it, or it must not be driven: a retry would help neither.
            log.warning("%s: %s", session, error)
        except Exception:
            log.exception("driving session %s failed; Restate will retry it", session)
            raise
