"""In-flight calls on one connection: their timeouts, the server's questions during a call, and their outcome when the
connection is lost.

A server of the older protocol does not say to which call a question belongs: it is answered only if one call is under
way.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from everturn.core.canonical_json import JsonObject
from everturn.core.ports import ToolContext
from everturn.errors import OutcomeUnknown, ToolError, ToolTimeout
from everturn.mcp import elicitation
from everturn.mcp.config import ServerSpec
from everturn.mcp.elicitation import ElicitationRequest
from everturn.mcp.events import UNREACHABLE, SentCall
from everturn.mcp.tool import ServerTool, answer_server_request

if TYPE_CHECKING:
    from everturn.mcp.session import McpSession

SHORTEST: Final = 0.1  # seconds between two progress messages that are shown
EXTENSIONS: Final = 10  # a call that reports progress may take so many times its timeout
FAREWELL: Final = 6.0  # seconds to tell a server that a call is cancelled


class ConnectionOwner(Protocol):
    """The connection that keeps a server reachable."""

    spec: ServerSpec
    session: McpSession | None

    @property
    def needs_login(self) -> bool:
        """Whether the server accepts no token that there is."""
        ...

    async def wait_for_session(self) -> McpSession:
        """Return the session, once there is one."""
        ...

    def request_probe(self) -> None:
        """Probe the server."""
        ...

    def drop_session(self, session: McpSession) -> None:
        """Drop a session in which nothing can be sent any more."""
        ...


class _InFlightCall:
    """A call, and the server's questions that wait for the task that made the call."""

    def __init__(self, context: ToolContext, *, is_task: bool) -> None:
        self.context, self.asked, self._is_task = context, 0, is_task
        self.questions: deque[tuple[ElicitationRequest, asyncio.Future[JsonObject]]] = deque()
        self.news = asyncio.Event()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Have the call's own task answer: asking a person may suspend that task for good."""
        if self._is_task:
            return refuse_request(method, "it belongs to a task: ask when the task requires input")
        self.asked += 1
        if self.asked > elicitation.MOST_QUESTIONS:
            return refuse_request(method, "it asks too much")
        answered: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self.questions.append((ElicitationRequest(f"q{self.asked}", method, params), answered))
        self.news.set()
        return await answered


class InFlightCalls:
    """The calls under way on one connection."""

    def __init__(self, connection: ConnectionOwner) -> None:
        self._connection = connection
        self._calls: set[_InFlightCall] = set()

    @property
    def count(self) -> int:
        """Number of calls under way."""
        return len(self._calls)

    async def answer_request(self, method: str, params: JsonObject) -> JsonObject:
        """Answer a request of the server, in the call it belongs to."""
        if method == elicitation.ROOTS:
            return elicitation.NO_ROOTS
        if len(self._calls) != 1:
            return refuse_request(method, "it cannot be told in which call this is asked")
        (call,) = self._calls
        return await call.ask(method, params)

    async def call(
        self,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
        task: JsonObject | None = None,
    ) -> JsonObject:
        """Call a tool. With `task`, the server returns a task. A call that was never sent is retried once; one that was sent is never sent again.

        Raises:
            ToolError: the call failed, or its outcome is unknown.
        """
        for is_last in (False, True):
            session = await self._connection.wait_for_session()
            sending = SentCall(cancels_at_server=tool.server.cancel == "tell", task=task)
            try:
                return await self._send(session, sending, tool, arguments, context, answers, state)
            except ToolError:
                raise
            except Exception as error:
                if self._connection.needs_login and not sending.is_sent:
                    self._connection.drop_session(session)
                    await self._connection.wait_for_session()  # raises, and says who has to log in
                if self._connection.session is session and not is_closed(error):
                    raise self._refused(tool, error) from None
                if sending.is_sent or is_last:
                    raise self._lost(tool, sending, error) from None
                self._connection.drop_session(session)
        raise AssertionError("unreachable")

    async def _send(
        self,
        session: McpSession,
        sending: SentCall,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
    ) -> JsonObject:
        limit, loop, call = (
            tool.server.timeout,
            asyncio.get_running_loop(),
            _InFlightCall(context, is_task=sending.task is not None),
        )
        last, latest = 0.0, loop.time() + limit * EXTENSIONS

        def progress(text: str) -> None:
            nonlocal last
            if clock.when() is not None:
                clock.reschedule(min(loop.time() + limit, latest))
            if time.monotonic() - last >= SHORTEST:
                last = time.monotonic()
                context.progress(text)

        self._calls.add(call)
        task = asyncio.create_task(
            session.call(
                tool.listed.name, arguments, sending, key=context.key, tell=progress, answers=answers, state=state
            )
        )
        task.add_done_callback(lambda _: call.news.set())
        try:
            async with asyncio.timeout(limit) as clock:
                while not task.done():
                    await call.news.wait()
                    call.news.clear()
                    while call.questions and not task.done():
                        clock.reschedule(None)  # no timeout while a person is asked
                        await self._answer(tool.server, call)
                        clock.reschedule(loop.time() + limit)
                return task.result()
        except TimeoutError:
            self._connection.request_probe()
            known = "it may have been done" if sending.is_sent else "it was not sent"
            raise ToolTimeout(f"server {tool.server.name} did not answer within {limit:g} s; {known}") from None
        finally:
            self._calls.discard(call)
            for _, answered in call.questions:
                answered.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=FAREWELL)

    async def _answer(self, server: ServerSpec, call: _InFlightCall) -> None:
        request, answered = call.questions[0]
        try:
            reply = await answer_server_request(server, request, call.context)
            if not answered.done():
                answered.set_result(reply)
        except PermissionError as error:
            if not answered.done():
                answered.set_exception(error)
        finally:
            if not answered.done():
                answered.cancel()
            call.questions.popleft()

    def _refused(self, tool: ServerTool, error: Exception) -> ToolError:
        return ToolError(f"server {tool.server.name} could not do {tool.listed.name}: {error_text(error)}")

    def _lost(self, tool: ServerTool, sending: SentCall, error: Exception) -> ToolError:
        where = f"the connection to server {tool.server.name} was lost"
        if not sending.is_sent:
            return ToolError(f"{where} before {tool.listed.name} was sent: it was not run; Everturn is reconnecting")
        if tool.spec.at_most_once:
            return OutcomeUnknown(
                f"{where} before it answered: whether {tool.listed.name} was done is not known (outcome unknown); "
                "look before it is called again"
            )
        return ToolError(f"{where} before {tool.listed.name} was answered; it is safe to call it again")


def refuse_request(method: str, reason: str) -> JsonObject:
    """Decline a question of a server, or refuse another request of it."""
    if method == elicitation.ELICIT:
        return elicitation.make_decline(reason)
    raise PermissionError(reason)


def is_closed(error: BaseException) -> bool:
    """Whether the connection failed; a server may use the same code for something else."""
    code, text = getattr(error, "code", None), str(error)
    return code == UNREACHABLE or (code == -32000 and text.startswith(("Connection closed", "SSE stream")))


def error_text(error: BaseException) -> str:
    """Return the text of an error, or its type if it has none."""
    return (str(error).strip() or type(error).__name__)[:2000]
