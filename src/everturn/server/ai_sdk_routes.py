"""The routes of the AI SDK: point `useChat` at `/ai-sdk/chat`.

Of a request the last message counts: what a person says in it, or which of the pending ids of the answer were decided.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64
from typing import Final
from urllib.parse import unquote_to_bytes

from msgspec import UNSET

from everturn import api
from everturn.access.access import Access
from everturn.core.parts import ToolPart
from everturn.errors import UnknownGate, UnknownMessage, UnknownSession
from everturn.protocols.ai_sdk import HEADERS, AiSdk
from everturn.protocols.standing import Place
from everturn.server.ai_sdk_bodies import UIAnswer, UIChat, UIMessage, UIPart
from everturn.server.faces import Reply, Turning, answered, give, result_of, resumed, said, under_way
from everturn.server.lives import Seat
from everturn.server.problems import Refusal
from everturn.server.routing import Asked, Param, Response, Route


def _encoder(asked: Asked, session: str, place: Place | None = None) -> AiSdk:
    level, mode = asked.query.get("sdk", "6"), asked.query.get("approvals", "closed")
    return AiSdk(session, level=5 if level == "5" else 7 if level == "7" else 6, mode=mode, place=place)


async def _session(asked: Asked, chat: str) -> str:
    """The session that a client calls by this name: nobody else's name leads to it."""
    return await asked.access.named_session(_name(chat))


def _name(chat: str) -> str:
    return f"ai-sdk:{chat}"


async def _chat(asked: Asked) -> Response:
    with asked.streams.seat(asked.access) as seat:
        return await _said(asked, asked.body, seat)


async def _said(asked: Asked, wanted: UIChat, seat: Seat) -> Response:
    session = await _session(asked, wanted.id)
    last = wanted.messages[-1] if wanted.messages else UIMessage()
    if wanted.trigger == "regenerate-message":
        sent = await _again(asked, session, wanted)
    elif last.role == "assistant":
        going = await _decided(asked, session, last)
        return await _stream(asked, session, going.turn, going.place, seat)
    elif last.role == "user":
        sent = await _say(asked, session, wanted, last)
    else:
        raise Refusal("unfit", "the last message is the person's, or an answer with approvals", "messages")
    return await _stream(asked, sent.session, sent.turn, None, seat)


async def _stream(asked: Asked, session: str, turn: str, place: Place | None, seat: Seat | None = None) -> Response:
    encoder = _encoder(asked, session, place)
    return await asked.streams.encoded(asked.access, session, turn, encoder, HEADERS, seat)


async def _say(asked: Asked, session: str, wanted: UIChat, last: UIMessage) -> api.Sent:
    text = "\n\n".join(part.text for part in last.parts if part.type == "text" and part.text)
    files = [await _attached(asked.access, part) for part in last.parts if part.type == "file"]
    if wanted.messageId and wanted.messageId == last.id:
        mine = [one for one in (await asked.access.messages(session)).messages if one.role == "user"]
        number = sum(one.role == "user" for one in wanted.messages)
        if number > len(mine):
            raise UnknownMessage("there is no such message")
        edited = api.Edited(text=text, files=files, model=wanted.model)
        return await asked.access.edit(session, mine[number - 1].id, edited, asked.key)
    new = api.NewSession(
        text=text, files=files, agent=wanted.agent, model=wanted.model, clients=wanted.clients, busy=wanted.busy
    )
    return await said(asked.access, session, new, asked.key, _name(wanted.id))


async def _again(asked: Asked, session: str, wanted: UIChat) -> api.Sent:
    """Another version of an answer: the one that is named, else the last."""
    answers = [one.id for one in (await asked.access.messages(session)).messages if one.role == "assistant"]
    if not answers:
        raise UnknownMessage("there is no such message")
    message = wanted.messageId if wanted.messageId in answers else answers[-1]
    return await asked.access.rerun(session, message, api.Rerun(model=wanted.model), asked.key)


