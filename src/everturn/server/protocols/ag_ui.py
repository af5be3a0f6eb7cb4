"""AG-UI route: one request is one run. A thread is a session; a run ends at an open gate, and the next run answers it."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, cast

from msgspec import Meta, Struct

from everturn import api
from everturn.access.conversations.sessions import SessionAccess
from everturn.core.options import ClientTool
from everturn.errors import UnknownGate
from everturn.protocols.ag_ui import AgUiEncoder
from everturn.protocols.waiting_point import StreamPosition
from everturn.server.errors import RequestError
from everturn.server.protocols.common import ProtocolReply, answer_open_gates, client_result_text, send_message
from everturn.server.route import HttpRequestContext, Response, Route
from everturn.server.streams.registry import StreamSlot

Id = Annotated[str, Meta(min_length=1, max_length=150)]


class AgTool(Struct, frozen=True):
    """A tool that the client runs."""

    name: str
    description: str = ""
    parameters: Any = None


class AgMessage(Struct, frozen=True):
    """The fields of a message that are read."""

    id: str = ""
    role: str = ""
    content: Any = None
    toolCallId: str = ""
    error: str | None = None


class AgResume(Struct, frozen=True):
    """The answer to an interrupt. The payload is `{"approved": …}`, with `reason`, `arguments`, `result` or `text`."""

    interruptId: str
    status: Literal["resolved", "cancelled"] = "resolved"
    payload: Any = None


class RunAgentInput(Struct, frozen=True):
    """The body of an AG-UI run. Only the last message, the tool results at the end, and `resume` are read."""

    threadId: Id
    runId: Id
    messages: list[AgMessage] = []
    tools: Annotated[list[AgTool], Meta(max_length=50)] = []
    resume: list[AgResume] = []
    forwardedProps: Any = None


async def _run(context: HttpRequestContext) -> Response:
    with context.streams.reserve(context.access) as seat:
        return await _run_in_slot(context, context.body, seat)


async def _run_in_slot(context: HttpRequestContext, body: RunAgentInput, seat: StreamSlot) -> Response:
    name = f"ag-ui:{body.threadId}"
    session = await context.access.scope.named_session(name)
    last = body.messages[-1] if body.messages else AgMessage()
    if body.resume or last.role == "tool":
        replies = {entry.interruptId: _reply(entry) for entry in body.resume}
        continued = await answer_open_gates(context, session, replies, _results(body.messages))
        if continued is None:
            raise UnknownGate("there is no such gate")
        return await _stream(context, body, session, continued.turn, continued.position, seat)
    if last.role != "user":
        raise RequestError("unfit", "a run needs a message of the user, `resume`, or tool results", "messages")
    new = api.NewSession(text=_text(last.content), agent=_agent(body), clients=list(map(_client, body.tools)))
    sent = await send_message(context.access, session, new, context.key, name)
    return await _stream(context, body, sent.session, sent.turn, None, seat)


async def _stream(
    context: HttpRequestContext,
    body: RunAgentInput,
    session: str,
    turn: str,
    place: StreamPosition | None,
    seat: StreamSlot,
) -> Response:
    encoder = AgUiEncoder(body.threadId, body.runId, session, turn, place)
    return await context.streams.encoded(context.access, session, turn, encoder, seat=seat)


def _results(messages: list[AgMessage]) -> dict[str, ProtocolReply]:
    """The results of client tools at the end of the messages."""
    results: dict[str, ProtocolReply] = {}
    for message in reversed(messages):
        if message.role != "tool":
            break
        result = message.error or client_result_text(message.content)
        results[message.toolCallId] = ProtocolReply(result=result, failed=bool(message.error))
    return results


def _reply(entry: AgResume) -> ProtocolReply:
    """Read the answer to an interrupt; everything but an explicit `approved: true` denies."""
    payload: object = entry.payload
    answer = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {"approved": payload}
    reason = answer.get("reason")
    reason = reason[:10_000] if isinstance(reason, str) else ""
    if entry.status == "cancelled" or answer.get("approved") is not True:
        return ProtocolReply(approved=False, reason=reason)
    arguments, text, result = (
        answer.get("arguments", answer.get("editedArgs")),
        answer.get("text"),
        answer.get("result"),
    )
    return ProtocolReply(
        reason=reason,
        arguments=cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None,
        text=text if isinstance(text, str) else None,
        result=None if result is None else client_result_text(result),
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("dict[str, Any]", part).get("text") for part in parts if isinstance(part, dict)]
    if not parts or not all(isinstance(text, str) for text in texts) or len(texts) < len(parts):
        raise RequestError("unfit", "a message must be a string, or parts that are text", "messages")
    return "\n\n".join(cast("list[str]", texts))


def _agent(body: RunAgentInput) -> str:
    props = body.forwardedProps
    agent = cast("dict[str, Any]", props).get("agent", "") if isinstance(props, dict) else ""
    return agent[:200] if isinstance(agent, str) else ""


def _client(tool: AgTool) -> ClientTool:
    parameters: object = tool.parameters
    schema = cast("dict[str, object]", parameters) if isinstance(parameters, dict) else {}
    return ClientTool(tool.name, tool.description, {"type": "object", **schema})


ROUTES: Final = [
    Route(
        method="POST",
        path="/ag-ui",
        name="ag_ui_run",
        needs="member",
        calls=SessionAccess.send,
        about="Run an agent with the AG-UI protocol: a message, or answers to interrupts of an earlier run.",
        handler=_run,
        body=RunAgentInput,
        gives="events",
        tag="ag-ui",
    )
]
