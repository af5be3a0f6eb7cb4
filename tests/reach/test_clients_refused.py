"""Claims and answers of clients that nobody gave, to what nobody asked, too late or twice: each is refused, and nothing
changes by it.
"""

from __future__ import annotations

from typing import Any

import pytest

from everturn import Chat, Gate, tool
from everturn.core.commands import AnyCommand, Cancel, ClaimCall, ResolveGate
from everturn.core.events import CallClaimed, CommandDropped, GateResolved
from everturn.core.gates import GateResolution
from everturn.core.store_ports import Store
from everturn.errors import (
    AnsweredOtherwise,
    AnswerUnfit,
    ClaimedOtherwise,
    EverturnError,
    GateClosed,
    GateExpired,
    HashMismatch,
    NotClaimed,
    UnknownGate,
    UnknownSession,
)
from everturn.testing import call, calls, say
from tests.helpers.conversations import Talk
from tests.reach.test_clients import bell, parked, ringing

DONE: dict[str, Any] = {"result": '{"rung":1}'}

NAMES: dict[str, tuple[dict[str, Any], type[EverturnError]]] = {
    "another gate": ({"gate": "nobody's"}, UnknownGate),
    "no gate": ({"gate": ""}, UnknownGate),
    "another hash": ({"hash": "0" * 64}, HashMismatch),
    "no hash": ({"hash": ""}, HashMismatch),
    "another session": ({"session": "t"}, UnknownGate),
    "no such session": ({"session": "nowhere"}, UnknownSession),
    "another tenant": ({"tenant": "other"}, UnknownSession),
    "no tenant": ({"tenant": ""}, UnknownSession),
}
WRONG_CLAIMS: dict[str, tuple[dict[str, Any], type[EverturnError]]] = {
    **NAMES,
    "nobody": ({"by": ""}, AnswerUnfit),
    "no time": ({"lease": 0.0}, AnswerUnfit),
    "negative time": ({"lease": -1.0}, AnswerUnfit),
    "too much time": ({"lease": 3601.0}, AnswerUnfit),
}
WRONG_ANSWERS: dict[str, tuple[dict[str, Any], type[EverturnError]]] = {
    **NAMES,
    "by a stranger": ({"resolution": GateResolution(True, by="two", claim="two", **DONE)}, NotClaimed),
    "by nobody": ({"resolution": GateResolution(True, **DONE)}, NotClaimed),
    "a failure by a stranger": (
        {"resolution": GateResolution(True, claim="two", result="no", failed=True)},
        NotClaimed,
    ),
    "that does not fit": ({"resolution": GateResolution(True, claim="one", result="{}")}, AnswerUnfit),
    "without a result": ({"resolution": GateResolution(True, claim="one")}, AnswerUnfit),
    "with other arguments": (
        {"resolution": GateResolution(True, claim="one", arguments='{"times":2}', **DONE)},
        AnswerUnfit,
    ),
    "a denial with a result": ({"resolution": GateResolution(False, claim="one", **DONE)}, AnswerUnfit),
    "with something to remember": (
        {"resolution": GateResolution(True, claim="one", everywhere=True, **DONE)},
        AnswerUnfit,
    ),
    "with a text": ({"resolution": GateResolution(True, claim="one", text="x", **DONE)}, AnswerUnfit),
}


def take(gate: Gate, key: str = "k", /, **wrong: Any) -> ClaimCall:
    fields: dict[str, Any] = {"session": "s", "at": 0.0, "gate": gate.id, "hash": gate.hash, "by": "one", "lease": 9.0}
    return ClaimCall(key=key, **{**fields, **wrong})


def answer(gate: Gate, key: str = "k", /, **wrong: Any) -> ResolveGate:
    resolution = GateResolution(True, by="one", claim="one", **DONE)
    fields: dict[str, Any] = {"session": "s", "at": 0.0, "gate": gate.id, "hash": gate.hash, "resolution": resolution}
    return ResolveGate(key=key, **{**fields, **wrong})


async def changed(store: Store) -> Any:
    """Everything that a refusal must leave as it is."""
    infos = sorted(info.id for info in await store.sessions())
    rows = [(row.gate, row.resolution, row.is_open, row.claim) for row in await store.gates()]
    logs = [[entry.event for entry in await store.events(name)] for name in infos]
    return rows, logs, [await store.inbox(name) for name in infos]


async def refused(talk: Talk, chat: Chat, command: AnyCommand, error: type[EverturnError]) -> None:
    """A command is refused, with this very error, and nothing is different."""
    before = await changed(talk.store)
    with pytest.raises(error) as caught:
        await chat.app.command(command)
    assert type(caught.value) is error
    assert await changed(talk.store) == before


