"""Who looks at a conversation or an approval: shown to those who may see it, on every node, for ten seconds."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest

from everturn import api
from everturn.access.access import Access
from everturn.access.context import presence_board
from everturn.access.context.presence_board import PresenceBoard
from everturn.bus.memory import MemoryBus
from everturn.bus.postgres import PostgresBus
from everturn.core.events import TurnCompleted
from everturn.core.ports import ANNOUNCEMENT_LIMIT, Bus
from everturn.core.presence import (
    HEARD_SECONDS,
    LOOK_SECONDS,
    Announced,
    PresenceTable,
    Viewing,
    presence_topic,
)
from everturn.core.tenants.accounts import User
from everturn.testing import FakeClock, MemoryStore
from tests.helpers.stores import POSTGRES, URL
from tests.helpers.tenants import a_house, access_of, gate_in, somebody, start_session
from tests.helpers.waiting import wait_until

ROOT = Path(__file__).parents[2]


async def look(access: Access, session: str, gate: str = "", has_left: bool = False) -> Sequence[tuple[str, str, bool]]:
    looking = api.Looking(tab="t", at=[api.LookAt(session=session, gate=gate)], has_left=has_left)
    return [
        (viewer.name, viewer.gate, viewer.is_administrator) for viewer in (await access.presence.look(looking)).viewers
    ]


async def test_those_who_may_see_a_conversation_see_who_else_looks_and_it_ends() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        await house.accounts.put_user(User("ada", "member-ada", name="Ada", role="member", created=1.0))
        member, viewer = access_of(house, "member"), access_of(house, "viewer")
        session = (await start_session(member, "hello")).session
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
        session = (await start_session(member, "hello", private=True)).session
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
        session = (await start_session(member, "pay now", private=True)).session
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
        session = (await start_session(member, "hello", private=True)).session
        assert await look(owner, session) == []
        assert await look(member, session) == []
        await owner.sharing.open_as_administrator(session, api.OpenAsAdministrator(reason="an incident"))
        assert await look(owner, session) == [("member-ada", "", False)]
        assert await look(member, session) == [("owner-ada", "", True)]
        await house.presence.aclose()


class CountingBus(MemoryBus):
    """A bus that counts announcements."""

    def __init__(self) -> None:
        super().__init__()
        self.announced = 0

    def announce(self, topic: str, message: bytes) -> None:
        self.announced += 1
        super().announce(topic, message)


def viewing(user: str, session: str = "s", has_left: bool = False) -> Viewing:
    return Viewing("ada", session, user, user.title(), f"tab of {user}", has_left=has_left)


def names(board: PresenceBoard, session: str = "s") -> list[str]:
    return [viewer.name for viewer in board.viewers("ada", session)]


async def turn_over() -> None:
    """Let what is announced at once arrive."""
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presence_board, "FLUSH_SECONDS", 0.0)


@pytest.fixture
async def buses(request: pytest.FixtureRequest) -> AsyncIterator[list[Bus]]:
    """The buses of two processes."""
    if request.param == "memory":
        yield [MemoryBus()] * 2
        return
    url = f"{URL}?schema=presence_{uuid.uuid4().hex[:16]}"
    pair = [PostgresBus(url), PostgresBus(url)]
    for bus in pair:
        await _listens(bus)
    yield [*pair]
    for bus in pair:
        await bus.aclose()


async def _listens(bus: PostgresBus) -> None:
    """Wait until it hears announcements: nothing is announced twice within a minute of this clock."""
    bus.hear("anything", lambda _: None)
    await bus.flush()


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("buses", ["memory", POSTGRES], indirect=True)
async def test_two_apps_on_one_bus_tell_each_other_and_nothing_is_written(buses: list[Bus]) -> None:
    store, clock = MemoryStore(), FakeClock()
    async with a_house(store, clock, bus=buses[0]) as first, a_house(store, clock, bus=buses[1]) as second:
        member, viewer = access_of(first, "member"), access_of(second, "viewer")
        session = (await start_session(member, "hello")).session
        await wait_until(lambda: _is_over(store, session))
        before = await store.events(session, 0)
        assert await look(member, session) == []
        await wait_until(lambda: _sees(viewer, session, [("member-ada", "", False)]))
        await wait_until(lambda: _sees(member, session, [("viewer-ada", "", False)]))
        for _ in range(4):  # longer than a look counts: each poll renews it on the other side
            clock.advance(LOOK_SECONDS / 2)
            await wait_until(lambda: _sees(viewer, session, [("member-ada", "", False)]))
            await wait_until(lambda: _sees(member, session, [("viewer-ada", "", False)]))
        await look(viewer, session, has_left=True)
        await wait_until(lambda: _sees(member, session, []))
        assert await store.events(session, 0) == before
        await first.presence.aclose()
        await second.presence.aclose()


async def _sees(access: Access, session: str, expected: list[tuple[str, str, bool]]) -> bool:
    return await look(access, session) == expected


async def _is_over(store: MemoryStore, session: str) -> bool:
    return any(isinstance(entry.event, TurnCompleted) for entry in await store.events(session, 0))


@pytest.mark.live
@pytest.mark.usefixtures("at_once")
async def test_of_a_process_that_is_killed_nobody_is_shown_any_more() -> None:
    url, clock = f"{URL}?schema=presence_{uuid.uuid4().hex[:16]}", FakeClock()
    bus = PostgresBus(url)
    await _listens(bus)
    board = PresenceBoard(bus, clock)
    messages: list[bytes] = []

    def polled() -> list[str]:
        board.report("ada", [viewing("ada")])
        return names(board)

    command = [sys.executable, "-m", "tests.helpers.presence_process", url, "ada", "s", "bob"]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    try:
        await wait_until(lambda: polled() == ["Ada", "Bob"])
        bus.hear(presence_topic("ada"), lambda data: messages.append(data) if b'"bob"' in data else None)
        for _ in range(3):
            clock.advance(LOOK_SECONDS - 1)
            before = len(messages)
            await wait_until(lambda before=before: polled() and len(messages) >= before + 2)
            assert names(board) == ["Ada", "Bob"]
    finally:
        process.kill()
        await process.wait()
    await bus.flush()
    assert polled() == ["Ada", "Bob"]
    clock.advance(LOOK_SECONDS)
    assert polled() == ["Ada"]
    await board.aclose()
    await bus.aclose()


@pytest.mark.usefixtures("at_once")
async def test_a_page_that_is_alone_costs_a_message_a_minute_whichever_process_it_polls() -> None:
    bus, clock = CountingBus(), FakeClock()
    boards = [PresenceBoard(bus, clock) for _ in range(3)]
    for poll in range(36):  # three minutes
        boards[poll % 3].report("ada", [viewing("ada")])
        await turn_over()
        assert names(boards[poll % 3]) == ["Ada"]
        clock.advance(LOOK_SECONDS / 2)
    # The first report of each process begins to listen; so two more may be said once.
    assert bus.announced <= 5
    alone = bus.announced
    for poll in range(6):
        boards[poll % 3].report("ada", [viewing("ada")])
        boards[2 - poll % 3].report("ada", [viewing("bob")])
        await turn_over()
        assert names(boards[(poll + 1) % 3]) == ["Ada", "Bob"]
        clock.advance(LOOK_SECONDS / 2)
    assert bus.announced >= alone + 6  # and here each is told of the other
    for board in boards:
        await board.aclose()


@pytest.mark.usefixtures("at_once")
async def test_who_comes_later_is_answered_and_a_look_is_never_longer_than_its_last_report() -> None:
    bus, clock = MemoryBus(), FakeClock()
    first, second = PresenceBoard(bus, clock), PresenceBoard(bus, clock)
    first.report("ada", [viewing("ada")])
    await turn_over()
    clock.advance(LOOK_SECONDS - 2)
    second.report("ada", [viewing("bob")])
    await turn_over()
    assert names(second) == ["Ada", "Bob"] == names(first)
    clock.advance(2)
    assert names(second) == ["Bob"] == names(first)  # the answer said that two seconds were left
    for board in (first, second):
        await board.aclose()


@pytest.mark.usefixtures("at_once")
async def test_a_message_that_is_lost_is_made_up_for_within_a_minute() -> None:
    bus, clock = MemoryBus(), FakeClock()
    first, second = PresenceBoard(bus, clock), PresenceBoard(MemoryBus(), clock)
    first.report("ada", [viewing("ada")])
    second.report("ada", [viewing("bob")])
    await turn_over()
    second._bus = bus  # it is connected again
    bus.hear(presence_topic("ada"), lambda data: second._hear("ada", data))
    for _ in range(int(HEARD_SECONDS / LOOK_SECONDS * 2) + 1):
        clock.advance(LOOK_SECONDS / 2)
        first.report("ada", [viewing("ada")])
        second.report("ada", [viewing("bob")])
        await turn_over()
    assert names(first) == ["Ada", "Bob"] == names(second)
    for board in (first, second):
        await board.aclose()


@pytest.mark.usefixtures("at_once")
async def test_announcements_that_no_node_sends_change_nothing() -> None:
    bus, clock = MemoryBus(), FakeClock()
    board = PresenceBoard(bus, clock)
    board.report("ada", [viewing("ada")])
    topic = presence_topic("ada")
    for looks in (
        [Announced(Viewing("bob", "s", "eve", "Eve", "t"))],
        [Announced(Viewing("ada", "s", "eve", "E" * 2000, "t"))],
        [Announced(Viewing("ada", "s", "eve", "Eve", "t"), seconds=1e9)],
    ):
        bus.announce(topic, msgspec.json.encode({"node": "another", "looks": looks}))
    bus.announce(topic, b"\xff")
    assert names(board) == ["Ada"]
    bus.announce(topic, msgspec.json.encode({"node": "another", "looks": [Announced(viewing("bob"))]}))
    assert names(board) == ["Ada", "Bob"]
    await board.aclose()


async def test_many_looks_are_announced_in_messages_within_the_limit() -> None:
    bus, clock = MemoryBus(), FakeClock()
    first, second = PresenceBoard(bus, clock), PresenceBoard(bus, clock)
    sizes: list[int] = []
    bus.hear(presence_topic("ada"), lambda data: sizes.append(len(data)))
    second.report("ada", [viewing("bob")])
    first.report("ada", [viewing("ada", f"{number}" * 40) for number in range(1, 100)])
    await first.aclose()  # announces at once
    assert max(sizes) <= ANNOUNCEMENT_LIMIT
    assert all(names(second, f"{number}" * 40) == ["Ada"] for number in range(1, 100))
    await second.aclose()


def test_a_table_forgets_what_is_over() -> None:
    table = PresenceTable()
    for number in range(100):
        table.report(Viewing("t", f"s{number}", "u", "U", "tab"), 0.0)
    assert len(table.at("t", "s1", LOOK_SECONDS - 1)) == 1
    assert table.at("t", "s1", LOOK_SECONDS) == []
    table.expire(LOOK_SECONDS)
    assert len(table) == 100  # the other nodes need not be told again for a while
    table.expire(HEARD_SECONDS)
    assert len(table) == 0
