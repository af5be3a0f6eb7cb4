"""AI SDK routes: point `useChat` at `/ai-sdk/chat`.

Of a request the last message counts: the person's new message, or the approvals and tool results in the last answer.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from everturn import api
from everturn.access.access import Access
from everturn.access.conversations.sessions import SessionAccess
from everturn.access.gates import GateAccess
from everturn.core.parts import ToolPart
from everturn.errors import UnknownGate, UnknownMessage, UnknownSession
from everturn.protocols.ai_sdk import HEADERS, AiSdkEncoder
from everturn.protocols.waiting_point import StreamPosition
from everturn.server.errors import RequestError
from everturn.server.protocols.ai_sdk.schema import UIAnswer, UIChat, UIMessage, UIPart
from everturn.server.protocols.common import (
    ContinuedTurn,
    ProtocolReply,
    answer_gate,
    answer_open_gates,
    client_result_text,
    resume_turn,
    running_turn,
    send_message,
)
from everturn.server.protocols.data_url import decode_data_url
from everturn.server.route import HttpRequestContext, Param, Response, Route
from everturn.server.streams.registry import StreamSlot


def _encoder(context: HttpRequestContext, session: str, place: StreamPosition | None = None) -> AiSdkEncoder:
    level, mode = context.query.get("sdk", "6"), context.query.get("approvals", "closed")
    return AiSdkEncoder(session, level=5 if level == "5" else 7 if level == "7" else 6, mode=mode, place=place)


async def _session(context: HttpRequestContext, chat: str) -> str:
    """The session that this user's client calls by this name; other users' names lead to other sessions."""
    return await context.access.scope.named_session(_name(chat))


def _name(chat: str) -> str:
    return f"ai-sdk:{chat}"


async def _chat(context: HttpRequestContext) -> Response:
    with context.streams.reserve(context.access) as seat:
        return await _handle_chat(context, context.body, seat)


async def _handle_chat(context: HttpRequestContext, body: UIChat, seat: StreamSlot) -> Response:
    session = await _session(context, body.id)
    last = body.messages[-1] if body.messages else UIMessage()
    if body.trigger == "regenerate-message":
        sent = await _regenerate(context, session, body)
    elif last.role == "assistant":
        continued = await _answer_gates(context, session, last)
        return await _stream(context, session, continued.turn, continued.position, seat)
    elif last.role == "user":
        sent = await _send_message(context, session, body, last)
    else:
        raise RequestError(
            "unfit", "the last message must be one of the user, or an assistant message with approvals", "messages"
        )
    return await _stream(context, sent.session, sent.turn, None, seat)


async def _stream(
    context: HttpRequestContext, session: str, turn: str, place: StreamPosition | None, seat: StreamSlot | None = None
) -> Response:
    encoder = _encoder(context, session, place)
    return await context.streams.encoded(context.access, session, turn, encoder, HEADERS, seat)


async def _send_message(context: HttpRequestContext, session: str, body: UIChat, last: UIMessage) -> api.MessageReceipt:
    text = "\n\n".join(part.text for part in last.parts if part.type == "text" and part.text)
    files = [await _attach_file(context.access, part) for part in last.parts if part.type == "file"]
    if body.messageId and body.messageId == last.id:
        own_messages = [
            message for message in (await context.access.sessions.messages(session)).messages if message.role == "user"
        ]
        number = sum(message.role == "user" for message in body.messages)
        if number > len(own_messages):
            raise UnknownMessage("there is no such message")
        edited = api.EditMessage(text=text, files=files, model=body.model)
        return await context.access.sessions.edit_message(session, own_messages[number - 1].id, edited, context.key)
    new = api.NewSession(
        text=text, files=files, agent=body.agent, model=body.model, clients=body.clients, busy=body.busy
    )
    return await send_message(context.access, session, new, context.key, _name(body.id))


async def _regenerate(context: HttpRequestContext, session: str, body: UIChat) -> api.MessageReceipt:
    """Regenerate an answer: the named one, else the last."""
    answers = [
        answer.id for answer in (await context.access.sessions.messages(session)).messages if answer.role == "assistant"
    ]
    if not answers:
        raise UnknownMessage("there is no such message")
    message = body.messageId if body.messageId in answers else answers[-1]
    return await context.access.sessions.rerun(session, message, api.RegenerateAnswer(model=body.model), context.key)


async def _answer_gates(context: HttpRequestContext, session: str, last: UIMessage) -> ContinuedTurn:
    """Answer gates with the person's decisions, and continue where the previous stream ended.

    Raises:
        UnknownGate: none of these gates is open.
    """
    replies = {
        part.approval.id: ProtocolReply(part.approval.approved, part.approval.reason or "")
        for part in last.parts
        if part.approval is not None and part.approval.approved is not None and part.state == "approval-responded"
    }
    results: dict[str, ProtocolReply] = {}
    for part in last.parts:
        if part.state == "output-available":
            results[part.toolCallId] = ProtocolReply(result=client_result_text(part.output))
        elif part.state == "output-error":
            results[part.toolCallId] = ProtocolReply(result=part.errorText or "it failed", failed=True)
    continued = await answer_open_gates(context, session, replies, results)
    if continued is None:
        continued = await _continue_after_other(context, session, last, frozenset(replies))
    if continued is None:
        raise UnknownGate("there is no such gate")
    return continued


async def _continue_after_other(
    context: HttpRequestContext, session: str, last: UIMessage, shown: frozenset[str]
) -> ContinuedTurn | None:
    """The running turn, if another client has answered the gates that this one was shown; its stream continues then."""
    now, turn = context.server_context.app.clock.now(), await running_turn(context.access, session)
    if turn is None or not shown:
        return None
    views = (await context.access.gates.page(session)).gates
    messages = (await context.access.sessions.turn(session, turn)).messages
    calls = {part.call for message in messages for part in message.parts if isinstance(part, ToolPart)}
    # The log may not have a saved answer yet, but its gate is no longer open.
    answered_calls = calls - {view.gate.call for view in views}
    if not any(part.toolCallId in answered_calls for part in last.parts if part.approval and part.approval.id in shown):
        return None
    still_open = frozenset(view.gate.id for view in views)
    return ContinuedTurn(turn, StreamPosition(shown=shown, answered=shown, still_open=still_open, at=now))


async def _attach_file(access: Access, part: UIPart) -> str:
    try:
        file = decode_data_url(part.url)
    except ValueError:
        raise RequestError("unfit", "a file does not match the type in its data: URL", "messages") from None
    if file is None:
        raise RequestError("unfit", "send a file as a data: URL; other URLs are not fetched", "messages")
    return (await access.files.upload(file.content, part.mediaType or file.media_type, part.filename or "")).file


async def _resume(context: HttpRequestContext) -> Response | None:
    session = await _session(context, context.ids["chat"])
    try:
        continued = await resume_turn(context, session)
    except UnknownSession:  # a new chat without messages is no error: its client tries to resume when it is mounted
        continued = None
    return await _stream(context, session, continued.turn, continued.position) if continued is not None else None


async def _stop(context: HttpRequestContext) -> None:
    session = await _session(context, context.ids["chat"])
    if (turn := await running_turn(context.access, session)) is not None:
        await context.access.sessions.cancel_turn(session, turn, api.CancelTurn(), context.key)


async def _answer(context: HttpRequestContext) -> None:
    answer: UIAnswer = context.body
    session = await _session(context, context.ids["chat"])
    views = (await context.access.gates.page(session)).gates
    gate = next((view.gate for view in views if view.gate.id == context.ids["gate"]), None)
    if gate is None:
        raise UnknownGate("there is no such gate")
    failed = answer.errorText is not None
    result = answer.errorText if failed else None if answer.output is UNSET else client_result_text(answer.output)
    if answer.approved is None and result is None:
        raise RequestError("unfit", "send `approved`, or the output of the tool", "approved")
    await answer_gate(
        context.access, session, gate, ProtocolReply(answer.approved is not False, answer.reason, result, failed)
    )


SDK: Final = Param(
    "sdk", {"enum": ["5", "6", "7"]}, "the major version of the `ai` package; without it 6, which 7 takes"
)
APPROVALS: Final = Param(
    "approvals",
    {"enum": ["open", "closed"]},
    "closed: the stream ends at an approval, and goes on with the next request; open: it stays, and is answered "
    "beside it",
)

ROUTES: Final = [
    Route(
        method="POST",
        path="/ai-sdk/chat",
        name="ai_sdk_chat",
        needs="member",
        calls=SessionAccess.send,
        about="Send a message, answer approvals, or regenerate an answer, as `useChat` does.",
        handler=_chat,
        body=UIChat,
        gives="events",
        query=(SDK, APPROVALS),
        tag="ai-sdk",
    ),
    Route(
        method="GET",
        path="/ai-sdk/chat/{chat}/stream",
        name="ai_sdk_resume",
        needs="viewer",
        calls=Access.follow,
        about="Stream the running turn from its first chunk; 204 if none is running.",
        handler=_resume,
        gives="events",
        query=(SDK, APPROVALS),
        tag="ai-sdk",
    ),
    Route(
        method="POST",
        path="/ai-sdk/chat/{chat}/stop",
        name="ai_sdk_stop",
        needs="member",
        calls=SessionAccess.cancel_turn,
        about="Cancel the running turn. Closing a stream does not cancel it.",
        handler=_stop,
        gives="none",
        status=204,
        tag="ai-sdk",
    ),
    Route(
        method="POST",
        path="/ai-sdk/chat/{chat}/approvals/{gate}",
        name="ai_sdk_answer",
        needs="member",
        calls=GateAccess.resolve,
        about="Answer an approval outside the stream, or send the result of a client tool.",
        handler=_answer,
        body=UIAnswer,
        gives="none",
        status=204,
        tag="ai-sdk",
    ),
]
