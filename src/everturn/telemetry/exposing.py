"""Counts of a process that serves nobody → a port at which Prometheus finds them: for workers.

A thread of its own answers, so that a loop which is busy can still be seen to be. It asks nobody who they are, and tells
nothing but counts: let it listen where only your own machines are.
"""

from __future__ import annotations

import errno
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

from everturn.errors import ConfigError
from everturn.telemetry.metrics import METRICS, TEXT_FORMAT

PATIENCE: Final = 5.0  # seconds a reader has to ask
SIBLINGS: Final = 64  # ports that are tried one after the other: workers of one machine are told the same address


class _Counts(BaseHTTPRequestHandler):
    timeout = PATIENCE
    server_version, sys_version = "everturn", ""

    def do_GET(self) -> None:
        """Tell the counts, and nothing else."""
        is_found = self.path.partition("?")[0] == "/metrics"
        body = METRICS.render() if is_found else b"there is /metrics here, and nothing else\n"
        self.send_response(200 if is_found else 404)
        self.send_header("Content-Type", TEXT_FORMAT if is_found else "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: what others send has no place in our log."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = False  # on some systems that would let two workers have one port

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that went away is nothing to tell."""


class Exposed:
    """The port, until it is closed."""

    def __init__(self, listen: str) -> None:
        """Listen at `host:port`, or at the first port behind it that is free; port 0 is any.

        Raises:
            ConfigError: this is no address, or nothing there is free.
        """
        host, _, port = listen.rpartition(":")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise ConfigError(f"telemetry: {listen!r} is no address to listen on; for example 127.0.0.1:9464")
        self._server = _listening(host.strip("[]"), int(port))
        self.address = f"{host}:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.2,), name="metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _listening(host: str, first: int) -> _Server:
    for port in range(first, min(first + SIBLINGS, 65_536)):
        try:
            return _Server((host, port), _Counts)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"telemetry: {host}:{port} cannot be listened on: {error.strerror}") from error
    raise ConfigError(f"telemetry: no port of {host} from {first} on is free")
