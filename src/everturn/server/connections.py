"""Connections with deadlines: time limits for request headers and idle connections, and a maximum number of connections.

uvicorn has no time limit for headers, releases a connection only when its peer has read everything, and refuses a
surplus connection only after it has read the request. This subclasses its h11 protocol, which caps the size of headers.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from everturn.config.server_options import ServerOptions
from everturn.telemetry import metrics

FULL: Final = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
SLOW: Final = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"
SWEEP: Final = 5.0
"""Seconds after which a closed connection is aborted if its peer reads nothing."""


class TimedConnection(H11Protocol):
    """A connection with a deadline for the headers of each request."""

    options = ServerOptions()
    deadline: asyncio.TimerHandle | None = None
    left = -1  # bytes that the peer had not read at the last sweep

    def connection_made(self, transport: Any) -> None:
        """Start the deadline, or refuse the connection when there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.options.connections:
            metrics.count("http_refused_total", "connections")
            transport.write(FULL)
            transport.close()
            return
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Read on, unless the connection is closing."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        self._update_deadline()

    def on_response_complete(self) -> None:
        """Check the deadline: the next request may have begun to arrive before this response was complete."""
        super().on_response_complete()
        self._update_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel all timers: uvicorn keeps one when a peer resets the connection."""
        self._disarm()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def _update_deadline(self) -> None:
        """Start the deadline when a request begins, and stop it when its headers are complete."""
        has_partial_request = self.conn.their_state is h11.IDLE and bool(self.conn.trailing_data[0])
        if self.transport.is_closing() or not has_partial_request:
            self._disarm()
        elif self.deadline is None:
            self._arm()

    def _arm(self) -> None:
        self.deadline = self.loop.call_later(self.options.header_time, self._time_out)

    def _disarm(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None

    def _time_out(self) -> None:
        self.deadline = None
        if not self.transport.is_closing():
            metrics.count("http_refused_total", "too_slow")
            if self.conn.trailing_data[0]:
                self.transport.write(SLOW)
            self.transport.close()


def protocol_with_limits(options: ServerOptions) -> type[TimedConnection]:
    """The protocol class of a server with these limits."""
    return type("Bounded", (TimedConnection,), {"options": options})


def abort_stalled(connections: set[Any]) -> int:
    """Abort closed connections whose peers have read nothing since the last sweep. Returns how many."""
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
