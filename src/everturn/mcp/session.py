"""MCP session: isolates the `mcp` library behind `McpSession`, which lists tools and calls them in plain JSON.

Only this module, `http` and `stdio_bridge` import the library; import them in a thread, because that takes a second.
Responses bypass the library's models: one invalid tool, or an unknown block in a result, would fail the whole response.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
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
from msgspec.structs import replace
from pydantic import TypeAdapter, ValidationError

from everturn.core.canonical_json import JsonObject
from everturn.mcp.config import ServerSpec
from everturn.mcp.events import CLOSED as OVER
from everturn.mcp.events import SentCall, SessionEvents
from everturn.mcp.http import http_streams
from everturn.mcp.logs import sanitize_library_logs
from everturn.mcp.offers import MOST_PROMPTS, MOST_RESOURCES, ServerOffers, read_prompts, read_resources
from everturn.mcp.stdio_bridge import OpenServerRequests, StdioReadStream, StdioWriteStream
from everturn.mcp.subprocess import ServerProcess, start_process
from everturn.mcp.tasks import STATUS
from everturn.mcp.tool_list import MOST_TOOLS, ListedTool, limit_tools, read_tools
from everturn.version import __version__

PROBE: Final = 5.0  # seconds to discover the modern protocol; an old server may not answer at all
INITIALIZE: Final = 10.0
LISTING: Final = 10.0
PAGES: Final = 20
PROBLEMS: Final = 100  # that are reported
CLIENT_REQUESTS: Final = ("elicitation/create", "sampling/createMessage", "roots/list")
CLOSED: Final = types.CONNECTION_CLOSED
_EMPTY_RESULT: Final[dict[str, Any]] = {"content": [], "resultType": "complete"}  # what the library sees of a result
_EMPTY_OFFERS: Final[dict[str, dict[str, Any]]] = {
    "prompts/list": {"prompts": []},
    "resources/list": {"resources": []},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": []},
}  # what the library sees of prompts and resources
_CACHE_HINTS: Final[dict[str, Any]] = {"ttlMs": 0, "cacheScope": "private"}
_answers = TypeAdapter(types.InputResponses)
_any_object = TypeAdapter(dict[str, Any])
sanitize_library_logs()

_sending: ContextVar[SentCall | None] = ContextVar("sending", default=None)
_offer: ContextVar[SentCall | None] = ContextVar("offer", default=None)
_pages: ContextVar[list[tuple[list[ListedTool], list[str]]] | None] = ContextVar("pages", default=None)


class _MessageFilter(JSONRPCDispatcher[TransportContext]):
    """Shows the library only what it can process, and keeps the rest for `McpSession`."""

    def __init__(self, read: Any, write: Any, events: SessionEvents) -> None:
        super().__init__(read, write)
        self._events = events

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None, **more: Any
    ) -> dict[str, Any]:
        """Send a request, and filter its response."""
        sending = _sending.get()
        if method == "tools/call" and sending is not None:
            opts = {**(opts or {}), "cancel_on_abandon": sending.cancels_at_server}
            if sending.task is not None:
                params = {**(params or {}), "task": sending.task}
            sending.result = await super().send_raw_request(method, params, opts, **more)
            return dict(_EMPTY_RESULT)
        raw = await super().send_raw_request(method, params, opts, **more)
        if (offer := _offer.get()) is not None and method in _EMPTY_OFFERS:
            offer.result = raw
            return {**_EMPTY_OFFERS[method], "resultType": "complete", **_CACHE_HINTS}
        if method == "tools/list":
            # Validating the schema takes milliseconds per tool.
            tools, problems = await asyncio.to_thread(read_tools, raw.get("tools"))
            if (pages := _pages.get()) is not None:
                pages.append((tools, problems))
            raw = {**raw, "tools": [{"name": tool.name, "inputSchema": tool.schema} for tool in tools]}
        return raw

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        **more: Any,
    ) -> None:
        """Read messages; requests for a person's answer go to the owner of the session."""

        async def handle_request(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> dict[str, Any]:
            if method not in CLIENT_REQUESTS:
                return await on_request(context, method, params)
            try:
                return await self._events.answer_request(method, dict(params or {}))
            except PermissionError as error:
                raise MCPError(-1, str(error)) from None
            except asyncio.CancelledError:
                # The library answers with an error when a connection is closed, and a server may take that for the answer
                # of the person. It does not answer a request that was cancelled.
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    context.cancel_requested.set()
                raise

        async def handle_notification(
            context: DispatchContext[TransportContext], method: str, params: Mapping[str, Any] | None
        ) -> None:
            if method == STATUS:
                self._events.task_status_changed(dict(params or {}))
            else:
                await on_notify(context, method, params)

        try:
            await super().run(handle_request, handle_notification, on_notify_intercept, **more)
        finally:
            self._events.connection_lost(OVER)


class McpSession:
    """A session with a server."""

    def __init__(self, session: ClientSession) -> None:
        self._session = session

    @property
    def is_modern(self) -> bool:
        """Whether questions during a call are part of its result, so that they can be answered later and by another
        process."""
        return self._session.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def version(self) -> str:
        """Version of the protocol."""
        return self._session.protocol_version or ""

    @property
    def title(self) -> str:
        """Name and version that the server reports."""
        info = self._session.server_info
        return f"{info.name} {info.version}".strip()[:200] if info is not None else ""

    async def tools(self) -> tuple[list[ListedTool], list[str]]:
        """Return all valid tools, and the problems of the others."""
        pages: list[tuple[list[ListedTool], list[str]]] = []
        token = _pages.set(pages)
        try:
            seen, is_complete = await self._list()
        finally:
            _pages.reset(token)
        listed = [tool for page in pages for tool in page[0]]
        tools, problems = await asyncio.to_thread(limit_tools, listed)
        problems += [problem for page in pages for problem in page[1]][:PROBLEMS]
        # The library leaves out tools whose arguments it could not put into headers.
        problems += [f"tool {tool.name!r}: its x-mcp-header cannot be sent" for tool in tools if tool.name not in seen]
        if not is_complete:
            problems.append("it has more pages of tools than were read; those on the others were left out")
        supported = [tool if self._has_tasks else replace(tool, task_support="forbidden") for tool in tools]
        return [tool for tool in supported if tool.name in seen], problems

    @property
    def _has_tasks(self) -> bool:
        """Whether the server takes calls as tasks of the protocol version 2025-11-25."""
        capabilities = self._session.server_capabilities
        tasks = capabilities.tasks if capabilities is not None else None
        tools = tasks.requests.tools if tasks is not None and tasks.requests is not None else None
        return not self.is_modern and tools is not None and tools.call is not None

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
            raise TimeoutError(f"it did not list its tools within {LISTING:g} s") from None
        return seen, not cursor

    async def call(
        self,
        name: str,
        arguments: JsonObject,
        sending: SentCall,
        *,
        key: str,
        tell: Callable[[str], None],
        answers: JsonObject | None = None,
        state: str | None = None,
    ) -> JsonObject:
        """Call a tool; return its result, or the input that the server requires first.

        Raises:
            MCPError: the server refused, or the connection was lost (`CLOSED`).
        """

        async def report_progress(progress: float, total: float | None, message: str | None) -> None:
            share = f"{progress:g} of {total:g}" if total else f"{progress:g}"
            tell(message[:500] if message else share)

        token = _sending.set(sending)
        try:
            await self._session.call_tool(
                name,
                arguments,
                progress_callback=report_progress,
                input_responses=_answers.validate_python(answers) if answers else None,
                request_state=state,
                meta=cast("Any", {"everturn/key": key}),
                allow_input_required=True,
            )
        finally:
            _sending.reset(token)
        return sending.result

    async def request_task(self, method: str, task: str, seconds: float | None) -> JsonObject:
        """Send a request about a task; its result is as the server sent it.

        Raises:
            MCPError: the server refused, or the connection was lost (`CLOSED`).
            TimeoutError: it did not answer in time.
        """
        request: types.Request[Any, Any]
        if method == "tasks/get":
            request = types.GetTaskRequest(params=types.GetTaskRequestParams(task_id=task))
        elif method == "tasks/result":
            request = types.GetTaskPayloadRequest(params=types.GetTaskPayloadRequestParams(task_id=task))
        else:
            request = types.CancelTaskRequest(params=types.CancelTaskRequestParams(task_id=task))
        with anyio.fail_after(seconds):
            return cast("JsonObject", await self._session.send_request(request, cast("Any", _any_object)))

    # Prompts and resources -----------------------------------------------------------------------------------------

    async def offers(self) -> ServerOffers:
        """Return the prompts and resources that the server lists; none of a kind that it does not have."""
        capabilities = self._session.server_capabilities
        prompts: list[Any] = []
        resources: list[Any] = []
        if capabilities is not None and capabilities.prompts is not None:
            prompts = await self._list_offers("prompts", self._session.list_prompts, MOST_PROMPTS)
        if capabilities is not None and capabilities.resources is not None:
            resources = await self._list_offers("resources", self._session.list_resources, MOST_RESOURCES)
        known_prompts, problems = read_prompts(prompts)
        known_resources, more = read_resources(resources)
        return ServerOffers(tuple(known_prompts), tuple(known_resources), (*problems, *more)[:PROBLEMS])

    async def _list_offers(self, key: str, ask: Callable[..., Awaitable[object]], most: int) -> list[Any]:
        rows: list[Any] = []
        cursor: str | None = None
        for _ in range(PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor else None
            raw = await self._ask_offer(lambda params=params: ask(params=params), LISTING)
            listed: Any = raw.get(key)
            rows += cast("list[Any]", listed)[: most + 1] if isinstance(listed, list) else []
            cursor = raw.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or len(rows) > most:
                break
        return rows[: most + 1]

    async def prompt(self, name: str, arguments: dict[str, str], seconds: float) -> JsonObject:
        """Get a prompt with its arguments filled in, as the server sent it."""
        return await self._ask_offer(lambda: self._session.get_prompt(name, arguments or None), seconds)

    async def resource(self, uri: str, seconds: float) -> JsonObject:
        """Read a resource, as the server sent it."""
        return await self._ask_offer(lambda: self._session.read_resource(uri), seconds)

    async def _ask_offer(self, ask: Callable[[], Awaitable[object]], seconds: float) -> JsonObject:
        """Send a request about prompts or resources; its result bypasses the models of the library.

        Raises:
            MCPError: the server refused, or the connection was lost (`CLOSED`).
            TimeoutError: it did not answer in time.
        """
        offer = SentCall()
        token = _offer.set(offer)
        try:
            with anyio.fail_after(seconds):
                await ask()
        except TimeoutError:
            raise TimeoutError(f"it did not answer within {seconds:g} s") from None
        finally:
            _offer.reset(token)
        return offer.result

    async def probe(self) -> None:
        """Check that the server still answers."""
        with anyio.fail_after(INITIALIZE):
            if self.is_modern:
                await self._session.send_discover(LATEST_MODERN_VERSION)
            else:
                await self._session.send_ping()

    async def follow(self, changed: Callable[[], None]) -> bool:
        """Subscribe to changes of the tool list until the subscription ends; False if the server has none (an old one
        notifies without it)."""
        capabilities = self._session.server_capabilities
        if (
            not self.is_modern
            or capabilities is None
            or capabilities.tools is None
            or not capabilities.tools.list_changed
        ):
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
async def open_session(
    spec: ServerSpec, events: SessionEvents, started: Callable[[ServerProcess], None], auth: Any = None
) -> AsyncGenerator[McpSession]:
    """Open a session with a server. The same task must enter and leave this context."""
    if spec.url:
        async with (
            http_streams(spec, events, _sending, auth) as (read, write),
            _session(read, write, events) as session,
        ):
            yield session
        return
    child = await start_process(spec)
    started(child)
    try:
        open_requests = OpenServerRequests()
        async with _session(
            StdioReadStream(child, events, open_requests), StdioWriteStream(child, _sending, open_requests), events
        ) as session:
            yield session
    finally:
        await child.stop()


@asynccontextmanager
async def _session(read: Any, write: Any, events: SessionEvents) -> AsyncGenerator[McpSession]:
    async def on_message(message: object) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            events.tools_changed()

    async with ClientSession(
        dispatcher=_MessageFilter(read, write, events),
        message_handler=on_message,
        client_info=types.Implementation(name="everturn", version=__version__),
        # Never called; their presence tells the server that it may ask.
        sampling_callback=_unused,
        elicitation_callback=_unused,
        list_roots_callback=_unused,
    ) as session:
        await _negotiate(session)
        yield McpSession(session)


async def _unused(context: ClientRequestContext, params: Any = None) -> Any:
    return types.ErrorData(code=types.INVALID_REQUEST, message="not supported")


async def _negotiate(session: ClientSession) -> None:
    """Negotiate the protocol: the modern one if the server supports it, else the old one."""
    if await _discover(session):
        return
    try:
        with anyio.fail_after(INITIALIZE):
            await session.initialize()
    except TimeoutError:
        raise TimeoutError(
            f"it did not answer within {PROBE + INITIALIZE:g} s after the connection was opened"
        ) from None
    except MCPError as error:
        # The server was slow to start, and has processed the first request in the meantime.
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
