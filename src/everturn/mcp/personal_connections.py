"""Personal connections: a server with `login = "user"`, to which each person connects with their own login.

A call runs on the connection of the user who started its turn, and on no other. Who that is comes from the log, so it is
the same after a restart, in a sub-agent run, and for a schedule or a hook. Where several people had a hand in a call
(another one sent a message into the turn, or edited the arguments), nobody's login is used: the text of one person
would act with the rights of another.

The tools that models see are the same for all: what people's connections have listed. Each connection lists for itself,
and a call needs the very tool, by its hash, in the caller's own list. The list is kept, so that a process that starts
knows the tools before anybody calls one.
"""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from everturn.core.canonical_json import JsonObject
from everturn.core.ports import ToolContext
from everturn.errors import ConfigError, EverturnError, ToolChanged, ToolError
from everturn.mcp.config import ServerSpec
from everturn.mcp.connection import ServerConnection, ServerState, ServerStatus
from everturn.mcp.login_store import EVERYBODY, LoginStore, Person
from everturn.mcp.offer_requests import OfferRequests
from everturn.mcp.published_tools import PublishedTools, hash_tool
from everturn.mcp.tasks import TaskClient
from everturn.mcp.token_storage import PersonTokens, login_name
from everturn.mcp.tool import LoginRequired, ServerTool
from everturn.mcp.tool_list import ListedTool
from everturn.mcp.trust import Trust

if TYPE_CHECKING:
    from everturn.mcp.session import McpSession

IDLE: Final = 300.0  # seconds after which a connection that is not used is closed
CHECK: Final = 30.0  # seconds between two looks for those
MOST: Final = 200  # connections at a time; the one that was used least recently is closed
KEPT_BYTES: Final = 5_000_000  # of a kept list of tools, uncompressed
CLOSING: Final = 5.0
NOBODY: Final = (
    'server {name} has login = "user", and this turn runs for no user: log in and send the message as a user, or set '
    'login = "shared" in the configuration of the server'
)
SEVERAL: Final = (
    "{tool} was not called: it would use the login of {user} at server {server}, and {others} had a hand in this call, by a "
    "message in this turn or by editing its arguments; whoever needs it asks for it in a message of their own"
)

log = logging.getLogger(__name__)


class _KeptTool(Struct):
    tool: ListedTool
    resumable: bool


class _Connected:
    """The connection of one person, with the tools that it has listed."""

    def __init__(self, connection: ServerConnection, since: float) -> None:
        self.connection, self.since = connection, since
        self.task: asyncio.Task[None] | None = None
        self.offers = connection.offers
        self.tools: dict[str, _KeptTool] = {}
        self.has_listed = False
        self.users, self.used = 0, time.monotonic()  # calls now, and when it was last used


