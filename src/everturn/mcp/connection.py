"""MCP server connection: one task connects to a server, lists its tools, watches it, and reconnects when it is lost.

The library's contexts are entered and left in that task alone; calls only use what is open. There is never more than
one connection attempt.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.ports import ToolContext
from everturn.errors import ConfigError, NeedsLogin, ToolError, leaf_errors
from everturn.mcp.config import ServerSpec
from everturn.mcp.events import CLOSED, SessionEvents
from everturn.mcp.in_flight_calls import InFlightCalls, error_text, is_closed
from everturn.mcp.offer_requests import OfferRequests
from everturn.mcp.subprocess import ServerProcess
from everturn.mcp.task_requests import TaskRequests
from everturn.mcp.tasks import TaskClient, related_task
from everturn.mcp.token_storage import TokenStorage
from everturn.mcp.tool import LoginRequired, ServerTool
from everturn.mcp.tool_list import ListedTool
from everturn.mcp.trust import Trust

if TYPE_CHECKING:
    from everturn.mcp.session import McpSession

ServerState = Literal["connecting", "ready", "down", "untrusted", "needs_login", "failed"]
"""State of a server. The last three wait for a person: to trust it, to log in, or to fix its configuration."""

FIRST_WAIT: Final = 0.2  # seconds before a reconnect, doubled each time
LAST_WAIT: Final = 30.0
STEADY: Final = 5.0  # seconds that a connection must have lasted to reset that delay
WATCH: Final = 30.0  # seconds without news after which the server is probed
DEBOUNCE: Final = 0.1  # seconds in which several tool list changes count as one
RECONNECT: Final = 10.0  # seconds that a call waits for a server to reconnect


ToolListUpdate = Callable[[list[ListedTool], bool], Awaitable[str]]
"""Takes the tools that a connection has listed, and whether their calls can be resumed; returns a problem, or ""."""


class ServerStatus(Struct, frozen=True):
    """Status of a server, for user interfaces."""

    name: str
    state: ServerState
    reason: str = ""
    since: float = 0.0
    tools: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # tools that wait to be trusted
    problems: tuple[str, ...] = ()
    title: str = ""  # name and version that the server reports
    version: str = ""  # of the protocol
    pid: int = 0
    connects: int = 0  # number of connection attempts
    stderr: str = ""


class _ConnectionLost(Exception):
    """The connection has ended; the text says why."""


class _Untrusted(Exception):
    """The server may not be started or connected to."""


class ServerConnection(SessionEvents):
    """A server, and its current connection, if any."""

    def __init__(
        self,
        spec: ServerSpec,
        trust: Trust,
        update: ToolListUpdate,
        tokens: TokenStorage | None = None,
    ) -> None:
        self.spec, self._trust, self._update, self._tokens = spec, trust, update, tokens
        self.calls, self.offers, self.tasks = InFlightCalls(self), OfferRequests(self), TaskRequests(self)
        self.session: McpSession | None = None
        self.connections, self.most_connections = 0, 0  # now, and at most so far: never above one
        self._state: ServerState = "connecting"
        self._reason, self._since, self._connects = "", time.time(), 0
        self._problems: list[str] = []
        self._title, self._version = "", ""
        self._child: ServerProcess | None = None
        self._why = ""  # why the connection has ended; "": it has not
        self._is_changed, self._is_suspect = False, False
        self._wakeup, self._state_changed = asyncio.Event(), asyncio.Event()
        self.first_attempt_done = asyncio.Event()  # the first attempt has succeeded or failed

    # For the source and the calls ------------------------------------------------------------------------------------

    @property
    def needs_login(self) -> bool:
        """Whether the server accepts no token that there is."""
        return self._state == "needs_login"

    @property
    def status(self) -> ServerStatus:
        """The current status, without the tools."""
        return ServerStatus(
            self.spec.name,
            self._state,
            self._reason,
            self._since,
            (),
            (),
            tuple(self._problems),
            self._title,
            self._version,
            self._child.pid if self._child is not None else 0,
            self._connects,
            self._child.stderr if self._child is not None else "",
        )

    async def call(
        self,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
        task: JsonObject | None = None,
    ) -> JsonObject:
        """Call a tool."""
        return await self.calls.call(tool, arguments, context, answers, state, task)

    @asynccontextmanager
    async def task_client(self, tenant: str, by: str) -> AsyncGenerator[TaskClient]:
        """Requests about tasks."""
        yield self.tasks

    async def wait_for_session(self) -> McpSession:
        """Return the session, once there is one.

        Raises:
            ToolError: the server cannot be used, or did not connect in time; the text says why.
        """
        timeout = min(self.spec.timeout, RECONNECT)
        try:
            async with asyncio.timeout(timeout):
                while self.session is None:
                    if self._state == "needs_login" and self.spec.is_per_person:
                        raise LoginRequired(f"server {self.spec.name}: {self._reason}")
                    if self._state in ("untrusted", "needs_login", "failed"):
                        raise ToolError(f"server {self.spec.name} cannot be used: {self._reason}")
                    turned = self._state_changed
                    self.reconnect(only_if_waiting=True)
                    await turned.wait()
        except TimeoutError:
            reason = self._reason or "it has not answered yet"
            raise ToolError(f"server {self.spec.name} is not reachable: {reason}; Everturn is reconnecting") from None
        return self.session

    async def wait_until_decided(self) -> None:
        """Wait until the server is connected, or cannot be used before a person has done something."""
        await self.first_attempt_done.wait()
        while self._state in ("connecting", "down"):
            await self._state_changed.wait()

    def reconnect(self, *, only_if_waiting: bool = False) -> None:
        """Connect now instead of waiting: a person has trusted the server, logged in or fixed something."""
        if not only_if_waiting:
            self._is_changed = True
        self._wakeup.set()

    def request_probe(self) -> None:
        """Probe the server, because it did not answer a call in time."""
        self._is_suspect = True
        self._wakeup.set()

    def drop_session(self, session: McpSession) -> None:
        """Drop a session in which nothing can be sent any more."""
        if self.session is session:
            self.session = None
            self.connection_lost(CLOSED)

    # Events of the session -----------------------------------------------------------------------------------------

    def connection_lost(self, why: str) -> None:
        """The connection has ended."""
        self._why = self._why or why
        self._wakeup.set()

    def tools_changed(self) -> None:
        """The list of tools has changed."""
        self._is_changed = True
        self._wakeup.set()

    def task_status_changed(self, params: JsonObject) -> None:
        """The server has reported the status of a task."""
        self.tasks.status_changed(params)

    def login_required(self, why: str) -> None:
        """The server requires authentication."""
        self._set_state("needs_login", f"{why}; log in, or put what it wants into its headers")
        self.connection_lost(why)

    def _login_refused(self, text: str) -> None:
        self._set_state("needs_login", text)
        self.connection_lost(text)

    async def answer_request(self, method: str, params: JsonObject) -> JsonObject:
        """Answer a request of the server during a call."""
        if task := related_task(params):
            return await self.tasks.ask(task, method, params)
        return await self.calls.answer_request(method, params)

    # The task ------------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep the server connected until cancelled."""
        wait = FIRST_WAIT
        try:
            while True:
                started = time.monotonic()
                await self._attempt()
                wait = FIRST_WAIT if time.monotonic() - started > STEADY and self._state == "down" else wait
                self.first_attempt_done.set()
                if self._state == "down":
                    await self._pause(wait * (1 + random.random() / 4))
                    wait = min(wait * 2, LAST_WAIT)
                else:
                    await self._wait_for_retry()
        finally:
            self.session = None
            self._set_state("down", "it was closed")

    async def _attempt(self) -> None:
        """Make one connection and use it until it ends; the reason for its end becomes the state."""
        self._why, self._connects = "", self._connects + 1
        self._wakeup.clear()
        self.connections += 1
        self.most_connections = max(self.most_connections, self.connections)
        try:
            await self._connect_and_serve()
        except Exception as error:
            first = leaf_errors(error)[0]
            if isinstance(first, NeedsLogin | ConfigError | _Untrusted):
                self._set_state(_state_for(first), error_text(first))
            elif self._state != "needs_login":
                self._set_state("down", self._describe_end(first))
        finally:
            self.connections -= 1
            self.session = None

    async def _connect_and_serve(self) -> None:
        if not await asyncio.to_thread(self._trust.launch, self.spec):
            raise _Untrusted("it is not trusted with its present configuration; review and trust it first")
        library = await _import_session_module()
        auth = None
        if self.spec.auth == "oauth":
            from everturn.mcp.oauth import auth_for

            if self._tokens is None:
                raise ConfigError(
                    "it requires a login, and there is no folder for tokens: McpServers(…, tokens='folder')"
                )
            auth = auth_for(self.spec, self._tokens, self._login_refused)
        async with library.open_session(self.spec, self, self._started, auth) as session:
            await self._list(session)
            self._note_identity(session)
            self.session = session
            self._set_state("ready", "")
            self.first_attempt_done.set()
            subscription = asyncio.create_task(self._follow(session))
            try:
                await self._watch(session)
            finally:
                self.session = None
                self.tasks.close()
                subscription.cancel()
                await asyncio.wait({subscription}, timeout=1)

    async def _watch(self, session: McpSession) -> None:
        """Watch a connection until it is lost: list changes and failed probes."""
        while True:
            try:
                async with asyncio.timeout(WATCH):
                    await self._wakeup.wait()
            except TimeoutError:
                self._is_suspect = True
            self._wakeup.clear()
            if self._why:
                raise _ConnectionLost(self._why)
            if self._is_changed:
                await asyncio.sleep(DEBOUNCE)
                self._is_changed = False
                await self._list(session)
            # A server that is busy with a call may not answer a probe; the call has its own timeout.
            if self._is_suspect and not self.calls.count:
                self._is_suspect = False
                try:
                    await session.probe()
                except TimeoutError:
                    raise _ConnectionLost("it no longer answers") from None

    def _note_identity(self, session: McpSession) -> None:
        if self._title and session.title != self._title:
            self._problems.append(f"it now reports the name {session.title!r}; before, it was {self._title!r}")
        self._title, self._version = session.title, session.version

    async def _follow(self, session: McpSession) -> None:
        wait = FIRST_WAIT
        while await session.follow(self.tools_changed):
            await asyncio.sleep(wait)
            wait = min(wait * 2, LAST_WAIT)
            self.tools_changed()  # the list may have changed while there was no subscription

    async def _list(self, session: McpSession) -> None:
        """List the tools."""
        listed, self._problems = await session.tools()
        if problem := await self._update(listed, session.is_modern):
            self._problems.append(problem)

    def _started(self, child: ServerProcess) -> None:
        self._child = child

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; a call that arrives in the meantime shortens the wait."""
        await asyncio.sleep(min(seconds, 1.0))
        self._wakeup.clear()
        try:
            async with asyncio.timeout(max(seconds - 1.0, 0)):
                await self._wakeup.wait()
        except TimeoutError:
            pass

    async def _wait_for_retry(self) -> None:
        while not self._is_changed:
            self._wakeup.clear()
            await self._wakeup.wait()
        self._is_changed = False
        self._set_state("connecting", "")

    def _set_state(self, state: ServerState, reason: str) -> None:
        if (state, reason) != (self._state, self._reason):
            self._state, self._reason, self._since = state, reason, time.time()
            turned, self._state_changed = self._state_changed, asyncio.Event()
            turned.set()

    def _describe_end(self, error: BaseException) -> str:
        """Describe why a connection ended, as well as that is known."""
        child = self._child
        # The process knows best why it ended; the library only saw that it was gone.
        why = (
            child.end_reason if child is not None and child.end_reason and child.end_reason != "it was stopped" else ""
        )
        # "Connection closed" is only the consequence of a response that could not be read, and says nothing.
        is_specific = isinstance(error, _ConnectionLost | TimeoutError) or (
            self._why == CLOSED and not is_closed(error)
        )
        text = why or (error_text(error) if is_specific else self._why or error_text(error))
        stderr_lines = [line for line in (child.stderr if child is not None else "").splitlines() if line.strip()]
        return f"{text}; it said: {stderr_lines[-1].strip()[:300]}" if stderr_lines else text


def _state_for(error: BaseException) -> ServerState:
    if isinstance(error, _Untrusted):
        return "untrusted"
    return "needs_login" if isinstance(error, NeedsLogin) else "failed"


async def _import_session_module() -> Any:
    try:
        return await asyncio.to_thread(importlib.import_module, "everturn.mcp.session")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("mcp", "mcp_types", "httpx2", "anyio", "jsonschema"):
            raise ConfigError("MCP servers need the mcp library: pip install 'everturn[mcp]'") from None
        raise
