"""Whatever is another tenant's is not there, and looks exactly so: for every method, and every id that it takes."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everturn import api
from everturn.access import Access, needs, role_of
from everturn.access.access import House
from everturn.access.inside import Inside
from everturn.core.accounts import ROLES, Role
from everturn.errors import (
    EverturnError,
    Forbidden,
    UnknownFile,
    UnknownGrant,
    UnknownMessage,
    UnknownSession,
    UnknownTurn,
)
from tests.access.house import a_house, gate_in, over, said, somebody

PUBLIC = [
    name
    for name, member in inspect.getmembers(Access, inspect.isfunction)
    if not name.startswith("_") and not hasattr(Inside, name) and "needs" in member.__dict__
]
HEX = "0" * 64

# For every parameter of every method: something that fits, for ids from a session that is given.
BODIES: dict[str, Any] = {
    "said": api.NewMessage(text="look"),
    "asked": api.Rerun(),
    "edited": api.Edited(text="again"),
    "selected": api.Selected(),
    "cancelled": api.Cancelled(),
    "answered": api.Answered(hash="h", allow="once"),
    "reverted": api.Reverted(root="", tree="t"),
}


class Ids(msgspec.Struct):
    """Ids that are there, in one session."""

    session: str
    turn: str
    message: str
    gate: str
    hash: str
    blob: str
    grant: str = "gate_that_is_none"


async def lived_in(house: House, tenant: str) -> Ids:
    """A session of a tenant with all that can be named by an id."""
    access = house.access(somebody(tenant, "owner"))
    file = await access.attach(f"bytes of {tenant}".encode(), "text/plain", "notes.txt")
    sent = await said(access, "pay now", files=[file.file])
    view = await gate_in(access, sent.session)
    return Ids(sent.session, sent.turn, sent.message, view.gate.id, view.gate.hash, file.part.blob)


def arguments(method: Callable[..., Any], ids: Ids, there: Ids, file: Path) -> dict[str, Any]:
    """Arguments of a method for these ids; whatever is not the session is of one that is `there`."""
    given: dict[str, Any] = {}
    for name in list(inspect.signature(method).parameters)[1:]:
        if name == "claim":
            given[name] = api.Claim(hash=there.hash, claim="c" * 16)
        elif name == "answered":
            given[name] = api.Answered(hash=there.hash, allow="once")
        elif name in BODIES:
            given[name] = BODIES[name]
        elif name == "file":
            given[name] = file
        elif name == "session":
            given[name] = ids.session
        elif name in Ids.__struct_fields__:
            given[name] = getattr(there, name)
    return given


def of_sessions() -> list[str]:
    return [name for name in PUBLIC if "session" in inspect.signature(getattr(Access, name)).parameters]


def test_every_method_takes_a_role() -> None:
    assert len(PUBLIC) > 35
    open_ones = [
        name
        for name, member in inspect.getmembers(Access, inspect.isfunction)
        if not name.startswith("_") and "needs" not in member.__dict__ and not hasattr(Inside, name)
    ]
    assert open_ones == ["open_gates"], "a helper that begins no request, and reads its own tenant only"


@pytest.mark.parametrize("name", PUBLIC)
async def test_a_role_that_is_not_enough_is_refused_before_anything_is_looked_at(name: str) -> None:
    method = getattr(Access, name)
    for role in ROLES[: ROLES.index(role_of(method))]:
        access = Access(None, somebody(role=role))  # pyright: ignore[reportArgumentType] - it must not be asked
        with pytest.raises(Forbidden, match=role_of(method)):
            await getattr(access, name)(*[None] * (len(inspect.signature(method).parameters) - 1))


def test_the_roles_are_those_that_were_agreed() -> None:
    table: dict[Role, str] = {
        "viewer": (
            "agents blob follow gates granted grants inbox log me messages queue search servers session sessions tools tree "
            "turn usage"
        ),
        "member": "answer attach begin begin_named bring_in cancel claim delete edit explain export rerun rules select send",
        "approver": "revert revoke_anywhere revoke_grant",
        "owner": "audit erase keys make_key put_user revoke_key users",
        "operator": "log_in_server put_tenant retry_server setup tenants trust_server",
    }
    assert {role: sorted(n for n in PUBLIC if role_of(getattr(Access, n)) == role) for role in ROLES} == {
        role: names.split() for role, names in table.items()
    }


async def told(access: Access, name: str, given: dict[str, Any]) -> tuple[type[BaseException], str]:
    """What a method answers to somebody who asks for what is not theirs."""
    with pytest.raises(EverturnError) as raised:
        await getattr(access, name)(**given)
    assert raised.value.__cause__ is None
    return type(raised.value), str(raised.value)


async def test_a_foreign_session_is_an_absent_one_and_an_erased_one(tmp_path: Path) -> None:
    async with a_house() as house:
        theirs, gone = await lived_in(house, "bob"), await lived_in(house, "ada")
        owner = house.access(somebody("ada", "owner"))
        await owner.cancel(gone.session, gone.turn, api.Cancelled())
        await over(owner, api.Sent(session=gone.session, turn=gone.turn, message="", is_new=True))
        await owner.erase(gone.session)
        assert len(of_sessions()) > 15
        for name in of_sessions():
            answers = {
                await told(owner, name, arguments(getattr(Access, name), ids, theirs, tmp_path / "out.zip"))
                for ids in (theirs, gone, msgspec.structs.replace(theirs, session="session_never"))
            }
            assert answers == {(UnknownSession, "there is no such session")}, name
        assert not os.listdir(tmp_path)
        # And nothing came of it where it was meant to be.
        bob = house.access(somebody("bob", "owner"))
        view = await bob.turn(theirs.session, theirs.turn)
        assert [gate.id for gate in view.gates] == [theirs.gate]
        assert len(view.messages) == 2


@pytest.mark.parametrize("session", ["", " ", "\0", "a\nb", "'; DROP TABLE sessions;--", "../x", "x" * 5000, "\ud800"])
async def test_what_can_be_no_id_is_an_absent_one(session: str) -> None:
    async with a_house() as house:
        access = house.access(somebody())
        assert await told(access, "session", {"session": session}) == (UnknownSession, "there is no such session")


async def test_an_id_of_another_session_is_an_absent_one(tmp_path: Path) -> None:
    """Of the same tenant or not: a child is looked for beneath its parent only."""
    async with a_house() as house:
        theirs, ours, other = [await lived_in(house, tenant) for tenant in ("bob", "ada", "ada")]
        never = Ids("", "turn_never", "msg_never", "gate_never", HEX, HEX)
        owner = house.access(somebody("ada", "owner"))
        for name in of_sessions():
            parameters = set(inspect.signature(getattr(Access, name)).parameters)
            if not parameters & {"turn", "message", "gate", "blob", "grant"}:
                continue
            answers = {
                await told(owner, name, arguments(getattr(Access, name), ours, there, tmp_path))
                for there in (theirs, never, *([other] if name != "blob" else []))
            }
            assert len(answers) == 1, (name, answers)
        assert (await owner.turn(ours.session, ours.turn)).turn == ours.turn
        assert await owner.blob(ours.session, ours.blob) == b"bytes of ada"


async def test_ids_inside_of_bodies_are_held_against_the_session_too() -> None:
    async with a_house() as house:
        theirs, ours = await lived_in(house, "bob"), await lived_in(house, "ada")
        owner = house.access(somebody("ada", "owner"))
        answers: set[tuple[type[BaseException], str]] = set()
        for message in (theirs.message, "msg_never", "\0", "x" * 2000):
            answers.add(
                await told(owner, "send", {"session": ours.session, "said": api.NewMessage(text="x", after=message)})
            )
            answers.add(
                await told(owner, "select", {"session": ours.session, "selected": api.Selected(message=message)})
            )
            answers.add(await told(owner, "messages", {"session": ours.session, "leaf": message}))
        assert answers == {(UnknownMessage, "there is no such message in this session")}
        assert await told(owner, "turn", {"session": ours.session, "turn": "\0"}) == (
            UnknownTurn,
            "there is no such turn in this session",
        )


async def test_lists_hold_only_what_is_of_the_tenant() -> None:
    async with a_house() as house:
        everything = {tenant: await lived_in(house, tenant) for tenant in ("ada", "bob")}
        for tenant, other in (("ada", "bob"), ("bob", "ada")):
            access = house.access(somebody(tenant, "owner"))
            shown: list[Any] = [
                await access.sessions(),
                await access.gates(),
                await access.inbox(),
                await access.search("pay"),
                await access.usage(),
                await access.users(),
                await access.keys(),
                await access.audit(),
                await access.grants(everything[tenant].session),
            ]
            text = msgspec.json.encode(shown).decode()
            assert everything[tenant].session in text
            for value in msgspec.structs.astuple(everything[other])[:5]:
                assert value not in text
            assert f"-{other}" not in text


async def test_a_grant_everywhere_holds_in_its_own_tenant_only() -> None:
    async with a_house() as house:
        theirs, ours = await lived_in(house, "bob"), await lived_in(house, "ada")
        owner, bob = house.access(somebody("ada", "owner")), house.access(somebody("bob", "owner"))
        await owner.answer(ours.session, ours.gate, api.Answered(hash=ours.hash, allow="always", everywhere=True))
        await over(owner, api.Sent(session=ours.session, turn=ours.turn, message="", is_new=True))
        granted = (await owner.grants(ours.session)).grants
        assert [grant.by for grant in granted] == ["owner-ada"]
        assert not (await bob.grants(theirs.session)).grants
        for session in (ours.session, theirs.session):
            error, _ = await told(bob, "revoke_grant", {"session": session, "grant": granted[0].id})
            assert error is (UnknownSession if session == ours.session else UnknownGrant)
        assert (await owner.grants(ours.session)).grants == granted
        again = await said(house.access(somebody("ada")), "pay again")
        assert (await over(owner, again)).phase.value == "completed"


async def test_files_that_were_never_recorded_here_are_not_reverted() -> None:
    async with a_house() as house:
        ours = await lived_in(house, "ada")
        owner = house.access(somebody("ada", "owner"))
        for root, tree in (("", HEX), ("/etc", HEX), ("", "x")):
            given = {"session": ours.session, "reverted": api.Reverted(root=root, tree=tree)}
            assert await told(owner, "revert", given) == (UnknownFile, "there is no such file")


async def test_the_same_words_come_from_wherever_it_is_found_out() -> None:
    class Loud:
        principal = somebody()

        @needs("viewer")
        async def find(self) -> None:
            raise UnknownSession("session 's' is of tenant bob")

    with pytest.raises(UnknownSession) as raised:
        await Loud().find()
    assert str(raised.value) == "there is no such session"
    assert "bob" not in repr(raised.value)
