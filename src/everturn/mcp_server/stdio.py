"""An agent's server → one that speaks over stdin and stdout, which carry the protocol and nothing else."""

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

from everturn.mcp_server.serving import AgentServer

PIECE = 65_536  # bytes
TOLD = (signal.SIGINT, signal.SIGTERM)


class Wire(Struct, frozen=True):
    """Where the client is: what it says comes out of `source`, and what it is told goes into `target`."""

    source: int
    target: BinaryIO


@contextlib.contextmanager
def protocol_only() -> Generator[Wire]:
    """Take stdin and stdout for the protocol: to the end of the process nobody else reads the one, and what anybody
    prints goes to stderr.

    To be entered before tools are loaded, for they may print. Nothing is given back: what was printed and is still in
    somebody's buffer would come out behind the last message.
    """
    sys.stdout.flush()
    source, target = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in (0, 1))
    nowhere = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    before, sys.stdout = sys.stdout, sys.stderr
    try:
        with os.fdopen(target, "wb") as wire:
            yield Wire(source, wire)
    finally:
        before.flush()
        sys.stdout = before


async def serve_stdio(agent: AgentServer, wire: Wire) -> None:
    """Serve one client until it closes its end, or this process is told to stop."""
    import anyio
    from mcp.server.stdio import stdio_server

    near, far = socket.socketpair()
    # A thread that reads stdin cannot be woken, and would keep the process; this one is left behind.
    threading.Thread(target=_feed, args=(wire.source, near), name="mcp-stdin", daemon=True).start()
    loop = asyncio.get_running_loop()

    def leave() -> None:
        agent.is_leaving = True
        _shut(near)

    for number in TOLD:
        loop.add_signal_handler(number, leave)
    reading = TextIOWrapper(far.makefile("rb"), encoding="utf-8", errors="replace")
    writing = TextIOWrapper(wire.target, encoding="utf-8", newline="\n")
    try:
        async with stdio_server(anyio.wrap_file(reading), anyio.wrap_file(writing)) as (messages, answers):
            await agent.server.run(messages, answers, agent.server.create_initialization_options())
    finally:
        for number in TOLD:
            loop.remove_signal_handler(number)
        writing.detach()
        reading.close()
        far.close()
        _shut(near)


def _feed(source: int, near: socket.socket) -> None:
    with near, contextlib.suppress(OSError):
        while data := os.read(source, PIECE):
            near.sendall(data)


def _shut(near: socket.socket) -> None:
    with contextlib.suppress(OSError):
        near.shutdown(socket.SHUT_RDWR)
