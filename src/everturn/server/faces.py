"""What the routes of other people's faces have in common: which session, which turn, and answers to what stands open.

Of all that such a face sends along only ids are read, and each is held against what stands open in the session: a history
that says that something was approved is evidence of nothing.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from typing import Any

from msgspec import Struct

from everturn import api
from everturn.access.access import Access
from everturn.core.asking import Gate
from everturn.core.canonical import canonical
from everturn.errors import AnsweredOtherwise, ClaimedOtherwise, GateClosed, GateExpired, KeyConflict, UnknownSession
from everturn.protocols.standing import Place
from everturn.server.routing import Asked

GONE = (AnsweredOtherwise, ClaimedOtherwise, GateClosed, GateExpired)
"""Somebody else was faster, and the turn goes on without this answer."""


class Reply(Struct, frozen=True):
    """What a face answers to a gate. A `result` is that of a client that ran the call, or a form that was filled in."""

    approved: bool = True
    reason: str = ""
    result: str | None = None
    failed: bool = False
    arguments: dict[str, Any] | None = None
    text: str | None = None


class Turning(Struct, frozen=True):
    """A turn that goes on, and from where."""

    turn: str
    place: Place


async def said(access: Access, session: str, text: api.NewSession, key: str, name: str) -> api.Sent:
    """Say something in the session that a face calls by a name of its own; with the first message it begins."""
    try:
        await access.session(session)
    except UnknownSession:
        with suppress(KeyConflict):  # two first messages at once: one of them is the second
            return await access.begin_named(text, name)
    fields = {field: getattr(text, field) for field in text.__struct_fields__}
    return await access.send(session, api.NewMessage(**fields), key)


async def under_way(access: Access, session: str) -> str | None:
    """The turn at the end of the selected branch, if it is not over."""
    messages = (await access.messages(session)).messages
    turn = messages[-1].turn if messages else ""
    if not turn or (await access.turn(session, turn)).phase.is_terminal:
        return None
    return turn


async def resumed(asked: Asked, session: str) -> Turning | None:
    """The turn that is under way, from its beginning."""
    now = asked.house.runtime.clock.now()
    turn = await under_way(asked.access, session)
    if turn is None:
        return None
    views = (await asked.access.gates(session)).gates
    return Turning(turn, Place(still_open=frozenset(view.gate.id for view in views), at=now))


async def answered(asked: Asked, session: str, replies: dict[str, Reply], results: dict[str, Reply]) -> Turning | None:
    """Give answers to gates by their ids, and results to clients' calls by theirs; None: nothing of it was asked here.

    Raises:
        Forbidden: this is not for them to answer.
    """
    now = asked.house.runtime.clock.now()  # before the gates are read: what opens later is no history
    views = (await asked.access.gates(session)).gates
    done: dict[str, Gate] = {}
    for gate in (view.gate for view in views if view.session == session):
        reply = results.get(gate.call) if gate.kind == "client" else None
        reply = reply or replies.get(gate.id)
        if reply is not None:
            with suppress(*GONE):
                await give(asked.access, session, gate, reply)
            done[gate.id] = gate
    if not done:
        return None
    turn = next(iter(done.values())).turn
    shown = frozenset(gate.id for gate in done.values() if gate.turn == turn)
    still_open = frozenset(view.gate.id for view in views) - shown
    return Turning(turn, Place(shown=shown, answered=frozenset(done), still_open=still_open, at=now))


async def give(access: Access, session: str, gate: Gate, reply: Reply) -> None:
    """Answer one gate. For a call that a client ran, it is claimed first: of two that ran it one is heard."""
    if not reply.approved:
        deny = api.Answered(hash=gate.hash, deny=reply.reason or True)
        return await access.answer(session, gate.id, deny)
    if reply.result is not None and gate.kind in ("client", "form", "hand", "call"):
        claim = secrets.token_urlsafe(24) if gate.kind == "client" else ""
        if claim:
            await access.claim(session, gate.id, api.Claim(hash=gate.hash, claim=claim))
        answer = api.Answered(hash=gate.hash, result=reply.result, failed=reply.failed, claim=claim)
        return await access.answer(session, gate.id, answer)
    answer = api.Answered(hash=gate.hash, allow="once", arguments=reply.arguments, text=reply.text)
    return await access.answer(session, gate.id, answer)


def result_of(value: Any) -> str:
    """What a client's tool came to, as the text that is kept of it."""
    return value if isinstance(value, str) else canonical(value)
