"""The `mcp` library, held at arm's length: a server → a `Session` that lists tools and calls them, in plain JSON.

This is the one module, with `http` and `pipes`, that imports it; whoever wants it imports it in a thread, for that takes a second.
Answers pass by the library's models: one bad tool, or a piece of a result that it does not know, would cost all.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any, Final, cast

import anyio
import mcp_types as types
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.dispatcher import CallOptions, DispatchContext, OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.transport_context import TransportContext
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import TypeAdapter, ValidationError

from everturn.core.canonical import JsonObject
from everturn.mcp.child import Child, start
from everturn.mcp.config import ServerSpec
from everturn.mcp.events import CLOSED as OVER
from everturn.mcp.events import Events, Sending
from everturn.mcp.http import http_streams
from everturn.mcp.listing import MOST_TOOLS, Listed, bounded, read_tools
from everturn.mcp.logs import harmless
from everturn.mcp.pipes import Asked, Reading, Writing

PROBE: Final = 5.0  # seconds to say whether it speaks the modern protocol; an old server may not answer at all
INITIALIZE: Final = 10.0
LISTING: Final = 10.0
PAGES: Final = 20
PROBLEMS: Final = 100  # that are told
ASKED: Final = ("elicitation/create", "sampling/createMessage", "roots/list")
CLOSED: Final = types.CONNECTION_CLOSED
_SHELL: Final[dict[str, Any]] = {"content": [], "resultType": "complete"}  # what the library sees of a result
_answers = TypeAdapter(types.InputResponses)
harmless()

_sending: ContextVar[Sending | None] = ContextVar("sending", default=None)
_pages: ContextVar[list[tuple[list[Listed], list[str]]] | None] = ContextVar("pages", default=None)


class _Sieve(JSONRPCDispatcher[TransportContext]):
    """Lets the library see only what it cannot choke on, and keeps the rest for us."""

    def __init__(self, read: Any, write: Any, events: Events) -> None:
        super().__init__(read, write)
        self._events = events

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """Ask, and sift what comes back."""
        sending = _sending.get()
        if method == "tools/call" and sending is not None:
            opts = {**(opts or {}), "cancel_on_abandon": sending.tell}
            sending.result = await super().send_raw_request(method, params, opts, **more)
            return dict(_SHELL)
        raw = await super().send_raw_request(method, params, opts, **more)
        if method == "tools/list":
            # Its check of schemas takes milliseconds for each tool.
            found, problems = await asyncio.to_thread(read_tools, raw.get("tools"))
            if (pages := _pages.get()) is not None:
                pages.append((found, problems))
            raw = {**raw, "tools": [{"name": one.name, "inputSchema": one.schema} for one in found]}
        return raw

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        **more: Any,
    ) -> None:
        """Read; questions to a person are ours to answer."""

        async def asked(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            if method not in ASKED:
                return await on_request(context, method, params)
            try:
                return await self._events.asked(method, dict(params or {}))
            except PermissionError as error:
                raise MCPError(-1, str(error)) from None

        try:
            await super().run(asked, on_notify, on_notify_intercept, **more)
        finally:
            self._events.lost(OVER)


class Session:
    """A server that answers."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    @property
    def is_modern(self) -> bool:
        """Whether what it asks in a call is written down, and can be answered later and elsewhere."""
        return self._session.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def version(self) -> str:
        """Of the protocol."""
        return self._session.protocol_version or ""

    @property
    def title(self) -> str:
        """What it calls itself."""
        info = self._session.server_info
        return f"{info.name} {info.version}".strip()[:200] if info is not None else ""

    async def tools(self) -> tuple[list[Listed], list[str]]:
        """All tools that make sense, and what is wrong with the others."""
        pages: list[tuple[list[Listed], list[str]]] = []
        token = _pages.set(pages)
        try:
            seen, is_whole = await self._list()
        finally:
            _pages.reset(token)
        listed = [one for page in pages for one in page[0]]
        tools, problems = await asyncio.to_thread(bounded, listed)
        problems += [problem for page in pages for problem in page[1]][:PROBLEMS]
        # The library leaves out those whose arguments it could not put into headers.
        problems += [f"tool {one.name!r}: its x-mcp-header cannot be sent" for one in tools if one.name not in seen]
        if not is_whole:
            problems.append("it has more pages of tools than were read; those on the others were left out")
        return [one for one in tools if one.name in seen], problems

    async def _list(self) -> tuple[set[str], bool]:
        seen: set[str] = set()
        cursor: str | None = None
        try:
            with anyio.fail_after(LISTING):
                for _ in range(PAGES):
                    params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
                    page = await self._session.list_tools(params=params)
                    seen |= {tool.name for tool in page.tools}
                    cursor = page.next_cursor
                    if not cursor or len(seen) > MOST_TOOLS:
                        break
        except TimeoutError:
            raise TimeoutError(f"it did not say within {LISTING:g} s which tools it has") from None
        return seen, not cursor

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        sending: Sending,
        *,
        key: str,
        tell: Callable[[str], None],
        answers: JsonObject | None = None,
        state: str | None = None,
    ) -> JsonObject:
        """Call a tool; what comes back is its result, or what it wants to know first.

        Raises:
            MCPError: it refused, or was lost (`CLOSED`).
        """

        async def told(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            tell(message[:500] if message else share)

        token = _sending.set(sending)
        try:
            await self._session.call_tool(
                name,
                arguments,
                progress_callback=told,
                input_responses=_answers.validate_python(answers) if answers else None,
                request_state=state,
                meta=cast("Any", {"everturn/key": key}),
                allow_input_required=True,
            )
        finally:
            _sending.reset(token)
        return sending.result

    async def probe(self) -> None:
        """See whether it still answers."""
        with anyio.fail_after(INITIALIZE):
            if self.is_modern:
                await self._session.send_discover(LATEST_MODERN_VERSION)
            else:
                await self._session.send_ping()

    async def follow(self, changed: Callable[[], None]) -> bool:
        """Be told when it has other tools, for as long as it tells; False if it does not (an old one does by itself)."""
        can = self._session.server_capabilities
        if not self.is_modern or can is None or can.tools is None or not can.tools.list_changed:
            return False
        try:
            async with listen(self._session, tools_list_changed=True) as subscription:
                async for _ in subscription:
                    changed()
        except MCPError as error:
            return error.code != types.METHOD_NOT_FOUND
        except (SubscriptionLost, TimeoutError):
            pass
        return True


@asynccontextmanager
async def connected(
    spec: ServerSpec, events: Events, started: Callable[[Child], None], auth: Any = None
) -> AsyncGenerator[Session]:
    """A session with a server. Whoever enters this must be the one who leaves it, in the same task."""
    if spec.url:
        async with (
            http_streams(spec, events, _sending, auth) as (read, write),
            _session(read, write, events) as session,
        ):
            yield session
        return
    child = await start(spec)
    started(child)
    try:
        asked = Asked()
        async with _session(Reading(child, events, asked), Writing(child, _sending, asked), events) as session:
            yield session
    finally:
        await child.stop()


@asynccontextmanager
async def _session(read: Any, write: Any, events: Events) -> AsyncGenerator[Session]:
    async def heard(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            events.changed()

    async with ClientSession(
        dispatcher=_Sieve(read, write, events),
        message_handler=heard,
        client_info=types.Implementation(name="everturn", version="0.1.0"),
        # Never called, but for them the server is told that it may ask.
        sampling_callback=_unused,
        elicitation_callback=_unused,
        list_roots_callback=_unused,
    ) as session:
        await _greet(session)
        yield Session(session)


async def _unused(context: ClientRequestContext, params: Any = None) -> Any:
    return types.ErrorData(code=types.INVALID_REQUEST, message="not supported")


async def _greet(session: ClientSession) -> None:
    """Find out what it speaks: the modern protocol if it says so, else the old one."""
    if await _discover(session):
        return
    try:
        with anyio.fail_after(INITIALIZE):
            await session.initialize()
    except TimeoutError:
        raise TimeoutError(f"it did not answer within {PROBE + INITIALIZE:g} s of being greeted") from None
    except MCPError as error:
        # It was slow to start, and had taken the first greeting in the meantime.
        if error.code != types.UNSUPPORTED_PROTOCOL_VERSION or not await _discover(session):
            raise


async def _discover(session: ClientSession) -> bool:
    try:
        with anyio.fail_after(PROBE):
            await session.discover()
    except MCPError as error:
        if error.code == CLOSED:
            raise
        return False
    except (TimeoutError, RuntimeError, ValidationError):
        return False
    return True
