"""MCP tool: a server's tool as a tool of a turn. Calls go to the server, and its questions during a call go to a
person.

A call that was sent is never sent again. If its response is lost, its outcome is unknown, and the result says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

import msgspec

from everturn.core.canonical_json import JsonObject
from everturn.core.json_schema import validate_schema
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.errors import BadArguments, OutcomeUnknown, ToolChanged, ToolError
from everturn.mcp import elicitation
from everturn.mcp.config import ServerSpec
from everturn.mcp.elicitation import ElicitationRequest, ElicitationRound
from everturn.mcp.tool_list import ListedTool, repeat_hints
from everturn.mcp.tool_results import convert_result

PATIENCE: Final = 10 * 365 * 86_400.0
"""Seconds, meaning no limit. A call is bounded by its server's `timeout`, whose clock stops while a person is asked."""

_STATE_ONLY = 0.05  # seconds before the next round if a server sent state without requests


class ToolCaller(Protocol):
    """Calls tools over the connection to a server."""

    async def call(
        self,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
    ) -> JsonObject:
        """Call a tool; return its result, or the input that the server requires first."""
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
        waiting = msgspec.json.decode(context.saved_state, type=ElicitationRound) if context.saved_state else None
        if waiting is not None and waiting.is_sent and self._spec.at_most_once:
            raise OutcomeUnknown(
                f"{self._spec.name} was interrupted after it had received its answers; it is not known whether it "
                "continued"
            )
        while True:
            answers = None if waiting is None else await self._answer(waiting, context)
            state = None if waiting is None else waiting.state
            result = await self._caller.call(self, arguments, context, answers, state)
            if result.get("resultType") != "input_required":
                return await convert_result(result, self.server.name, context.blobs)
            following = elicitation.next_round(result, waiting)
            if isinstance(following, str):
                raise ToolError(f"server {self.server.name} could not finish {self.listed.name}: {following}")
            waiting = following
            context.save_state(msgspec.json.encode(waiting).decode())

    async def _answer(self, waiting: ElicitationRound, context: ToolContext) -> JsonObject:
        answers: JsonObject = {key: elicitation.make_decline("it asks too much") for key in waiting.refused}
        for request in waiting.requests:
            try:
                answers[elicitation.request_key(request)] = await answer_server_request(
                    self.server.name, request, context
                )
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


async def answer_server_request(server: str, request: ElicitationRequest, context: ToolContext) -> JsonObject:
    """Return the answer to a request of the server, once a person has been asked.

    Raises:
        PermissionError: the request is refused; the text says why.
    """
    if request.method == elicitation.ROOTS:
        return elicitation.NO_ROOTS
    question = await asyncio.to_thread(elicitation.make_question, server, request)  # validating a schema is slow
    if question is None:
        if request.method == elicitation.ELICIT:
            return elicitation.make_decline("it cannot be asked like this")
        raise PermissionError("it sends a request to a model that cannot be shown to a person")
    resolution = await context.ask(question)
    if request.method == elicitation.ELICIT:
        return elicitation.make_elicitation_answer(request, resolution)
    turn = elicitation.make_sampling_request(request.params)
    if not resolution.allowed or turn is None:
        raise PermissionError(f"the request was not sent to a model: {resolution.reason or 'a person said no'}")
    completion = await context.run_subagent(turn)
    if completion.failure:
        raise PermissionError(f"the model did not answer: {completion.failure}")
    return elicitation.make_sampling_answer(completion.text)
