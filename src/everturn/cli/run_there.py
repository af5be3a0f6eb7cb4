"""A server's address and a token → a session there, handled as a chat in this process is."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, Final

from everturn import FilePart, Gate, api
from everturn.client import Server
from everturn.client.server import RemoteTurn
from everturn.clock import SystemClock
from everturn.core.canonical import clean
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError, NotRecognised, StoreBusy, UnknownGate, UnknownSession
from everturn.terminal.paths import check, named

HERE_ONLY: Final = (
    *("base_url", "system", "budget", "timeout", "allow", "deny", "permissions", "tools", "files", "virtual_files"),
    *("code", "shell", "web", "mcp", "store", "resume"),
)
"""What a server does not let a message say: its agents, its tools and its rules are its own."""


def check_there(options: argparse.Namespace) -> None:
    """Refuse what only this process could do.

    Raises:
        ConfigError: and it says what.
    """
    for name in HERE_ONLY:
        if getattr(options, name) not in (None, False, "", []):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{flag} is for what runs here; at {options.connect} that is for the server's agents to say"
            )


class There:
    """A session on a server. To those who ask about gates it is a chat."""

    def __init__(self, server: Server, options: argparse.Namespace) -> None:
        self._server, self._agent, self._model = server, clean(options.agent), clean(options.model)
        self._max_steps: int | None = options.max_steps
        self.session = clean(options.session)
        self.files = tuple(named(tuple(options.attach)))
        for path in self.files:
            check(path)
        self._asked: dict[str, api.GateView] = {}
        tools: dict[str, Any] = {}
        self.runtime = SimpleNamespace(listeners=[], tools=tools, clock=SystemClock())

    async def send(self, text: str, key: str) -> RemoteTurn:
        """Send the message, with its files."""
        try:
            return await self._send(text, key)
        except NotRecognised:
            why = (
                "the token is not recognised there; set EVERTURN_TOKEN to an API key, as `everturn keys add` makes one"
            )
            raise NotRecognised(why) from None

    async def _send(self, text: str, key: str) -> RemoteTurn:
        files = [await self._server.attach(path) for path in self.files]
        spoken: Any = {"files": files, "agent": self._agent, "model": self._model, "max_steps": self._max_steps}
        if self.session:
            session = self._server.session(self.session)
            turn = await session.send(clean(text), key=key or None, busy="reject", **spoken)
        else:
            turn = await self._server.begin(clean(text), key=key or None, **spoken)
        self.session = turn.session
        return turn

    async def is_there(self) -> bool:
        """Whether the session exists."""
        try:
            await self._server.session(self.session).info()
        except UnknownSession:
            return False
        return True

    async def look_at_tools(self) -> None:
        """Have at hand what a person is told of a tool that asks."""
        for view in await self._server.tools():
            self.runtime.tools[view.name] = _Tool(view)

    async def gates(self) -> list[Gate]:
        """The questions that wait for somebody in this session, and in the sub-turns that run for it."""
        views = await self._server.session(self.session).gates()
        self._asked |= {view.gate.id: view for view in views}
        return [view.gate for view in views]

    async def answer(self, gate: Gate, by: str = "", **reply: Any) -> bool:
        """Answer a gate; who does is known by the token."""
        if gate.id not in self._asked:
            raise UnknownGate("nobody asks that any more")
        await self._server.answer(self._asked[gate.id], **reply)
        return True

    async def read(self, file: FilePart) -> bytes:
        """The bytes of a file that a model has made."""
        return await self._server.session(self.session).read(file.blob)


class _Tool:
    """A tool of the server, as far as a person is told of it."""

    def __init__(self, view: api.ToolView) -> None:
        self.spec = ToolSpec(view.name, view.description, view.schema, origin=view.origin)

    def validate(self, arguments: object) -> None:
        """Nothing: the server does, when it is answered."""


@asynccontextmanager
async def open_there(options: argparse.Namespace) -> AsyncGenerator[There]:
    """A server, until the block ends.

    Raises:
        ConfigError: this is no address, or there is no token for it.
    """
    from everturn.cli.tokens import token_for

    check_there(options)
    async with Server(options.connect, token_for(options)) as server:
        yield await _there(server, options)


@asynccontextmanager
async def open_attached(options: argparse.Namespace, busy: StoreBusy) -> AsyncGenerator[There]:
    """The server of the process that has the store, until the block ends. When that one goes, whoever takes over.

    Raises:
        StoreBusy: it does not serve the store.
        ConfigError: something was asked for that only this process could do.
    """
    from everturn.cli.store_handover import attach
    from everturn.cli.store_server import beside

    store = str(options.store)
    async with attach(beside(store, os.environ), busy) as connected:
        options.connect, options.store = connected.address, ""
        check_there(options)
        there = await _there(connected.server, options)
        if there.session and not await there.is_there():
            raise ConfigError(
                f"process {connected.pid} has {store}, and there is no session {there.session!r} in it; a server "
                "chooses what a new session is called: leave --session out"
            )
        yield there


async def _there(server: Server, options: argparse.Namespace) -> There:
    there = There(server, options)
    if options.ask:
        await there.look_at_tools()
    return there
