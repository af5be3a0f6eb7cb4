"""Connections with deadlines: how long a request may take to say what it wants, how long one may rest, and how many.

uvicorn has no time limit for headers, lets go of a connection only when its peer has read everything, and answers one
that is too many only after it has been read. This stands around its protocol on h11, which caps the size of headers.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from everturn.config.options import ServerOptions
from everturn.telemetry import metrics

FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
SWEEP: Final = 5.0
"""Seconds after which a connection that was closed and is not read by its peer is cut."""


class Bounded(H11Protocol):
    """A connection that has no time for those who take theirs."""

    options = ServerOptions()
    deadline: asyncio.TimerHandle | None = None
    left = -1  # bytes that its peer had not read when the sweep last came by

    def connection_made(self, transport: Any) -> None:
        """Begin to count, or say that there is no place."""
        super().connection_made(transport)
        if len(self.connections) > self.options.connections:
            metrics.count("http_refused_total", "connections")
            transport.write(FULL)
            transport.close()
            return
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Read on, unless it is over."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """The next request may have begun to come in before this one was answered."""
        super().on_response_complete()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of all timers: uvicorn keeps one when a peer resets the connection."""
        self._disarm()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def _look(self) -> None:
        """Begin to count when a request begins, and not again until it has said what it wants."""
        is_saying = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if self.transport.is_closing() or not is_saying:
            self._disarm()
        elif self.deadline is None:
            self._arm()

    def _arm(self) -> None:
        self.deadline = self.loop.call_later(self.options.header_time, self._too_late)

    def _disarm(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _too_late(self) -> None:
        self.deadline = None
        if not self.transport.is_closing():
            metrics.count("http_refused_total", "too_slow")
            if self.conn.trailing_data[0]:
                self.transport.write(SLOW)
            self.transport.close()


def bounded(options: ServerOptions) -> type[Bounded]:
    """The protocol class of a server with these limits."""
    return type("Bounded", (Bounded,), {"options": options})


def sweep(connections: set[Any]) -> int:
    """Cut those that were closed and whose peers have read nothing since the last time; how many there were."""
    cut = 0
    for connection in list(connections):
        transport = connection.transport
        if transport is None or not transport.is_closing():
            continue
        left = transport.get_write_buffer_size()
        if left == getattr(connection, "left", -1):
            transport.abort()
            cut += 1
        connection.left = left
    return cut
