"""Stdio transport of the MCP server: stdin and stdout carry the protocol and nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
import threading
from collections.abc import Generator
from io import TextIOWrapper
from typing import BinaryIO

from msgspec import Struct

from everturn.mcp_server.server import AgentServer

PIECE = 65_536  # bytes
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StdioTransport(Struct, frozen=True):
    """Descriptor with the client's messages (`source`), and stream for messages to the client (`target`)."""

    source: int
    target: BinaryIO


@contextlib.contextmanager
def reserve_stdio() -> Generator[StdioTransport]:
    """Reserve stdin and stdout for the protocol: until the process ends nothing else reads stdin, and prints go to
    stderr.

    Enter this before tools are loaded, because they may print. The descriptors are not restored: text in a buffer would
    otherwise be written after the last message.
    """
    sys.stdout.flush()
    source, target = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    devnull = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(devnull, 0)
    os.close(devnull)
    os.dup2(2, 1)
    old_stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        with os.fdopen(target, "wb") as wire:
            yield StdioTransport(source, wire)
    finally:
        old_stdout.flush()
        sys.stdout = old_stdout


async def serve_stdio(agent: AgentServer, wire: StdioTransport) -> None:
    """Serve one client until it closes its end, or this process is told to stop."""
    import anyio
    from mcp.server.stdio import stdio_server

    near, far = socket.socketpair()
    # A thread that reads stdin cannot be woken, and would keep the process alive; so this one is a daemon.
    threading.Thread(target=_copy_stdin, args=(wire.source, near), name="mcp-stdin", daemon=True).start()
    loop = asyncio.get_running_loop()

    def leave() -> None:
        agent.is_stopping = True
        _shut(near)

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, leave)
    reading = TextIOWrapper(far.makefile("rb"), encoding="utf-8", errors="replace")
    writing = TextIOWrapper(wire.target, encoding="utf-8", newline="\n")
    try:
        async with stdio_server(anyio.wrap_file(reading), anyio.wrap_file(writing)) as (messages, answers):
            await agent.server.run(messages, answers, agent.server.create_initialization_options())
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)
        writing.detach()
        reading.close()
        far.close()
        _shut(near)


def _copy_stdin(source: int, near: socket.socket) -> None:
    with near, contextlib.suppress(OSError):
        while data := os.read(source, PIECE):
            near.sendall(data)


def _shut(near: socket.socket) -> None:
    with contextlib.suppress(OSError):
        near.shutdown(socket.SHUT_RDWR)
