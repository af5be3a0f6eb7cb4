"""Remote chat for `everturn run --connect`: a session at a server, with the interface of a chat in this process."""

from __future__ import annotations

import argparse
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any, Final

from everturn import FilePart, Gate, api
from everturn.cli.run.folder import MODES
from everturn.cli.run.run_store import find_last_remote_session
from everturn.client import Server
from everturn.client.turn import RemoteTurn
from everturn.clock import SystemClock
from everturn.core.canonical_json import replace_surrogates
from everturn.core.context.context_report import ContextReport
from everturn.core.requests import ToolSpec
from everturn.errors import ConfigError, EverturnError, NotRecognised, StoreBusy, UnknownGate, UnknownSession
from everturn.terminal.text.paths import check_paths, check_sendable

LOCAL_ONLY: Final = (
    *("base_url", "system", "budget", "timeout", "allow", "deny", "permissions", "tools", "files", "virtual_files"),
    *("code", "shell", "web", "mcp", "store", "resume", "output_schema"),
)
"""Options that have no effect at a server: it has its own agents, tools and rules."""


def check_remote_options(options: argparse.Namespace) -> None:
    """Refuse options that only a local run can honour.

    Raises:
        ConfigError: names the option.
    """
    for name in LOCAL_ONLY:
        if getattr(options, name) not in (None, False, "", []):
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(
                f"{flag} works only for local runs; at {options.connect}, the agents of the server decide this"
            )


class RemoteChat:
    """A session at a server; the gate prompters use it like a chat."""

    def __init__(self, server: Server, options: argparse.Namespace) -> None:
        self._server, self._agent, self._model = (
            server,
            replace_surrogates(options.agent),
            replace_surrogates(options.model),
        )
        self._max_steps: int | None = options.max_steps
        self._mode = MODES[options.mode]
        self.session = replace_surrogates(options.session)
        self.files = tuple(check_paths(tuple(options.attach)))
        for path in self.files:
            check_sendable(path)
        self._gate_views: dict[str, api.GateView] = {}
        tools: dict[str, Any] = {}
        self.app = SimpleNamespace(listeners=[], tools=tools, clock=SystemClock())

    async def send(self, text: str, key: str) -> RemoteTurn:
        """Send the message, with its files."""
        try:
            return await self._send(text, key)
        except NotRecognised:
            reason = (
                "the token is not recognised there; set EVERTURN_TOKEN to an API key, as `everturn keys add` makes one"
            )
            raise NotRecognised(reason) from None

    async def _send(self, text: str, key: str) -> RemoteTurn:
        files = [await self._server.attach(path) for path in self.files]
        fields: Any = {"files": files, "agent": self._agent, "model": self._model, "max_steps": self._max_steps}
        fields["mode"] = self._mode
        if self.session:
            session = self._server.session(self.session)
            turn = await session.send(replace_surrogates(text), key=key or None, busy="reject", **fields)
        else:
            turn = await self._server.start_session(replace_surrogates(text), key=key or None, **fields)
        self.session = turn.session
        return turn

    async def session_exists(self) -> bool:
        """Whether the session exists."""
        try:
            await self._server.session(self.session).info()
        except UnknownSession:
            return False
        return True

    async def load_tools(self) -> None:
        """Load the tools of the server, whose descriptions are shown in prompts."""
        for view in await self._server.tools():
            self.app.tools[view.name] = _RemoteTool(view)

    async def context(self) -> ContextReport:
        """What fills the context window of this session."""
        return await self._server.session(self.session).context(model=self._model)

    async def gates(self) -> list[Gate]:
        """List the open gates of this session, and of its sub-agent runs."""
        views = await self._server.session(self.session).gates()
        self._gate_views |= {view.gate.id: view for view in views}
        return [view.gate for view in views]

    async def answer(self, gate: Gate, by: str = "", **reply: Any) -> bool:
        """Answer a gate; the token says who answers, so `by` is not sent."""
        if gate.id not in self._gate_views:
            raise UnknownGate("the approval is no longer pending")
        await self._server.answer(self._gate_views[gate.id], **reply)
        return True

    async def read(self, file: FilePart) -> bytes:
        """Return the bytes of a file that a model has made."""
        return await self._server.session(self.session).read(file.blob)


class _RemoteTool:
    """A tool of the server, with what a prompt shows of it."""

    def __init__(self, view: api.ToolView) -> None:
        self.spec = ToolSpec(view.name, view.description, view.schema, origin=view.origin)

    def validate(self, arguments: object) -> None:
        """Do nothing: the server validates the answer."""


@asynccontextmanager
async def open_remote_chat(options: argparse.Namespace) -> AsyncGenerator[RemoteChat]:
    """Connect to the server of --connect, until the block ends.

    Raises:
        ConfigError: the address is invalid, or there is no token for it.
    """
    from everturn.cli.connect_token import load_connect_token

    check_remote_options(options)
    async with Server(options.connect, load_connect_token(options)) as server:
        yield await _make_chat(server, options)


@asynccontextmanager
async def attach_to_store_server(options: argparse.Namespace, busy: StoreBusy) -> AsyncGenerator[RemoteChat]:
    """Connect to the process that has the store, until the block ends; when it exits, to the process that takes over.

    Raises:
        StoreBusy: that process does not serve the store.
        ConfigError: an option is set that only a local run can honour.
    """
    from everturn.cli.store.handover import attach
    from everturn.cli.store.server import sidecar_path

    store = str(options.store)
    async with attach(sidecar_path(store, os.environ), busy) as connected:
        options.connect, options.store = connected.address, ""
        check_remote_options(options)
        if not options.agent and not options.no_folder:  # `everturn serve` opens no folders
            with suppress(EverturnError, OSError):
                options.agent = (await connected.server.open_folder(os.getcwd())).agent
        chat = await _make_chat(connected.server, options)
        if chat.session and not await chat.session_exists():
            raise ConfigError(
                f"process {connected.pid} has {store}, and there is no session {chat.session!r} in it; a server "
                "chooses the ids of new sessions: leave --session out"
            )
        yield chat


async def _make_chat(server: Server, options: argparse.Namespace) -> RemoteChat:
    chat = RemoteChat(server, options)
    if options.goes_on:
        chat.session = await find_last_remote_session(server, replace_surrogates(options.agent))
    if options.ask:
        await chat.load_tools()
    return chat
