"""The engine of many processes: Restate decides who drives, this turns its invocations into drives and wakes into
its requests.

A session is the key of a virtual object, and a drive is one call of its one exclusive handler. Nothing is journalled:
the log is the journal, and an invocation is only its beginning and its end. See decision 0037.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from everturn.clock import SystemClock
from everturn.core.ports import Clock
from everturn.engine.restate.requests import Requests
from everturn.engine.restate.wakes import Wakes
from everturn.errors import EngineUnavailable

if TYPE_CHECKING:
    from everturn.engine.restate.worker import Worker

__all__ = ["Health", "RestateEngine", "listening"]

Address = tuple[str, int]


# Of invocations with one key Restate takes one at a time, and forgets the key when that has ended.
REMINDER = "reminder"


class Health(Struct, frozen=True):
    """What answers. `deployment` is the worker url that Restate sends new drives to; "" if there is none."""

    ingress: bool
    admin: bool
    deployment: str


class RestateEngine:
    """Wakes sessions through Restate, and with `listen` drives them here too.

    `listen` is an address for the one worker of a port, or a socket that several worker processes got from their
    parent (see `listening`) and close themselves. `advertise` is the url at which Restate reaches the workers, where
    it is another one.
    """

    is_durable = True

    def __init__(
        self,
        ingress: str = "http://127.0.0.1:8080",
        admin: str = "http://127.0.0.1:9070",
        *,
        listen: Address | socket.socket | None = ("127.0.0.1", 9080),
        advertise: str | None = None,
        service: str = "everturn",
        identity_key: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._requests = Requests(ingress.rstrip("/"), admin.rstrip("/"), service)
        self._wakes = Wakes(self._requests.send, clock or SystemClock())
        self._listen, self._advertise = listen, advertise
        self._service, self._identity_key = service, identity_key
        self._worker: Worker | None = None
        self._is_closed = False

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Ask that somebody drive a session; once this returns Restate has written it down.

        Raises:
            EngineUnavailable: Restate did not take it for ten seconds.
        """
        if is_reminder and not self._is_closed:
            await self._requests.send(session, 0.0, REMINDER)
        elif not self._is_closed:
            await self._wakes.wake(session, at)

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        """Drive here, if this engine listens; it returns once Restate knows of this worker.

        Raises:
            EngineUnavailable: Restate does not answer, or cannot reach this worker.
        """
        if self._listen is None:
            return
        from everturn.engine.restate.worker import Worker  # an API node needs neither granian nor the SDK

        try:
            sock = self._listen.dup() if isinstance(self._listen, socket.socket) else listening(*self._listen)
        except OSError as error:
            raise EngineUnavailable(
                f"a worker cannot listen on {self._listen}: {error.strerror}; choose another address"
            ) from error
        self._worker = Worker(drive, sock, self._service, self._identity_key)
        try:
            await self._worker.start()
            await self._requests.register(self._advertise or url_of(sock))
        except BaseException:
            await self._worker.aclose()  # so that serving can be tried again on the same port
            raise

    async def health(self) -> Health:
        """What answers, for somebody who wonders why nothing moves."""
        ingress, admin, deployment = await asyncio.gather(
            self._requests.ingress_answers(), self._requests.admin_answers(), self._requests.deployment()
        )
        return Health(ingress, admin, deployment)

    async def leave(self) -> None:
        """Begin nothing new here. What Restate still sends waits, and goes to another worker when this one closes."""
        if self._worker is not None:
            self._worker.leave()

    async def aclose(self) -> None:
        """Stop driving. Restate hands what was under way to another worker, or keeps it until there is one."""
        self._is_closed = True
        await self._wakes.aclose()
        if self._worker is not None:
            await self._worker.aclose()
        await self._requests.aclose()


def listening(host: str, port: int) -> socket.socket:
    """A socket for workers; one that has children lets them share it.

    One queue, from which only a living process takes. With SO_REUSEPORT each process has a queue of its own, and the
    kernel goes on filling that of a process which has stopped.
    """
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        sock.listen(1024)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def url_of(sock: socket.socket) -> str:
    """Where a listening socket is reached from this machine."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
