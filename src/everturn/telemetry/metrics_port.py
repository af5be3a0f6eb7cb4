"""Metrics port: an HTTP port at which Prometheus scrapes a worker, which has no HTTP server of its own.

It runs in a thread, so that a process with a blocked event loop can still be observed. It authenticates no one and returns
nothing but metrics: let it listen on an internal network only.
"""

from __future__ import annotations

import errno
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from everturn.errors import ConfigError
from everturn.telemetry.metrics import METRICS, TEXT_FORMAT

PATIENCE: Final = 5.0  # seconds a client has to send its request
SIBLINGS: Final = (
    64  # ports that are tried one after the other: all workers of a machine have the same address configured
)


class _MetricsHandler(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server_version, sys_version = "everturn", ""

    def do_GET(self) -> None:
        """Send the metrics, and nothing else."""
        is_found = self.path.partition("?")[0] == "/metrics"
        body = METRICS.render() if is_found else b"there is /metrics here, and nothing else\n"
        self.send_response(200 if is_found else 404)
        self.send_header("Content-Type", TEXT_FORMAT if is_found else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: what clients send does not belong in our log."""


class _MetricsServer(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False  # on some systems that would let two workers have one port

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that disconnect."""


class MetricsPort:
    """The open port."""

    def __init__(self, listen: str) -> None:
        """Listen at `host:port`, or at the next free port after it; port 0 is any.

        Raises:
            ConfigError: the address is invalid, or no port is free.
        """
        host, _, port = listen.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ConfigError(f"telemetry: {listen!r} is not an address to listen on; for example 127.0.0.1:9464")
        self._server = _bind_free_port(host.strip("[]"), int(port))
        self.address = f"{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the port."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _bind_free_port(host: str, first: int) -> _MetricsServer:
    for port in range(first, min(first + SIBLINGS, 65_536)):
        try:
            return _MetricsServer((host, port), _MetricsHandler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"telemetry: {host}:{port} cannot be used: {error.strerror}") from error
    raise ConfigError(f"telemetry: no port of {host} from {first} on is free")
