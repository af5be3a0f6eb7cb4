"""A tool of a server → a tool of ours: a call goes to the server, and what it asks on the way goes to a person.

A call that was sent is never sent again by us. If its answer is lost, so is the knowledge of what it did, and that is
what its result says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, Protocol

import msgspec

from everturn.core.canonical import JsonObject
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.core.requests import ToolSpec
from everturn.core.schemas import misfits
from everturn.errors import BadArguments, OutcomeUnknown, ToolChanged, ToolError
from everturn.mcp import asking
from everturn.mcp.asking import Asked, Round
from everturn.mcp.config import ServerSpec
from everturn.mcp.listing import Listed, effects_of
from everturn.mcp.outputs import output_of

PATIENCE: Final = 10 * 365 * 86_400.0
"""Seconds: no limit. A call is bounded by its server's `timeout`, whose clock stands still while a person is asked."""

_STATE_ONLY = 0.05  # seconds before a server that asks nothing is asked again


class Caller(Protocol):
    """Whoever holds the connection."""

    async def call(
        self,
        tool: ServerTool,
        arguments: JsonObject,
        context: ToolContext,
        answers: JsonObject | None,
        state: str | None,
    ) -> JsonObject:
        """Call a tool; the answer is a result, or what the server wants to know first."""
        ...


class ServerTool:
    """A tool of a server. It stays what it is while its server is away."""

    def __init__(self, caller: Caller, server: ServerSpec, listed: Listed, name: str, *, resumes: bool) -> None:
        self._caller, self.server, self.listed = caller, server, listed
        said = server.effects.get(listed.name) or server.effects.get("*")
        self._spec = ToolSpec(
            name,
            listed.description,
            listed.schema,
            effects=effects_of(listed.annotations, said),
            execute="ask_once",
            timeout=PATIENCE,
            egress=bool(server.url),
            untrusted=True,
            origin=f"mcp:{server.name}",
            echoes=True,
            resumes=resumes,
        )

    @property
    def spec(self) -> ToolSpec:
        """What it is."""
        return self._spec

    def validate(self, arguments: JsonObject) -> None:
        """Check arguments against the schema that the server gave."""
        if wrong := misfits(arguments, self._spec.schema):
            raise BadArguments(f"the arguments of {self._spec.name} are wrong: {'; '.join(str(one) for one in wrong)}")

    def run(self, arguments: JsonObject, context: ToolContext) -> Awaitable[Output]:
        """Call it, and answer what it asks."""
        return self._run(arguments, context)

    async def _run(self, arguments: JsonObject, context: ToolContext) -> Output:
        waiting = msgspec.json.decode(context.kept, type=Round) if context.kept else None
        if waiting is not None and waiting.is_sent and self._spec.effects == "once":
            raise OutcomeUnknown(
                f"{self._spec.name} had its answers when it was interrupted: whether it went on is unknown"
            )
        while True:
            answers = None if waiting is None else await self._answer(waiting, context)
            state = None if waiting is None else waiting.state
            result = await self._caller.call(self, arguments, context, answers, state)
            if result.get("resultType") != "input_required":
                return await output_of(result, self.server.name, context.blobs)
            following = asking.next_round(result, waiting)
            if isinstance(following, str):
                raise ToolError(f"server {self.server.name} could not finish {self.listed.name}: {following}")
            waiting = following
            context.keep(msgspec.json.encode(waiting).decode())

    async def _answer(self, waiting: Round, context: ToolContext) -> JsonObject:
        answers: JsonObject = {key: asking.declined("it asks too much") for key in waiting.refused}
        for asked in waiting.requests:
            try:
                answers[asking.key_of(asked)] = await answer(self.server.name, asked, context)
            except PermissionError as error:
                raise ToolError(f"server {self.server.name} could not finish {self.listed.name}: {error}") from None
        if not waiting.requests:
            await asyncio.sleep(_STATE_ONLY * waiting.number)
        context.keep(msgspec.json.encode(msgspec.structs.replace(waiting, is_sent=True)).decode())
        return answers


class ChangedTool(ServerTool):
    """A tool that is not what somebody trusted. Nothing that its server says of it is shown to a model."""

    def __init__(self, caller: Caller, server: ServerSpec, listed: Listed, name: str) -> None:
        text = "Not available: it is new or has changed since its server was trusted, and waits to be trusted again."
        super().__init__(caller, server, Listed(listed.name, text, {"type": "object"}, {}), name, resumes=False)

    async def _run(self, arguments: JsonObject, context: ToolContext) -> Output:
        raise ToolChanged(
            f"{self._spec.name} is not what it was when server {self.server.name} was trusted; "
            "it can be called when somebody has looked at it and trusts it again"
        )


async def answer(server: str, asked: Asked, context: ToolContext) -> JsonObject:
    """What a server is told to one of its requests, once a person has been asked.

    Raises:
        PermissionError: it gets none, and why.
    """
    if asked.method == asking.ROOTS:
        return asking.NO_ROOTS
    question = await asyncio.to_thread(asking.question_of, server, asked)  # the check of a schema takes its time
    if question is None:
        if asked.method == asking.ELICIT:
            return asking.declined("it cannot be asked like this")
        raise PermissionError("it asks a model for something that cannot be shown to a person")
    verdict = await context.ask(question)
    if asked.method == asking.ELICIT:
        return asking.filled_in(asked, verdict)
    turn = asking.sub_turn_of(asked.params)
    if not verdict.allowed or turn is None:
        raise PermissionError(f"no model was asked for it: {verdict.reason or 'a person said no'}")
    came = await context.sub_turn(turn)
    if came.failure:
        raise PermissionError(f"the model did not answer: {came.failure}")
    return asking.sampled(came.text)
