"""Common parts of the AI SDK, AG-UI and A2A routes: finding the session and the turn, and answering open gates.

Of all that a client sends along, only ids are read, and each is checked against the gates that are open in the session: a
history that claims that something was approved proves nothing.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any

from msgspec import Struct

from everturn import api
from everturn.access.access import Access
from everturn.core.canonical_json import encode_canonical
from everturn.core.gates import Gate
from everturn.errors import AnsweredOtherwise, ClaimedOtherwise, GateClosed, GateExpired, KeyConflict, UnknownSession
from everturn.protocols.waiting_point import StreamPosition
from everturn.server.route import HttpRequestContext

ALREADY_ANSWERED = (AnsweredOtherwise, ClaimedOtherwise, GateClosed, GateExpired)
"""Errors of a gate that another client has answered first; the turn continues without this answer."""


class ProtocolReply(Struct, frozen=True):
    """A client's answer to a gate. `result` is the output of a call that the client ran, or a submitted form."""

    approved: bool = True
    reason: str = ""
    result: str | None = None
    failed: bool = False
    arguments: dict[str, Any] | None = None
    text: str | None = None


class ContinuedTurn(Struct, frozen=True):
    """A running turn, and the position from which its stream continues."""

    turn: str
    position: StreamPosition


async def send_message(access: Access, session: str, text: api.NewSession, key: str, name: str) -> api.MessageReceipt:
    """Send a message to the session with the client's own name `name`; the first message begins the session."""
    try:
        await access.sessions.get(session)
    except UnknownSession:
        with suppress(KeyConflict):  # two first messages at once: one of them becomes the second
            return await access.sessions.start_with_id(text, name)
    fields = {field: getattr(text, field) for field in api.MessageRequest.__struct_fields__}
    return await access.sessions.send(session, api.NewMessage(**fields), key)


async def running_turn(access: Access, session: str) -> str | None:
    """The turn at the end of the selected branch, if it is not over."""
    messages = (await access.sessions.messages(session)).messages
    turn = messages[-1].turn if messages else ""
    if not turn or (await access.sessions.turn(session, turn)).phase.is_terminal:
        return None
    return turn


async def resume_turn(context: HttpRequestContext, session: str) -> ContinuedTurn | None:
    """The running turn, from its beginning."""
    now = context.server_context.app.clock.now()
    turn = await running_turn(context.access, session)
    if turn is None:
        return None
    views = (await context.access.gates.page(session)).gates
    return ContinuedTurn(turn, StreamPosition(still_open=frozenset(view.gate.id for view in views), at=now))


async def answer_open_gates(
    context: HttpRequestContext, session: str, replies: dict[str, ProtocolReply], results: dict[str, ProtocolReply]
) -> ContinuedTurn | None:
    """Answer gates by their ids, and calls of client tools by their call ids; None if none of them is open.

    Raises:
        Forbidden: the caller may not answer this gate.
    """
    now = context.server_context.app.clock.now()  # before the gates are read: a gate that opens later is not history
    views = (await context.access.gates.page(session)).gates
    answered_gates: dict[str, Gate] = {}
    for gate in (view.gate for view in views if view.session == session):
        reply = results.get(gate.call) if gate.kind == "client" else None
        reply = reply or replies.get(gate.id)
        if reply is not None:
            with suppress(*ALREADY_ANSWERED):
                await answer_gate(context.access, session, gate, reply)
            answered_gates[gate.id] = gate
    if not answered_gates:
        return None
    turn = next(iter(answered_gates.values())).turn
    answered_ids = frozenset(gate.id for gate in answered_gates.values() if gate.turn == turn)
    still_open = frozenset(view.gate.id for view in views) - answered_ids
    return ContinuedTurn(
        turn, StreamPosition(shown=answered_ids, answered=frozenset(answered_gates), still_open=still_open, at=now)
    )


async def answer_gate(access: Access, session: str, gate: Gate, reply: ProtocolReply) -> None:
    """Answer one gate. A client tool's call is claimed first: of two clients that ran it, only one is accepted."""
    if not reply.approved:
        deny = api.AnswerGate(hash=gate.hash, deny=reply.reason or True)
        return await access.gates.resolve(session, gate.id, deny)
    if reply.result is not None and gate.kind in ("client", "form", "manual", "call"):
        claim = secrets.token_urlsafe(24) if gate.kind == "client" else ""
        if claim:
            await access.gates.claim(session, gate.id, api.ClaimGate(hash=gate.hash, claim=claim))
        answer = api.AnswerGate(hash=gate.hash, result=reply.result, failed=reply.failed, claim=claim)
        return await access.gates.resolve(session, gate.id, answer)
    answer = api.AnswerGate(hash=gate.hash, allow="once", arguments=reply.arguments, text=reply.text)
    return await access.gates.resolve(session, gate.id, answer)


def client_result_text(value: Any) -> str:
    """The output of a client tool as text."""
    return value if isinstance(value, str) else encode_canonical(value)
