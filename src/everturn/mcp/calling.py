"""Calls that are under way on one connection: how long each may take, what it is asked, and what is known of it when the
connection is lost.

A server of the older protocol does not say in which call it asks something: it is answered if there is only one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final, Protocol

from everturn.core.canonical import JsonObject
from everturn.core.ports import ToolContext
from everturn.errors import OutcomeUnknown, ToolError, ToolTimeout
from everturn.mcp import asking
from everturn.mcp.asking import Asked
from everturn.mcp.config import ServerSpec
from everturn.mcp.events import UNREACHABLE, Sending
from everturn.mcp.tool import ServerTool, answer

if TYPE_CHECKING:
    from everturn.mcp.session import Session

SHORTEST: Final = 0.1  # seconds between two lines of progress that are shown
EXTENSIONS: Final = 10  # how many times its time a call may take that tells of its progress
FAREWELL: Final = 6.0  # seconds for a server to be told that nobody waits any more


class Connection(Protocol):
    """Whoever keeps a server within reach."""

    spec: ServerSpec
    session: Session | None

    async def reached(self) -> Session:
        """The session, once there is one."""
        ...

    def suspect(self) -> None:
        """See whether it is still there."""
        ...

    def gone(self, session: Session) -> None:
        """Nothing can be sent in this one any more."""
        ...


class _Call:
    """A call, and the questions that came in it and wait for the task that made it."""

    def __init__(self, context: ToolContext) -> None:
        self.context, self.asked = context, 0
        self.questions: deque[tuple[Asked, asyncio.Future[JsonObject]]] = deque()
        self.news = asyncio.Event()

    async def ask(self, method: str, params: JsonObject) -> JsonObject:
        """Have it answered by the call's own task: whoever asks a person may never come back."""
        self.asked += 1
        if self.asked > asking.MOST_QUESTIONS:
            return _refused(method, "it asks too much")
        answered: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self.questions.append((Asked(f"q{self.asked}", method, params), answered))
        self.news.set()
        return await answered


class Calls:
    """The calls under way."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._calls: set[_Call] = set()

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._calls)

    async def asked(self, method: str, params: JsonObject) -> JsonObject:
        """Something that the server asks, answered in the call it belongs to."""
        if method == asking.ROOTS:
            return asking.NO_ROOTS
        if len(self._calls) != 1:
            return _refused(method, "it cannot be told in which call this is asked")
        (call,) = self._calls
        return await call.ask(method, params)

    async def call(
        self,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
    ) -> JsonObject:
        """Call a tool. What never left is tried once more; what did is never sent again.

        Raises:
            ToolError: it failed, or is not known to have been done.
        """
        for is_last in (False, True):
            session = await self._connection.reached()
            sending = Sending(tell=tool.server.cancel == "tell")
            try:
                return await self._send(session, sending, tool, arguments, context, answers, state)
            except ToolError:
                raise
            except Exception as error:
                if self._connection.session is session and not is_closed(error):
                    raise self._refused(tool, error) from None
                if sending.is_sent or is_last:
                    raise self._lost(tool, sending, error) from None
                self._connection.gone(session)
        raise AssertionError("unreachable")

    async def _send(
        self,
        session: Session,
        sending: Sending,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
    ) -> JsonObject:
        limit, loop, call = tool.server.timeout, asyncio.get_running_loop(), _Call(context)
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
                        clock.reschedule(None)  # a person may take as long as they like
                        await self._answer(tool.server.name, call)
                        clock.reschedule(loop.time() + limit)
                return task.result()
        except TimeoutError:
            self._connection.suspect()
            known = "it may have been done" if sending.is_sent else "it was not sent"
            raise ToolTimeout(f"server {tool.server.name} did not answer within {limit:g} s; {known}") from None
        finally:
            self._calls.discard(call)
            for _, answered in call.questions:
                answered.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=FAREWELL)

    async def _answer(self, server: str, call: _Call) -> None:
        asked, answered = call.questions[0]
        try:
            said = await answer(server, asked, call.context)
            if not answered.done():
                answered.set_result(said)
        except PermissionError as error:
            if not answered.done():
                answered.set_exception(error)
        finally:
            if not answered.done():
                answered.cancel()
            call.questions.popleft()

    def _refused(self, tool: ServerTool, error: Exception) -> ToolError:
        return ToolError(f"server {tool.server.name} could not do {tool.listed.name}: {told(error)}")

    def _lost(self, tool: ServerTool, sending: Sending, error: Exception) -> ToolError:
        where = f"the connection to server {tool.server.name} was lost"
        if not sending.is_sent:
            return ToolError(f"{where} before {tool.listed.name} was sent: it was not run; it is being reconnected")
        if tool.spec.effects == "once":
            return OutcomeUnknown(
                f"{where} before it answered: whether {tool.listed.name} was done is not known (outcome unknown); "
                "look before it is called again"
            )
        return ToolError(f"{where} before {tool.listed.name} was answered; it can be called again without harm")


def _refused(method: str, why: str) -> JsonObject:
    if method == asking.ELICIT:
        return asking.declined(why)
    raise PermissionError(why)


def is_closed(error: BaseException) -> bool:
    """Whether it was the connection that failed; a server may use the same code for something else."""
    code, text = getattr(error, "code", None), str(error)
    return code == UNREACHABLE or (code == -32000 and text.startswith(("Connection closed", "SSE stream")))


def told(error: BaseException) -> str:
    """An error in its own words."""
    return (str(error).strip() or type(error).__name__)[:2000]
