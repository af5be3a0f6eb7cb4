"""MCP tool: a server's tool as a tool of a turn. Calls go to the server, and its questions during a call go to a
person.

A call that was sent is never sent again. If its response is lost, its outcome is unknown, and the result says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import msgspec

from everturn.core.canonical_json import JsonObject
from everturn.core.gates import Gate
from everturn.core.json_schema import validate_schema
from everturn.core.parts import Output
from everturn.core.ports import Question, ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, OutcomeUnknown, ToolChanged, ToolError
from everturn.mcp import elicitation
from everturn.mcp.config import ServerSpec
from everturn.mcp.elicitation import ElicitationRequest, ElicitationRound
from everturn.mcp.tasks import TaskClient
from everturn.mcp.tool_list import ListedTool, repeat_hints
from everturn.mcp.tool_results import convert_result

PATIENCE: Final = 10 * 365 * 86_400.0
"""Seconds, meaning no limit. A call is bounded by its server's `timeout`, whose clock stops while a person is asked."""

_STATE_ONLY = 0.05  # seconds before the next round if a server sent state without requests


LOGIN_QUESTIONS: Final = 5  # times that a call asks for a login


LOGIN_NAME: Final = "login-"  # of the questions
LOGIN_HINT: Final = (
    "Log in on the page MCP servers; this call then continues. Nothing was sent to the server yet. If you logged in "
    "elsewhere, answer yes."
)


def login_question(server: str, user: str) -> str:
    """Return the question for a login, without the hint."""
    return f"The call runs for {user}, who is not logged in to server {server}."


def is_login_gate(gate: Gate, server: str, user: str) -> bool:
    """Whether a gate asks for a login of a user to a server."""
    is_asked = f".ask.{LOGIN_NAME}" in gate.id and gate.kind == "form"
    return is_asked and gate.arguments == f"{login_question(server, user)} {LOGIN_HINT}"


class LoginRequired(ToolError):
    """The person of a turn has to log in first; nothing was sent."""


class ToolCaller(Protocol):
    """Calls tools over the connection to a server."""

    async def call(
        self,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
        task: JsonObject | None = None,
    ) -> JsonObject:
        """Call a tool; return its result, the input that the server requires first, or its task."""
        ...

    def task_client(self, tenant: str, by: str) -> AbstractAsyncContextManager[TaskClient]:
        """Requests about tasks, with the login of this user where that is needed."""
        ...


