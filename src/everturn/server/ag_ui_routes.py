"""The route of AG-UI: one request is one run. A thread is a session; what a run asks, the next one answers."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, cast

from msgspec import Meta, Struct

from everturn import api
from everturn.access.access import Access
from everturn.core.options import ClientTool
from everturn.errors import UnknownGate
from everturn.protocols.ag_ui import AgUi
from everturn.protocols.standing import Place
from everturn.server.faces import Reply, answered, result_of, said
from everturn.server.lives import Seat
from everturn.server.problems import Refusal
from everturn.server.routing import Asked, Response, Route

Id = Annotated[str, Meta(min_length=1, max_length=150)]


class AgTool(Struct, frozen=True):
    """A tool that the client runs."""

    name: str
    description: str = ""
    parameters: Any = None


class AgMessage(Struct, frozen=True):
    """What is read of a message."""

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
    """What an AG-UI client sends. The last message is read, the results behind it, and `resume`; nothing else is."""

    threadId: Id
    runId: Id
    messages: list[AgMessage] = []
    tools: Annotated[list[AgTool], Meta(max_length=50)] = []
    resume: list[AgResume] = []
    forwardedProps: Any = None


async def _run(asked: Asked) -> Response:
    with asked.streams.seat(asked.access) as seat:
        return await _ran(asked, asked.body, seat)


async def _ran(asked: Asked, wanted: RunAgentInput, seat: Seat) -> Response:
    name = f"ag-ui:{wanted.threadId}"
    session = await asked.access.named_session(name)
    last = wanted.messages[-1] if wanted.messages else AgMessage()
    if wanted.resume or last.role == "tool":
        replies = {entry.interruptId: _reply(entry) for entry in wanted.resume}
        going = await answered(asked, session, replies, _results(wanted.messages))
        if going is None:
            raise UnknownGate("there is no such gate")
        return await _stream(asked, wanted, session, going.turn, going.place, seat)
    if last.role != "user":
        raise Refusal(
            "unfit", "a run begins with a message of the person's, with `resume`, or with results", "messages"
        )
    new = api.NewSession(text=_text(last.content), agent=_agent(wanted), clients=list(map(_client, wanted.tools)))
    sent = await said(asked.access, session, new, asked.key, name)
    return await _stream(asked, wanted, sent.session, sent.turn, None, seat)


async def _stream(
    asked: Asked, wanted: RunAgentInput, session: str, turn: str, place: Place | None, seat: Seat
) -> Response:
    encoder = AgUi(wanted.threadId, wanted.runId, session, turn, place)
    return await asked.streams.encoded(asked.access, session, turn, encoder, seat=seat)


def _results(messages: list[AgMessage]) -> dict[str, Reply]:
    """What the client's tools came to: the results behind everything else."""
    results: dict[str, Reply] = {}
    for message in reversed(messages):
        if message.role != "tool":
            break
        result = message.error or result_of(message.content)
        results[message.toolCallId] = Reply(result=result, failed=bool(message.error))
    return results


def _reply(entry: AgResume) -> Reply:
    """An answer; what says nothing clear is no yes."""
    payload: object = entry.payload
    said = cast("dict[str, Any]", payload) if isinstance(payload, dict) else {"approved": payload}
    reason = said.get("reason")
    reason = reason[:10_000] if isinstance(reason, str) else ""
    if entry.status == "cancelled" or said.get("approved") is not True:
        return Reply(approved=False, reason=reason)
    arguments, text, result = said.get("arguments", said.get("editedArgs")), said.get("text"), said.get("result")
    return Reply(
        reason=reason,
        arguments=cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None,
        text=text if isinstance(text, str) else None,
        result=None if result is None else result_of(result),
    )


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("dict[str, Any]", part).get("text") for part in parts if isinstance(part, dict)]
    if not parts or not all(isinstance(text, str) for text in texts) or len(texts) < len(parts):
        raise Refusal("unfit", "a message is a text, or parts that are texts", "messages")
    return "\n\n".join(cast("list[str]", texts))


def _agent(wanted: RunAgentInput) -> str:
    props = wanted.forwardedProps
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
        calls=Access.send,
        about="One run of AG-UI: a message, or answers to what an earlier run was interrupted for.",
        handler=_run,
        body=RunAgentInput,
        gives="events",
        tag="ag-ui",
    )
]