class PersonalConnections:
    """A server, and the connections of the people who use it."""

    def __init__(
        self,
        spec: ServerSpec,
        servers: Sequence[str],
        trust: Trust,
        publish: Callable[[str, Sequence[ServerTool]], None],
        logins: LoginStore,
    ) -> None:
        self.spec, self._trust, self._logins = spec, trust, logins
        self.published = PublishedTools(spec, servers, trust, publish)
        self._people: dict[Person, _Connected] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._kept: dict[str, _KeptTool] | None = None  # of earlier connections; None: not read yet
        self._state: ServerState = "connecting"
        self._reason, self._since, self._problem = "", time.time(), ""
        self._wakeup, self._lock = asyncio.Event(), asyncio.Lock()
        self.first_attempt_done = asyncio.Event()
        self.most_connections = 0  # of one person at a time
        self.session: McpSession | None = None  # of the installation: never any
        self.offers = OfferRequests(self)

    # As of a connection ----------------------------------------------------------------------------------------------

    @property
    def status(self) -> ServerStatus:
        """The status, as far as it is the same for all people."""
        return ServerStatus(
            self.spec.name,
            self._state,
            self._reason,
            self._since,
            problems=(self._problem,) if self._problem else (),
            connects=len(self._people),
        )

    def reconnect(self, *, only_if_waiting: bool = False) -> None:
        """Look again at the trust, and connect anew where people are connected."""
        for connected in self._people.values():
            connected.connection.reconnect(only_if_waiting=only_if_waiting)
        self._wakeup.set()

    async def run(self) -> None:
        """Keep what is published up to date, and close idle connections, until cancelled."""
        try:
            while True:
                self._wakeup.clear()
                try:
                    await self._refresh()
                except EverturnError as error:
                    self._problem = str(error)
                self.first_attempt_done.set()
                with suppress(TimeoutError):
                    async with asyncio.timeout(CHECK):
                        await self._wakeup.wait()
                self._close_idle()
        finally:
            for person in list(self._people):
                self.close(person)
            if self._closing:
                await asyncio.wait(self._closing, timeout=CLOSING)
            self._set_state("down", "it was closed")

    async def _refresh(self) -> None:
        if not await asyncio.to_thread(self._trust.launch, self.spec):
            self._set_state("untrusted", "it is not trusted with its present configuration; review and trust it first")
            return
        if self._kept is None:
            self._kept = await self._read_kept()
        await self._publish()

    # Calls -------------------------------------------------------------------------------------------------------------

    async def call(
        self,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
        task: JsonObject | None = None,
    ) -> JsonObject:
        """Call a tool with the login of the user who started the turn.

        Raises:
            LoginRequired: the user has to log in; nothing was sent.
            ToolError: nobody's login can be used, or the call failed.
        """
        person = await self._person_of(tool, context)
        async with self.connected(person) as connected:
            own = connected.tools.get(tool.listed.name)
            if own is None:
                raise ToolError(f"server {self.spec.name} does not offer {tool.listed.name} to {person.user}")
            if hash_tool(own.tool) != hash_tool(tool.listed):
                raise ToolChanged(
                    f"server {self.spec.name} describes {tool.listed.name} to {person.user} in another way than it was "
                    "trusted; it can be called after a person has reviewed it and trusts it"
                )
            return await connected.connection.call(tool, arguments, context, answers, state, task)

    @asynccontextmanager
    async def task_client(self, tenant: str, by: str) -> AsyncGenerator[TaskClient]:
        """Requests about tasks, with the login of the user who started the turn.

        Raises:
            LoginRequired: the user has to log in.
            ToolError: the server cannot be used.
        """
        async with self.connected(Person(tenant, by)) as connected:
            yield connected.connection.tasks

    async def wait_until_decided(self) -> None:
        """Wait until the tools of earlier connections are published. Nobody is connected before a call."""
        await self.first_attempt_done.wait()

    async def _person_of(self, tool: ServerTool, context: ToolContext) -> Person:
        if not context.by:
            raise ToolError(NOBODY.format(name=self.spec.name))
        if others := await context.contributors():
            raise ToolError(
                SEVERAL.format(
                    tool=tool.listed.name, user=context.by, server=self.spec.name, others=" and ".join(sorted(others))
                )
            )
        return Person(context.tenant, context.by)

    @asynccontextmanager
    async def connected(self, person: Person) -> AsyncGenerator[_Connected]:
        """The connection of a person, which is not closed meanwhile.

        Raises:
            LoginRequired: the person has to log in.
            ToolError: the server cannot be used.
        """
        await self.first_attempt_done.wait()
        if self._state == "untrusted":
            raise ToolError(f"server {self.spec.name} cannot be used: {self._reason}")
        connected = await self._connect(person)
        connected.users += 1
        try:
            await connected.connection.wait_for_session()
            yield connected
        finally:
            connected.users -= 1
            connected.used = time.monotonic()

    async def _connect(self, person: Person) -> _Connected:
        saved = await PersonTokens(self.spec, self._logins, person).load()
        known = self._people.get(person)
        if saved.tokens is None:
            self.close(person)
            raise LoginRequired(f"server {self.spec.name} has no login of {person.user}")
        if known is not None and (known.since != saved.since or known.connection.status.state == "needs_login"):
            self.close(person)  # of an earlier login
            known = None
        if known is None:
            known = self._open(person, saved.since)
        return known

    def _open(self, person: Person, since: float) -> _Connected:
        self._close_idle(room=1)

        async def update(listed: list[ListedTool], resumable: bool) -> str:
            connected.tools = {tool.name: _KeptTool(tool, resumable) for tool in listed}
            connected.has_listed = True
            await self._publish()
            return ""

        connection = ServerConnection(self.spec, self._trust, update, PersonTokens(self.spec, self._logins, person))
        connected = _Connected(connection, since)
        connected.task = asyncio.create_task(connection.run(), name=f"mcp-{self.spec.name}-person")
        self._people[person] = connected
        self.most_connections = max(self.most_connections, 1)
        return connected

    def close(self, person: Person) -> None:
        """Close the connection of a person: the login has ended, or is another one."""
        connected = self._people.pop(person, None)
        if connected is not None and connected.task is not None:
            connected.task.cancel()
            self._closing.add(connected.task)
            connected.task.add_done_callback(self._closing.discard)

    def _close_idle(self, room: int = 0) -> None:
        now = time.monotonic()
        idle = sorted((item for item in self._people.items() if not item[1].users), key=lambda item: item[1].used)
        too_many = len(self._people) + room - MOST
        for at, (person, connected) in enumerate(idle):
            if at < too_many or now - connected.used > IDLE:
                self.close(person)

    # The list of tools -------------------------------------------------------------------------------------------------

    async def _publish(self) -> None:
        """Publish what people's connections list; of two descriptions of a tool, the trusted one.

        A tool that no connection lists stays as it was kept: it may be there for others.
        """
        async with self._lock:
            known = dict(self._kept or {})
            live: dict[str, list[_KeptTool]] = {}
            for connected in self._people.values():
                for name, kept in connected.tools.items():
                    live.setdefault(name, []).append(kept)
            for name, variants in live.items():
                known[name] = await self._choose(known.get(name), variants)
            resumable = {name: kept.resumable for name, kept in known.items()}
            self._problem = await self.published.update(self, [kept.tool for kept in known.values()], resumable)
            if known != self._kept:
                self._kept = known
                await self._write_kept(known)
            if known:
                self._set_state("ready", "")
            else:
                self._set_state("needs_login", "nobody has logged in yet; its tools are known after the first login")

    async def _choose(self, kept: _KeptTool | None, variants: list[_KeptTool]) -> _KeptTool:
        if kept is not None and any(hash_tool(variant.tool) == hash_tool(kept.tool) for variant in variants):
            variants = [variant for variant in variants if hash_tool(variant.tool) == hash_tool(kept.tool)] + variants
        for variant in variants:
            hashes = {variant.tool.name: hash_tool(variant.tool)}
            if await asyncio.to_thread(self._trust.tools, self.spec.name, hashes):
                return variant
        return variants[-1]

    def forget_tools(self) -> None:
        """Forget the tools that no connection lists any more; `reconnect` then publishes the others."""
        self._kept = {}

    async def _read_kept(self) -> dict[str, _KeptTool]:
        data = await self._logins.read(EVERYBODY, _list_name(self.spec))
        if data is None:
            return {}
        try:
            unpacker = zlib.decompressobj()
            return msgspec.json.decode(unpacker.decompress(data, KEPT_BYTES), type=dict[str, _KeptTool])
        except (msgspec.DecodeError, zlib.error):
            return {}

    async def _write_kept(self, known: Mapping[str, _KeptTool]) -> None:
        try:
            await self._logins.write(EVERYBODY, _list_name(self.spec), zlib.compress(msgspec.json.encode(known)))
        except ConfigError as error:  # after a restart, its tools are known once a person has connected
            log.info("the list of tools of MCP server %s is not kept: %s", self.spec.name, error)

    def _set_state(self, state: ServerState, reason: str) -> None:
        if (state, reason) != (self._state, self._reason):
            self._state, self._reason, self._since = state, reason, time.time()


def _list_name(spec: ServerSpec) -> str:
    return login_name(spec).replace(".json", ".tools")