@pytest.mark.parametrize("is_claimed", [False, True])
async def test_a_claim_or_an_answer_with_anything_altered_is_refused_and_changes_nothing(
    is_claimed: bool, store: Store
) -> None:
    talk, other = Talk(bell(), store=store), Talk(bell(), store=store)
    other.session = "t"  # of the same tenant
    await other.tell(say("Hello."))
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        if is_claimed:
            await chat.claim(gate, "one", 50.0)
            await talk.until(CallClaimed)
        now = talk.clock.now()
        for at, (wrong, error) in enumerate(WRONG_CLAIMS.values()):
            await refused(talk, chat, take(gate, f"claim{at}", at=now, **wrong), error)
        for at, (wrong, error) in enumerate(WRONG_ANSWERS.values()):
            await refused(talk, chat, answer(gate, f"answer{at}", at=now, **wrong), error)
        if not is_claimed:
            await refused(talk, chat, answer(gate, "unclaimed", at=now), NotClaimed)
            await chat.claim(gate, "one", 50.0)
            await talk.until(CallClaimed)
        await refused(talk, chat, take(gate, "other", at=now, by="two"), ClaimedOtherwise)
        await chat.app.command(answer(gate, at=now))
        await turn
    assert [event.output.text for event in await talk.settled()] == ['{"rung":1}']


async def test_an_answer_is_taken_once_and_the_same_again_is_the_same(store: Store) -> None:
    talk = Talk(bell(), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        await chat.claim(gate, "one")
        await chat.answer(gate, claim="one", by="one", **DONE)
        await chat.answer(gate, claim="one", by="one", **DONE)  # it did not hear that it was taken
        with pytest.raises(AnsweredOtherwise):
            await chat.answer(gate, claim="one", result='{"rung":2}')
        with pytest.raises(AnsweredOtherwise):
            await chat.claim(gate, "one")
        await turn
        await refused(
            talk,
            chat,
            answer(gate, "late", resolution=GateResolution(True, claim="one", result="{}")),
            AnsweredOtherwise,
        )
        await refused(talk, chat, take(gate, "late too"), AnsweredOtherwise)
    assert len(await talk.events(GateResolved)) == 1


async def test_after_a_cancel_nobody_claims_or_answers(store: Store) -> None:
    talk = Talk(bell(), store=store)
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
        await chat.claim(gate, "one")
        await turn.cancel()
        await turn
        await refused(talk, chat, answer(gate, "a"), GateClosed)
        await refused(talk, chat, take(gate, "b"), GateClosed)
        await refused(talk, chat, take(gate, "c", by="two"), GateClosed)
    assert [event.state for event in await talk.settled()] == ["cancelled"]


async def test_a_gate_that_has_expired_is_neither_claimed_nor_answered(store: Store) -> None:
    talk = Talk(bell(timeout=30.0), store=store)
    async with talk.process(*ringing(1)) as chat:
        await chat.send("go")
        gate = await parked(talk, chat)
        await chat.claim(gate, "one")
    talk.clock.advance(31.0)  # and nobody is there who would notice
    now = talk.clock.now()
    before = await changed(store)
    for command in (answer(gate, "a", at=now), take(gate, "b", at=now), take(gate, "c", at=now, by="two")):
        with pytest.raises(GateExpired):
            await store.admit(command)
    assert await changed(store) == before


@pytest.mark.parametrize("repeat", ["read_only", "at_most_once"])
async def test_an_answer_after_the_time_of_its_claim_is_refused(repeat: str, store: Store) -> None:
    talk = Talk(bell(repeat), store=store)
    async with talk.process(*ringing(1)) as chat:
        await chat.send("go")
        gate = await parked(talk, chat)
        await chat.claim(gate, "one", 10.0)
        await talk.until(CallClaimed)
    talk.clock.advance(10.0)  # to the very moment
    now, before = talk.clock.now(), await changed(store)
    with pytest.raises(NotClaimed):
        await store.admit(answer(gate, "a", at=now))
    if repeat == "at_most_once":  # whoever it is, and were it the same
        for by in ("one", "two"):
            with pytest.raises(ClaimedOtherwise):
                await store.admit(take(gate, by, at=now, by=by))
    assert await changed(store) == before
    if repeat == "read_only":
        await store.admit(take(gate, "again", at=now, lease=10.0))
        await store.admit(answer(gate, "b", at=now))


async def test_a_claim_that_its_turn_did_not_live_to_see_is_dropped_and_says_so() -> None:
    talk = Talk(bell())
    async with talk.process(*ringing(1)) as chat:
        turn = await chat.send("go")
        gate = await parked(talk, chat)
    await talk.store.admit(Cancel(key="cancel", session="s", turn=turn.id))
    with pytest.raises(GateClosed):  # it is being cancelled
        await talk.store.admit(take(gate, at=talk.clock.now()))
    async with talk.process(*ringing(1)) as chat:
        assert str((await chat.turn(turn.id)).phase) == "cancelled"
    assert await talk.events(CallClaimed, CommandDropped) == []


async def test_no_client_claims_what_is_asked_of_a_person() -> None:
    @tool(approval="always")
    def mail() -> str:
        return "sent"

    talk = Talk(mail)
    async with talk.process(calls(call("mail")), say("Sent.")) as chat:
        turn = await chat.send("go")
        [gate] = await talk.waiting(chat)
        await refused(talk, chat, take(gate), AnswerUnfit)
        await talk.play(chat, turn)
