"""Task requests on one connection: status, result and cancellation of tasks, and the questions that a task asks.

A server sends the questions of a task while its `tasks/result` is open, so that request is kept open for a task that
requires input. What a call waits for is in the log; here are only the questions of this connection, and what is to be
woken when the server reports a status.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from typing import Final

from everturn.core.canonical_json import JsonObject
from everturn.errors import EverturnError, ToolError
from everturn.mcp import elicitation
from everturn.mcp.in_flight_calls import ConnectionOwner, error_text, is_closed, refuse_request
from everturn.mcp.tasks import ServerTask, TaskQuestion, TaskRefused, TaskUnknown, Wake, read_task

MOST_WATCHED: Final = 1000  # tasks of which status notifications are heeded; the oldest are then only polled
NO_METHOD: Final = -32601  # of the protocol
INVALID_PARAMS: Final = -32602  # of the protocol: the server does not know the task


class TaskRequests:
    """The tasks of one connection."""

    def __init__(self, connection: ConnectionOwner) -> None:
        self._connection = connection
        self._wakes: OrderedDict[str, Wake] = OrderedDict()
        self._reported: OrderedDict[str, None] = (
            OrderedDict()
        )  # tasks that the server has reported and nothing waited for
        self._questions: dict[str, list[TaskQuestion]] = {}
        self._asked: OrderedDict[str, int] = OrderedDict()
        self._open: dict[str, asyncio.Task[JsonObject]] = {}  # `tasks/result` of tasks that require input
        self._news = asyncio.Event()
        self._waking: set[asyncio.Task[None]] = set()

    # Requests --------------------------------------------------------------------------------------------------------

    async def get(self, task: str) -> ServerTask:
        """Ask for the status of a task.

        Raises:
            TaskUnknown: the server does not know it.
            ToolError: the server could not be asked now.
        """
        self._reported.pop(task, None)
        found = read_task(await self._request("tasks/get", task))
        if found is None or found.id != task:
            raise TaskRefused(f"server {self._connection.spec.name} did not return the status of the task")
        return found

    async def result(self, task: str) -> JsonObject:
        """Fetch the result of a task that is over.

        Raises:
            TaskUnknown: the server does not know it.
            ToolError: the server could not be asked now.
        """
        return await self._request("tasks/result", task)

    async def cancel(self, task: str) -> None:
        """Cancel a task.

        Raises:
            ToolError: it was not cancelled.
        """
        await self._request("tasks/cancel", task)

    async def _request(self, method: str, task: str, *, has_limit: bool = True) -> JsonObject:
        name, seconds = self._connection.spec.name, self._connection.spec.timeout if has_limit else None
        session = await self._connection.wait_for_session()
        try:
            return await session.request_task(method, task, seconds)
        except TimeoutError:
            self._connection.request_probe()
            raise ToolError(f"server {name} did not answer {method} within {seconds:g} s") from None
        except ToolError:
            raise
        except Exception as error:
            if is_closed(error) or self._connection.session is not session:
                self._connection.drop_session(session)
                raise ToolError(f"the connection to server {name} was lost during {method}") from None
            problem = TaskUnknown if getattr(error, "code", 0) in (NO_METHOD, INVALID_PARAMS) else TaskRefused
            raise problem(f"server {name}: {error_text(error)}") from None

    # Status notifications --------------------------------------------------------------------------------------------

    def watch(self, task: str, wake: Wake) -> None:
        """Call `wake` once when the server reports that this task is over or requires input."""
        self._wakes[task] = wake
        while len(self._wakes) > MOST_WATCHED:
            self._wakes.popitem(last=False)
        if task in self._reported:
            self._wake(task)

    def status_changed(self, params: JsonObject) -> None:
        """The server has reported a status. It is only a hint: the call asks for the status itself."""
        found = read_task(params)
        if found is None or found.status == "working":
            return
        if found.id in self._wakes:
            self._wake(found.id)
            return
        self._reported[found.id] = None
        while len(self._reported) > MOST_WATCHED:
            self._reported.popitem(last=False)

    def _wake(self, task: str) -> None:
        wake = self._wakes.pop(task)
        self._reported.pop(task, None)

        async def run() -> None:
            with suppress(EverturnError):  # nothing waits for it any more
                await wake("status")

        waking = asyncio.get_running_loop().create_task(run())
        self._waking.add(waking)
        waking.add_done_callback(self._waking.discard)

    # Questions -------------------------------------------------------------------------------------------------------

    async def ask(self, task: str, method: str, params: JsonObject) -> JsonObject:
        """Have the call that waits for a task answer a request of the server."""
        if task not in self._open:
            return refuse_request(method, "no call waits for this task")
        if method != elicitation.ELICIT:
            return refuse_request(method, "a task can ask a person, and nothing else")
        self._asked[task] = self._asked.pop(task, 0) + 1
        while len(self._asked) > MOST_WATCHED:
            self._asked.popitem(last=False)
        if self._asked[task] > elicitation.MOST_QUESTIONS:
            return refuse_request(method, "it asks too much")
        question = TaskQuestion(method, params, asyncio.get_running_loop().create_future())
        waiting = self._questions.setdefault(task, [])
        waiting.append(question)
        self._news.set()
        try:
            return await question.answer
        finally:
            waiting.remove(question)
            if not waiting and self._questions.get(task) is waiting:
                del self._questions[task]

    async def wait_for_question(self, task: str) -> TaskQuestion | None:
        """Return the question of a task that requires input; None if none arrives within the timeout of the server.

        The question stays open when the call that asked for it is suspended.
        """
        opened = self._open.get(task)
        if opened is None:
            opened = asyncio.create_task(self._request("tasks/result", task, has_limit=False))
            self._open[task] = opened
            opened.add_done_callback(lambda ended: self._closed(task, ended))
        with suppress(TimeoutError):
            async with asyncio.timeout(self._connection.spec.timeout):
                while not opened.done():
                    for question in self._questions.get(task, ()):
                        if not question.answer.done():
                            return question
                    self._news.clear()
                    await self._news.wait()
        return None

    def _closed(self, task: str, ended: asyncio.Task[JsonObject]) -> None:
        if self._open.get(task) is ended:
            del self._open[task]
        if not ended.cancelled():
            ended.exception()  # the call asks again
        self._news.set()

    def close(self) -> None:
        """Drop what belongs to a connection that has ended."""
        for opened in list(self._open.values()):
            opened.cancel()
