"""Who looks at a conversation or an approval: shown to those who may see it, on every node, for ten seconds."""

from __future__ import annotations

from collections.abc import Sequence

from everturn import api
from everturn.access.access import Access
from everturn.access.context.presence_board import PresenceBoard
from everturn.bus.memory import MemoryBus
from everturn.core.accounts import User
from everturn.core.deltas import Viewing
from everturn.core.presence import LOOK_SECONDS, PresenceTable
from everturn.testing import FakeClock
from tests.helpers.tenants import a_house, access_of, gate_in, said, somebody
from tests.helpers.waiting import wait_until


async def look(access: Access, session: str, gate: str = "", has_left: bool = False) -> Sequence[tuple[str, str, bool]]:
    looking = api.Looking(tab="t", at=[api.LookAt(session=session, gate=gate)], has_left=has_left)
    return [(one.name, one.gate, one.is_administrator) for one in (await access.presence.look(looking)).viewers]


async def test_those_who_may_see_a_conversation_see_who_else_looks_and_it_ends() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        await house.accounts.put_user(User("ada", "member-ada", name="Ada", role="member", created=1.0))
        member, viewer = access_of(house, "member"), access_of(house, "viewer")
        session = (await said(member, "hello")).session
        assert await look(member, session) == []
        assert await look(viewer, session) == [("Ada", "", False)]
        assert await look(member, session) == [("viewer-ada", "", False)]
        await look(viewer, session, has_left=True)
        assert await look(member, session) == []
        await look(viewer, session)
        clock.advance(LOOK_SECONDS + 1)
        assert await look(member, session) == []
        await house.presence.aclose()


async def test_nobody_is_told_of_a_conversation_that_is_private_to_others() -> None:
    async with a_house() as house:
        member, stranger, elsewhere = (
            access_of(house, "member"),
            access_of(house, "viewer"),
            access_of(house, "member", "bob"),
        )
        session = (await said(member, "hello", private=True)).session
        await look(member, session)
        for other in (stranger, elsewhere):
            assert await look(other, session) == []
        assert await look(member, session) == []
        assert await look(member, "nobody") == []
        await house.presence.aclose()


async def test_an_approver_outside_sees_other_approvers_at_the_gate_and_not_who_is_in_the_conversation() -> None:
    async with a_house() as house:
        member, approver = access_of(house, "member"), access_of(house, "approver")
        second = Access(house, somebody("ada", "approver", "second"))
        session = (await said(member, "pay now", private=True)).session
        gate = (await gate_in(member, session)).gate.id
        await look(member, session, gate)
        assert await look(approver, session, gate) == []
        assert await look(second, session, gate) == [("approver-ada", gate, False)]
        assert await look(second, session) == []  # the conversation itself is not theirs to look at
        assert await look(second, session, "another") == []
        assert {name for name, _, _ in await look(member, session)} == {"approver-ada", "second"}
        await house.presence.aclose()


async def test_an_administrator_who_opened_it_is_shown_as_one() -> None:
    async with a_house() as house:
        member, owner = access_of(house, "member"), access_of(house, "owner")
        session = (await said(member, "hello", private=True)).session
        assert await look(owner, session) == []
        assert await look(member, session) == []
        await owner.sharing.open_as_administrator(session, api.OpenAsAdministrator(reason="an incident"))
        assert await look(owner, session) == [("member-ada", "", False)]
        assert await look(member, session) == [("owner-ada", "", True)]
        await house.presence.aclose()


async def test_nodes_tell_each_other_and_nothing_is_written() -> None:
    bus, clock = MemoryBus(), FakeClock()
    here, there = PresenceBoard(bus, clock), PresenceBoard(bus, clock)
    ada = Viewing("ada", "s", "ada", "Ada", "t1")
    there.report("ada", [Viewing("ada", "s", "bob", "Bob", "t2")])
    here.report("ada", [ada])

    async def both() -> bool:
        return (
            {one.name for one in there.viewers("ada", "s")}
            == {"Ada", "Bob"}
            == {one.name for one in here.viewers("ada", "s")}
        )

    await wait_until(both)
    here.report("ada", [Viewing("ada", "s", "ada", "Ada", "t1", has_left=True)])
    await wait_until(lambda: [one.name for one in there.viewers("ada", "s")] == ["Bob"])
    assert there.viewers("other", "s") == []
    for board in (here, there):
        await board.aclose()


def test_a_table_forgets_what_is_over_and_is_bounded() -> None:
    table = PresenceTable()
    for number in range(100):
        table.apply(Viewing("t", f"s{number}", "u", "U", "tab"), 0.0)
    assert len(table.at("t", "s1", LOOK_SECONDS - 1)) == 1
    assert table.at("t", "s1", LOOK_SECONDS) == []
    table.expire(LOOK_SECONDS)
    assert table.at("t", "s1", 0.0) == []