async def _decided(asked: Asked, session: str, last: UIMessage) -> Turning:
    """Give what the person decided to what is asked, and go on where the stream before this one ended.

    Raises:
        UnknownGate: nothing of it is asked here.
    """
    replies = {
        part.approval.id: Reply(part.approval.approved, part.approval.reason or "")
        for part in last.parts
        if part.approval is not None and part.approval.approved is not None and part.state == "approval-responded"
    }
    results: dict[str, Reply] = {}
    for part in last.parts:
        if part.state == "output-available":
            results[part.toolCallId] = Reply(result=result_of(part.output))
        elif part.state == "output-error":
            results[part.toolCallId] = Reply(result=part.errorText or "it failed", failed=True)
    going = await answered(asked, session, replies, results)
    if going is None:
        going = await _overtaken(asked, session, last, frozenset(replies))
    if going is None:
        raise UnknownGate("there is no such gate")
    return going


async def _overtaken(asked: Asked, session: str, last: UIMessage, shown: frozenset[str]) -> Turning | None:
    """The turn that goes on because somebody else has answered what this client was asked, and so does its stream."""
    now, turn = asked.house.runtime.clock.now(), await under_way(asked.access, session)
    if turn is None or not shown:
        return None
    views = (await asked.access.gates(session)).gates
    messages = (await asked.access.turn(session, turn)).messages
    made = {part.call for message in messages for part in message.parts if isinstance(part, ToolPart)}
    # Of an answer that is safe the log may not know yet, but its gate is no longer open.
    past = made - {view.gate.call for view in views}
    if not any(part.toolCallId in past for part in last.parts if part.approval and part.approval.id in shown):
        return None
    still_open = frozenset(view.gate.id for view in views)
    return Turning(turn, Place(shown=shown, answered=shown, still_open=still_open, at=now))


async def _attached(access: Access, part: UIPart) -> str:
    head, comma, data = part.url.partition(",")
    if not head.startswith("data:") or not comma:
        raise Refusal("unfit", "a file comes as a data: URL; nothing is fetched from elsewhere", "messages")
    try:
        content = b64decode(data, validate=True) if head.endswith(";base64") else unquote_to_bytes(data)
    except (NotBase64, ValueError):
        raise Refusal("unfit", "a file is not what its data: URL says", "messages") from None
    kind = part.mediaType or head.removeprefix("data:").partition(";")[0] or "application/octet-stream"
    return (await access.attach(content, kind, part.filename or "")).file


async def _resume(asked: Asked) -> Response | None:
    session = await _session(asked, asked.ids["chat"])
    try:
        going = await resumed(asked, session)
    except UnknownSession:  # a chat that has said nothing yet is no mistake: its client asks when it is mounted
        going = None
    return await _stream(asked, session, going.turn, going.place) if going is not None else None


async def _stop(asked: Asked) -> None:
    session = await _session(asked, asked.ids["chat"])
    if (turn := await under_way(asked.access, session)) is not None:
        await asked.access.cancel(session, turn, api.Cancelled(), asked.key)


async def _answer(asked: Asked) -> None:
    answer: UIAnswer = asked.body
    session = await _session(asked, asked.ids["chat"])
    views = (await asked.access.gates(session)).gates
    gate = next((view.gate for view in views if view.gate.id == asked.ids["gate"]), None)
    if gate is None:
        raise UnknownGate("there is no such gate")
    failed = answer.errorText is not None
    result = answer.errorText if failed else None if answer.output is UNSET else result_of(answer.output)
    if answer.approved is None and result is None:
        raise Refusal("unfit", "say whether it is approved, or what came of it", "approved")
    await give(asked.access, session, gate, Reply(answer.approved is not False, answer.reason, result, failed))


SDK: Final = Param(
    "sdk", {"enum": ["5", "6", "7"]}, "the major version of the `ai` package; without it 6, which 7 takes"
)
APPROVALS: Final = Param(
    "approvals",
    {"enum": ["open", "closed"]},
    "closed: the stream ends at an approval, and goes on with the next request; open: it stays, and is answered beside it",
)

ROUTES: Final = [
    Route(
        method="POST",
        path="/ai-sdk/chat",
        name="ai_sdk_chat",
        needs="member",
        calls=Access.send,
        about="Say something, answer approvals, or ask for another answer, as `useChat` does.",
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
        about="The turn that is under way, from its first chunk; 204 when there is none.",
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
        calls=Access.cancel,
        about="End the turn that is under way; to leave a stream ends nothing.",
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
        calls=Access.answer,
        about="Answer an approval beside the stream, or hand in what a client's tool came to.",
        handler=_answer,
        body=UIAnswer,
        gives="none",
        status=204,
        tag="ai-sdk",
    ),
]
