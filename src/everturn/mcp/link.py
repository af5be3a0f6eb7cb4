"""A server → its tools, kept within reach: connect, list, watch, and again when it is lost. One task owns all of it.

The library's contexts are entered and left in that task alone; calls only use what is open. There is never more than one
connection being made.
"""

from __future__ import annotations

import asyncio
import importlib
import random
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from msgspec import Struct

from everturn.core.canonical import JsonObject
from everturn.core.ports import ToolContext
from everturn.errors import ConfigError, EverturnError, NeedsLogin, ToolError
from everturn.mcp.calling import Calls, is_closed, told
from everturn.mcp.child import Child
from everturn.mcp.config import ServerSpec
from everturn.mcp.events import CLOSED, Events
from everturn.mcp.listing import Listed, full_names
from everturn.mcp.tool import ChangedTool, ServerTool
from everturn.mcp.trust import Trust, tool_hash

if TYPE_CHECKING:
    from everturn.mcp.session import Session

State = Literal["connecting", "ready", "down", "untrusted", "needs_login", "failed"]
"""Where a server stands. The last three wait for a person: to trust it, to log in, to mend what is configured."""

FIRST_WAIT: Final = 0.2  # seconds before it is tried again, doubled each time
LAST_WAIT: Final = 30.0
STEADY: Final = 5.0  # seconds for which it must have been there to be tried at once when it is lost
WATCH: Final = 30.0  # seconds of silence after which it is asked whether it is still there
DEBOUNCE: Final = 0.1  # seconds in which several changes of its tools are one
RECONNECT: Final = 10.0  # seconds that a call waits for a server that is away


class ServerStatus(Struct, frozen=True):
    """How a server is, for people."""

    name: str
    state: State
    reason: str = ""
    since: float = 0.0
    tools: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()  # tools that wait to be trusted
    problems: tuple[str, ...] = ()
    title: str = ""  # what it calls itself
    version: str = ""  # of the protocol it speaks
    pid: int = 0
    connects: int = 0  # how often it was tried
    stderr: str = ""


class _Lost(Exception):
    """A connection is over; the text says why."""


class _Untrusted(Exception):
    """It may not be started, or talked to."""