class ServerTool:
    """A tool of a server. Its spec stays the same while the server is disconnected."""

    def __init__(
        self, caller: ToolCaller, server: ServerSpec, listed: ListedTool, name: str, *, resumable: bool
    ) -> None:
        self._caller, self.server, self.listed = caller, server, listed
        configured = server.annotations.get(listed.name) or server.annotations.get("*")
        self._spec = ToolSpec(
            name,
            listed.description,
            listed.schema,
            **repeat_hints(listed.annotations, configured),
            approval="ask",
            timeout=PATIENCE,
            egress=bool(server.url),
            untrusted=True,
            origin=f"mcp:{server.name}",
            echoes=True,
            resumable=resumable,
        )

    @property
    def spec(self) -> ToolSpec:
        """The spec of the tool."""
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        """Validate the arguments against the server's schema."""
        if problems := validate_schema(arguments, self._spec.schema):
            raise BadArguments(
                f"the arguments of {self._spec.name} are wrong: {'; '.join(str(problem) for problem in problems)}"
            )

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Call the tool, and answer the server's questions."""
        return self._run(arguments, context)

    async def _run(self, arguments: JsonObject, context: ToolContext) -> Output:
        waiting = self._read_state(context.saved_state) if context.saved_state else None
        if waiting is not None and waiting.is_sent and self._spec.at_most_once:
            raise OutcomeUnknown(
                f"{self._spec.name} was interrupted after it had received its answers; it is not known whether it "
                "continued"
            )
        while True:
            answers = None if waiting is None else await self._answer(waiting, context)
            state = None if waiting is None else waiting.state
            result = await self._call(arguments, context, answers, state, waiting)
            if result.get("resultType") != "input_required":
                return await convert_result(result, self.server.name, context.blobs)
            following = elicitation.next_round(result, waiting)
            if isinstance(following, str):
                raise ToolError(f"server {self.server.name} could not finish {self.listed.name}: {following}")
            waiting = following
            context.save_state(msgspec.json.encode(waiting).decode())

    def _read_state(self, state: str) -> ElicitationRound:
        try:
            return msgspec.json.decode(state, type=ElicitationRound)
        except msgspec.ValidationError:
            raise OutcomeUnknown(
                f"server {self.server.name} no longer takes {self.listed.name} as a task, and this call waited for one; it is "
                "not known whether it was done"
            ) from None

    async def _call(
        self,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
        waiting: ElicitationRound | None,
    ) -> JsonObject:
        """Call the tool with the login of the turn's user, who is asked to log in as long as there is none.

        A call that cannot be resumed is not held until somebody logs in: it would be lost with the process.
        """
        for number in range(1, LOGIN_QUESTIONS + 1):
            try:
                return await self._caller.call(self, arguments, context, answers, state)
            except LoginRequired as error:
                if self._spec.at_most_once and not self._spec.resumable:
                    raise ToolError(f"{error}. The call was not sent; call it again after the login") from None
                if waiting is not None:  # its answers were not sent
                    unsent = msgspec.structs.replace(waiting, is_sent=False)
                    context.save_state(msgspec.json.encode(unsent).decode())
                at = f"{waiting.number}." if waiting is not None else ""
                question = f"{login_question(self.server.name, context.by)} {LOGIN_HINT}"
                resolution = await context.ask(Question(question, name=f"{LOGIN_NAME}{at}{number}"))
                if not resolution.allowed:
                    raise ToolError(
                        f"{self.listed.name} was not called, because {context.by} has not logged in to "
                        f"server {self.server.name}: {resolution.reason or 'a person said no'}"
                    ) from None
        raise ToolError(
            f"{self.listed.name} was not called: server {self.server.name} still has no login of {context.by}"
        )

    async def _answer(self, waiting: ElicitationRound, context: ToolContext) -> JsonObject:
        answers: JsonObject = {key: elicitation.make_decline("it asks too much") for key in waiting.refused}
        for request in waiting.requests:
            try:
                answers[elicitation.request_key(request)] = await answer_server_request(self.server, request, context)
            except PermissionError as error:
                raise ToolError(f"server {self.server.name} could not finish {self.listed.name}: {error}") from None
        if not waiting.requests:
            await asyncio.sleep(_STATE_ONLY * waiting.number)
        context.save_state(msgspec.json.encode(msgspec.structs.replace(waiting, is_sent=True)).decode())
        return answers


class ChangedTool(ServerTool):
    """A tool that differs from what was trusted. The model sees nothing that the server says about it."""

    def __init__(self, caller: ToolCaller, server: ServerSpec, listed: ListedTool, name: str) -> None:
        text = "Not available: it is new or has changed since its server was trusted, and waits to be trusted again."
        super().__init__(caller, server, ListedTool(listed.name, text, {"type": "object"}, {}), name, resumable=False)

    async def _run(self, arguments: JsonObject, context: ToolContext) -> Output:
        raise ToolChanged(
            f"{self._spec.name} has changed since server {self.server.name} was trusted; "
            "it can be called after a person has reviewed it and trusts it again"
        )


async def answer_server_request(server: ServerSpec, request: ElicitationRequest, context: ToolContext) -> JsonObject:
    """Return the answer to a request of the server, once a person has been asked.

    Where a call uses the login of one person, only that person answers: the answer goes to the server in their name.

    Raises:
        PermissionError: the request is refused; the text says why.
    """
    if request.method == elicitation.ROOTS:
        return elicitation.NO_ROOTS
    question = await asyncio.to_thread(elicitation.make_question, server.name, request)  # validating a schema is slow
    if question is None:
        if request.method == elicitation.ELICIT:
            return elicitation.make_decline("it cannot be asked like this")
        raise PermissionError("it sends a request to a model that cannot be shown to a person")
    resolution = await context.ask(question)
    if server.is_per_person and resolution.allowed and resolution.by not in ("", context.by):
        text = f"it was answered by {resolution.by}, and goes to the server in the name of {context.by}"
        if request.method == elicitation.ELICIT:
            return elicitation.make_decline(text)
        raise PermissionError(text)
    if request.method == elicitation.ELICIT:
        return elicitation.make_elicitation_answer(request, resolution)
    turn = elicitation.make_sampling_request(request.params)
    if not resolution.allowed or turn is None:
        raise PermissionError(f"the request was not sent to a model: {resolution.reason or 'a person said no'}")
    completion = await context.run_subagent(turn)
    if completion.failure:
        raise PermissionError(f"the model did not answer: {completion.failure}")
    return elicitation.make_sampling_answer(completion.text)
