"""Restate engine: Restate decides which process drives a session. Its invocations become drives, and wakes requests to it.

A session is the key of a virtual object, and a drive is one call of its one exclusive handler. Nothing is journalled: our
log is the journal, and an invocation is only its beginning and its end. See decision 0037.

- `worker`: the HTTP/2 server that runs invocations as drives
- `http`: the HTTP client of Restate
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from everturn.clock import SystemClock
from everturn.core.ports import Clock
from everturn.engine.restate.http import RestateClient
from everturn.engine.wake_queue import WakeQueue
from everturn.errors import EngineUnavailable

if TYPE_CHECKING:
    from everturn.engine.restate.worker import RestateWorker

__all__ = ["RestateEngine", "RestateHealth", "open_worker_socket"]

Address = tuple[str, int]


# Restate runs invocations with one idempotency key one at a time, and forgets the key when that has ended.
REMINDER = "reminder"


class RestateHealth(Struct, frozen=True):
    """Which parts of Restate answer. `deployment` is the URL of the workers that Restate sends new drives to, or ""."""

    ingress: bool
    admin: bool
    deployment: str

    @property
    def is_up(self) -> bool:
        """Whether it can be used."""
        return self.ingress and self.admin


class RestateEngine:
    """Wakes sessions through Restate, and with `listen` also drives them in this process.

    `ingress` and `admin` are URLs; with several nodes of Restate, those of all nodes, separated by commas.
    `listen` is the address of a single worker, or a socket that several worker processes inherit from their parent (see
    `listening`) and close themselves. `advertise` is the URL at which Restate reaches the workers, if it differs.
    """

    is_durable = True
    service_name = "restate"

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
        self._requests = RestateClient(ingress, admin, service)
        self._wakes = WakeQueue(self._requests.send, clock or SystemClock())
        self._listen, self._advertise = listen, advertise
        self._service, self._identity_key = service, identity_key
        self._worker: RestateWorker | None = None
        self._is_closed = False

    async def wake(self, session: str, at: float | None = None, *, is_reminder: bool = False) -> None:
        """Have a session driven; when this returns, Restate has stored the request.

        Raises:
            EngineUnavailable: Restate did not accept it within ten seconds.
        """
        if is_reminder and not self._is_closed:
            await self._requests.send(session, 0.0, REMINDER)
        elif not self._is_closed:
            await self._wakes.wake(session, at)

    async def serve(self, drive: Callable[[str], Awaitable[None]]) -> None:
        """Drive sessions here, if this engine listens; returns when Restate has registered this worker.

        Raises:
            EngineUnavailable: Restate does not answer, or cannot reach this worker.
        """
        if self._listen is None:
            return
        from everturn.engine.restate.worker import RestateWorker  # an API node needs neither granian nor the SDK

        try:
            sock = self._listen.dup() if isinstance(self._listen, socket.socket) else open_worker_socket(*self._listen)
        except OSError as error:
            raise EngineUnavailable(
                f"a worker cannot listen on {self._listen}: {error.strerror}; choose another address"
            ) from error
        self._worker = RestateWorker(drive, sock, self._service, self._identity_key)
        try:
            await self._worker.start()
            await self._requests.register(self._advertise or socket_url(sock))
        except BaseException:
            await self._worker.aclose()  # so that serving can be tried again on the same port
            raise

    async def health(self) -> RestateHealth:
        """Which parts of Restate answer, for diagnosis."""
        ingress, admin, deployment = await asyncio.gather(
            self._requests.ingress_answers(), self._requests.admin_answers(), self._requests.deployment()
        )
        return RestateHealth(ingress, admin, deployment)

    async def stop_accepting(self) -> None:
        """Start no new drives here. What Restate still sends waits, and goes to another worker when this one closes."""
        if self._worker is not None:
            self._worker.leave()

    async def aclose(self) -> None:
        """Stop driving. Restate hands running drives to another worker, or keeps them until there is one."""
        self._is_closed = True
        await self._wakes.aclose()
        if self._worker is not None:
            await self._worker.aclose()
        await self._requests.aclose()


def open_worker_socket(host: str, port: int) -> socket.socket:
    """A listening socket for workers, which child processes can share.

    All processes accept from one queue, so only a living one takes a connection. With SO_REUSEPORT each process would have a
    queue of its own, and the kernel would keep filling that of a stopped process.
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


def socket_url(sock: socket.socket) -> str:
    """The URL of a listening socket on this machine."""
    host, port = sock.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