class Link(Events):
    """A server, and whatever connection to it there is."""

    def __init__(
        self,
        spec: ServerSpec,
        servers: Sequence[str],
        trust: Trust,
        publish: Callable[[str, Sequence[ServerTool]], None],
        tokens: Any = None,
    ) -> None:
        self.spec, self._servers, self._trust, self._publish, self._tokens = spec, servers, trust, publish, tokens
        self.calls = Calls(self)
        self.session: Session | None = None
        self.listed: list[Listed] = []
        self.connections, self.most_connections = 0, 0  # from the first attempt to the end: one at most
        self._state: State = "connecting"
        self._reason, self._since, self._connects = "", time.time(), 0
        self._problems: list[str] = []
        self._tools: list[ServerTool] = []
        self._title, self._version = "", ""
        self._child: Child | None = None
        self._why = ""  # the connection is over
        self._is_changed, self._is_suspect = False, False
        self._news, self._turned = asyncio.Event(), asyncio.Event()
        self.settled = asyncio.Event()  # the first attempt has come to something

    # What others ask -----------------------------------------------------------------------------------------------

    @property
    def status(self) -> ServerStatus:
        """How it is."""
        return ServerStatus(
            self.spec.name,
            self._state,
            self._reason,
            self._since,
            tuple(tool.spec.name for tool in self._tools),
            tuple(tool.spec.name for tool in self._tools if isinstance(tool, ChangedTool)),
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
    ) -> JsonObject:
        """Call a tool."""
        return await self.calls.call(tool, arguments, context, answers, state)

    async def reached(self) -> Session:
        """The session, once there is one.

        Raises:
            ToolError: there is none, and it says why.
        """
        patience = min(self.spec.timeout, RECONNECT)
        try:
            async with asyncio.timeout(patience):
                while self.session is None:
                    if self._state in ("untrusted", "needs_login", "failed"):
                        raise ToolError(f"server {self.spec.name} cannot be used: {self._reason}")
                    turned = self._turned
                    self.again(only_if_waiting=True)
                    await turned.wait()
        except TimeoutError:
            reason = self._reason or "it has not answered yet"
            raise ToolError(f"server {self.spec.name} is not reachable: {reason}; it is being reconnected") from None
        return self.session

    def again(self, *, only_if_waiting: bool = False) -> None:
        """Try it now, and do not wait any longer; a person has trusted it, logged in or mended something."""
        if not only_if_waiting:
            self._is_changed = True
        self._news.set()

    def suspect(self) -> None:
        """It did not answer a call in time: see whether it is still there."""
        self._is_suspect = True
        self._news.set()

    def gone(self, session: Session) -> None:
        """Nothing can be sent in this one any more."""
        if self.session is session:
            self.session = None
            self.lost(CLOSED)

    # What the session tells ----------------------------------------------------------------------------------------

    def lost(self, why: str) -> None:
        """It cannot be talked to any more."""
        self._why = self._why or why
        self._news.set()

    def changed(self) -> None:
        """It has other tools now."""
        self._is_changed = True
        self._news.set()

    def login(self, why: str) -> None:
        """It wants to know who we are."""
        self._to("needs_login", f"{why}; log in, or put what it wants into its headers")
        self.lost(why)

    async def asked(self, method: str, params: JsonObject) -> JsonObject:
        """It asks something in the middle of a call."""
        return await self.calls.asked(method, params)

    # The owner -----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep it within reach until cancelled."""
        wait = FIRST_WAIT
        try:
            while True:
                began = time.monotonic()
                await self._attempt()
                wait = FIRST_WAIT if time.monotonic() - began > STEADY and self._state == "down" else wait
                self.settled.set()
                if self._state == "down":
                    await self._pause(wait * (1 + random.random() / 4))
                    wait = min(wait * 2, LAST_WAIT)
                else:
                    await self._asked_for()
        finally:
            self.session = None
            self._to("down", "it was closed")

    async def _attempt(self) -> None:
        """One connection, from its making to its end; why it ended is the state that is left."""
        self._why, self._connects = "", self._connects + 1
        self._news.clear()
        self.connections += 1
        self.most_connections = max(self.most_connections, self.connections)
        try:
            await self._live()
        except Exception as error:
            first = _first(error)
            if isinstance(first, NeedsLogin | ConfigError | _Untrusted):
                self._to(_standing(first), told(first))
            elif self._state != "needs_login":
                self._to("down", self._end_of(first))
        finally:
            self.connections -= 1
            self.session = None

    async def _live(self) -> None:
        if not await asyncio.to_thread(self._trust.launch, self.spec):
            raise _Untrusted("it is not trusted, or not as it would be started now; trust it first")
        library = await _library()
        auth = None
        if self.spec.auth == "oauth":
            from everturn.mcp.oauth import auth_for

            if self._tokens is None:
                raise ConfigError(
                    "it wants a login, and nobody said where tokens are kept: McpServers(…, tokens='folder')"
                )
            auth = auth_for(self.spec, self._tokens)
        async with library.connected(self.spec, self, self._started, auth) as session:
            await self._list(session)
            self._know(session)
            self.session = session
            self._to("ready", "")
            self.settled.set()
            following = asyncio.create_task(self._follow(session))
            try:
                await self._watch(session)
            finally:
                self.session = None
                following.cancel()
                await asyncio.wait({following}, timeout=1)

    async def _watch(self, session: Session) -> None:
        """Look after a connection until it is lost."""
        while True:
            try:
                async with asyncio.timeout(WATCH):
                    await self._news.wait()
            except TimeoutError:
                self._is_suspect = True
            self._news.clear()
            if self._why:
                raise _Lost(self._why)
            if self._is_changed:
                await asyncio.sleep(DEBOUNCE)
                self._is_changed = False
                await self._list(session)
            # One that is busy with a call may have no time to answer; the call has a limit of its own.
            if self._is_suspect and not self.calls.count:
                self._is_suspect = False
                try:
                    await session.probe()
                except TimeoutError:
                    raise _Lost("it no longer answers") from None

    def _know(self, session: Session) -> None:
        if self._title and session.title != self._title:
            self._problems.append(f"it calls itself {session.title!r} now; it called itself {self._title!r} before")
        self._title, self._version = session.title, session.version

    async def _follow(self, session: Session) -> None:
        wait = FIRST_WAIT
        while await session.follow(self.changed):
            await asyncio.sleep(wait)
            wait = min(wait * 2, LAST_WAIT)
            self.changed()  # whatever happened while nobody listened

    async def _list(self, session: Session) -> None:
        """See what tools it has, and publish them if they are others than before."""
        listed, self._problems = await session.tools()
        hashes = {one.name: tool_hash(one.name, one.description, one.schema, one.annotations) for one in listed}
        trusted = await asyncio.to_thread(self._trust.tools, self.spec.name, hashes)
        names = full_names(self.spec.name, [one.name for one in listed], self._servers)
        tools = [
            ServerTool(self, self.spec, one, names[one.name], resumes=session.is_modern)
            if one.name in trusted
            else ChangedTool(self, self.spec, one, names[one.name])
            for one in listed
        ]
        is_news = [tool.spec for tool in tools] != [tool.spec for tool in self._tools]
        self.listed = listed
        if is_news:
            self._tools = tools
            try:
                self._publish(f"mcp:{self.spec.name}", tools)
            except EverturnError as error:  # a name that another tool has; the others stay as they were
                self._problems.append(str(error))

    def _started(self, child: Child) -> None:
        self._child = child

    async def _pause(self, seconds: float) -> None:
        """Wait before the next attempt; a call that comes in the meantime does not wait for all of it."""
        await asyncio.sleep(min(seconds, 1.0))
        self._news.clear()
        try:
            async with asyncio.timeout(max(seconds - 1.0, 0)):
                await self._news.wait()
        except TimeoutError:
            pass

    async def _asked_for(self) -> None:
        while not self._is_changed:
            self._news.clear()
            await self._news.wait()
        self._is_changed = False
        self._to("connecting", "")

    def _to(self, state: State, reason: str) -> None:
        if (state, reason) != (self._state, self._reason):
            self._state, self._reason, self._since = state, reason, time.time()
            turned, self._turned = self._turned, asyncio.Event()
            turned.set()

    def _end_of(self, error: BaseException) -> str:
        """Why a connection is over, as well as we can tell."""
        child = self._child
        # The process itself knows best: what the library saw is only that it was gone.
        why = child.why if child is not None and child.why and child.why != "it was stopped" else ""
        # That it was closed is what comes of an answer that could not be taken, and says nothing.
        is_told = isinstance(error, _Lost | TimeoutError) or (self._why == CLOSED and not is_closed(error))
        text = why or (told(error) if is_told else self._why or told(error))
        said = [line for line in (child.stderr if child is not None else "").splitlines() if line.strip()]
        return f"{text}; it said: {said[-1].strip()[:300]}" if said else text


def _first(error: BaseException) -> BaseException:
    """What really happened, out of the groups in which task groups wrap it."""
    found: Any = error
    while isinstance(found, BaseExceptionGroup):
        found = cast("BaseExceptionGroup[Any]", found).exceptions[0]
    return cast("BaseException", found)


def _standing(error: BaseException) -> State:
    if isinstance(error, _Untrusted):
        return "untrusted"
    return "needs_login" if isinstance(error, NeedsLogin) else "failed"


async def _library() -> Any:
    try:
        return await asyncio.to_thread(importlib.import_module, "everturn.mcp.session")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("mcp", "mcp_types", "httpx2", "anyio", "jsonschema"):
            raise ConfigError("tools of MCP servers need a library: pip install 'everturn[mcp]'") from None
        raise
