"""MCP task tool: a server's tool whose calls are tasks of the server. A call that waits for its task is suspended.

The problem: a task outlives our process, so the call must, too, and the tool must never be called a second time. The
request for the task is a recorded step (`ctx.step`): its start is in the log before anything is sent, and the id of the
task is in the log before anything waits. So a process that takes over polls the recorded task; if it finds a start
without an end, the outcome is unknown. Between two polls the call is suspended on an external result with a time limit:
the limit is the poll, and a status notification delivers early. Nothing else of a call is needed: its waits are counted
in the state that is saved with each suspension, and replayed from the log.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, suppress
from typing import Final

import msgspec
from msgspec.structs import replace

from everturn.core.canonical_json import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import Question, ToolContext
from everturn.core.tool import StoppedCall
from everturn.errors import ExternalTimeout, OutcomeUnknown, ToolError, ToolTimeout
from everturn.mcp import elicitation
from everturn.mcp.config import ServerSpec
from everturn.mcp.elicitation import ElicitationRequest
from everturn.mcp.tasks import (
    MOST_FAILURES,
    MOST_WAKES,
    TASK_TTL,
    ServerTask,
    TaskClient,
    TaskProgress,
    TaskRefused,
    TaskStart,
    TaskUnknown,
    next_delay,
    question_hash,
    read_task,
    runs_as_task,
)
from everturn.mcp.tool import (
    LOGIN_HINT,
    LOGIN_NAME,
    LOGIN_QUESTIONS,
    LoginRequired,
    ServerTool,
    ToolCaller,
    answer_server_request,
    login_question,
)
from everturn.mcp.tool_list import ListedTool
from everturn.mcp.tool_results import convert_result

STEP: Final = "create task"  # the name of the step that sends the request, with a number


def make_tool(caller: ToolCaller, server: ServerSpec, listed: ListedTool, name: str, *, resumable: bool) -> ServerTool:
    """Return a listed tool as a tool of a turn."""
    tool = ServerTool(caller, server, listed, name, resumable=resumable)
    configured = server.tasks.get(listed.name) or server.tasks.get("*")
    if runs_as_task(listed.task_support, configured, tool.spec.at_most_once):
        return TaskTool(caller, server, listed, name)
    return tool


class TaskTool(ServerTool):
    """A tool whose calls are tasks of its server."""

    def __init__(self, caller: ToolCaller, server: ServerSpec, listed: ListedTool, name: str) -> None:
        super().__init__(caller, server, listed, name, resumable=False)
        # A call that may be repeated is: its request for a task needs no trace of its start.
        self._spec = replace(self._spec, resumable=self._spec.at_most_once, effects_in_steps=True)
        self.caller = caller

    async def _run(self, arguments: JsonObject, context: ToolContext) -> Output:
        return await _TaskCall(self, arguments, context).run()

    async def stop(self, call: StoppedCall) -> None:
        """Cancel the task of a call that was cancelled hard.

        Raises:
            ToolError: it was not cancelled.
        """
        if self.server.cancel == "leave":
            return
        for name, value in call.steps.items():
            task = msgspec.convert(value, TaskStart).task if name.startswith(STEP) else None
            if task is not None:
                async with self.caller.task_client(call.tenant, call.by) as client:
                    await client.cancel(task.id)


class _TaskCall:
    """One call, from the request for a task to its result."""

    def __init__(self, tool: TaskTool, arguments: JsonObject, context: ToolContext) -> None:
        self._tool, self._arguments, self._context = tool, arguments, context
        self._server, self._name = tool.server.name, tool.listed.name
        self._result: JsonObject | None = None  # of a server that returned it at once
        self._wakes = 0

    async def run(self) -> Output:
        start = await self._start()
        if start.is_plain and self._result is not None:
            return await convert_result(self._result, self._server, self._context.blobs)
        if start.task is None:
            text = start.problem or f"the result of {self._name} was lost when the process that had it ended"
            is_unknown = start.is_unknown or start.is_plain
            raise self._unknown(text) if is_unknown else ToolError(text)
        task, kept = start.task, self._context.saved_state
        self._progress = msgspec.json.decode(kept, type=TaskProgress) if kept else TaskProgress(task.id)
        for _ in range(self._progress.waits):
            await self._wait(0.0)
        is_known = self._progress.waits == 0
        while True:
            if not is_known and (polled := await self._poll()) is not None:
                task, is_known = polled, True
            if is_known:
                if task.is_over and (output := await self._finish(task)) is not None:
                    return output
                if task.status == "input_required":
                    await self._answer()
            is_known = False
            await self._suspend(task)

    # The request for a task --------------------------------------------------------------------------------------------

    async def _start(self) -> TaskStart:
        """Request the task, once; a resumed call gets what was recorded."""
        for number in range(1, LOGIN_QUESTIONS + 1):
            value = await self._context.step(f"{STEP} {number}", self._request)
            start = msgspec.convert(value, TaskStart)
            if not start.login:
                return start
            await self._ask_for_login(str(number), "was not called")
        raise ToolError(f"{self._name} was not called: server {self._server} still has no login of {self._context.by}")

    async def _request(self) -> object:
        """Call the tool. What came of it is returned, and not raised: an exception would not be recorded."""
        return msgspec.to_builtins(await self._request_task())

    async def _request_task(self) -> TaskStart:
        context, caller = self._context, self._tool.caller
        try:
            asked: JsonObject = {"ttl": TASK_TTL * 1000}
            result = await caller.call(self._tool, self._arguments, context, None, None, asked)
        except LoginRequired as error:
            return TaskStart(login=str(error) or "no login")
        except (OutcomeUnknown, ToolTimeout) as error:
            return TaskStart(problem=str(error), is_unknown=True)
        except ToolError as error:
            return TaskStart(problem=str(error))
        task = read_task(result.get("task"))
        if task is not None:
            return TaskStart(task=task)
        if "content" in result or "structuredContent" in result:
            self._result = result
            return TaskStart(is_plain=True)
        return TaskStart(problem=f"server {self._server} answered with neither a task nor a result", is_unknown=True)

    # Waiting -----------------------------------------------------------------------------------------------------------

    async def _suspend(self, task: ServerTask) -> None:
        delay = next_delay(task, self._progress)
        self._progress = replace(self._progress, waits=self._progress.waits + 1, waited=self._progress.waited + delay)
        self._context.save_state(msgspec.json.encode(self._progress).decode())
        await self._wait(delay)

    async def _wait(self, seconds: float) -> None:
        """Wait for the time of the next poll, or for a status notification. A wait of the log is over at once."""
        external = await self._context.external(timeout=seconds, label=f"MCP task ({self._server})")
        if seconds and self._wakes < MOST_WAKES:
            with suppress(ToolError):  # it cannot be reached now, and is polled
                async with self._client() as client:
                    client.watch(self._progress.task, external.deliver)
        try:
            await external.result()
            self._wakes += 1
        except ExternalTimeout:
            pass

    def _client(self) -> AbstractAsyncContextManager[TaskClient]:
        return self._tool.caller.task_client(self._context.tenant, self._context.by)

    async def _poll(self) -> ServerTask | None:
        """Ask for the status; None if the server could not be asked now."""
        try:
            async with self._client() as client:
                task = await client.get(self._progress.task)
        except LoginRequired:
            await self._log_in()
            return None
        except TaskUnknown as error:
            raise self._lost(error) from None
        except ToolError as error:
            self._note_failure(error)
            return None
        self._progress = replace(self._progress, failures=0)
        if task.message:
            self._context.progress(task.message)
        return task

    async def _log_in(self) -> None:
        number = self._progress.logins + 1
        if number > LOGIN_QUESTIONS:
            raise self._unknown(f"server {self._server} still has no login of {self._context.by}")
        await self._ask_for_login(f"task-{number}", "was called as a task, whose result was not fetched")
        self._progress = replace(self._progress, logins=number)

    async def _ask_for_login(self, name: str, what: str) -> None:
        question = f"{login_question(self._server, self._context.by)} {LOGIN_HINT}"
        resolution = await self._context.ask(Question(question, name=f"{LOGIN_NAME}{name}"))
        if not resolution.allowed:
            text = (
                f"{self._name} {what}, because {self._context.by} has not logged in to server {self._server}: "
                f"{resolution.reason or 'a person said no'}"
            )
            raise ToolError(text) if not name.startswith("task-") else self._unknown(text)

    def _note_failure(self, error: ToolError) -> None:
        """Go on waiting for a server that cannot be reached; give up where it keeps answering with errors."""
        failures = self._progress.failures + 1
        if isinstance(error, TaskRefused) and failures >= MOST_FAILURES:
            raise self._lost(error)
        self._progress = replace(self._progress, failures=min(failures, MOST_FAILURES))
        self._context.progress(str(error)[:500])

    # The end -----------------------------------------------------------------------------------------------------------

    async def _finish(self, task: ServerTask) -> Output | None:
        """The result of a task that is over; None if it could not be fetched now."""
        why = f": {task.message}" if task.message else ""
        if task.status == "cancelled":
            raise ToolError(f"server {self._server} cancelled {self._name}{why}")
        try:
            async with self._client() as client:
                result = await client.result(task.id)
        except LoginRequired:
            await self._log_in()
            return None
        except (TaskUnknown, TaskRefused) as error:
            if task.status == "failed":
                raise ToolError(f"server {self._server} could not do {self._name}{why or f': {error}'}") from None
            if isinstance(error, TaskUnknown):
                raise self._lost(error) from None
            self._note_failure(error)
            return None
        except ToolError as error:
            self._note_failure(error)
            return None
        if task.status == "failed":
            result = {**result, "isError": True}
        return await convert_result(result, self._server, self._context.blobs)

    def _lost(self, error: ToolError) -> ToolError:
        return self._unknown(
            f"server {self._server} no longer knows the task of {self._name}: it has expired, or the server was restarted "
            f"({error})"
        )

    def _unknown(self, text: str) -> ToolError:
        if self._tool.spec.at_most_once:
            return OutcomeUnknown(f"{text}. Whether {self._name} was done is not known; look before it is called again")
        return ToolError(f"{text}. It is safe to call it again")

    # Questions ---------------------------------------------------------------------------------------------------------

    async def _answer(self) -> None:
        """Have a person answer the question of a task that requires input."""
        try:
            async with self._client() as client:
                question = await client.wait_for_question(self._progress.task)
        except LoginRequired:
            return await self._log_in()
        except ToolError as error:
            return self._note_failure(error)
        if question is None:
            return None
        asked, answered = question_hash(question.method, question.params), self._progress.answered
        if len(answered) >= elicitation.MOST_QUESTIONS:
            reply = elicitation.make_decline("it asks too much")
        else:
            name = f"task-{asked}-{answered.count(asked)}"
            request = ElicitationRequest(name, question.method, question.params)
            try:
                reply = await answer_server_request(self._tool.server, request, self._context)
            except PermissionError as error:
                reply = elicitation.make_decline(str(error))
        self._progress = replace(self._progress, answered=(*answered, asked)[: elicitation.MOST_QUESTIONS])
        if not question.answer.done():
            question.answer.set_result(reply)
        return None
