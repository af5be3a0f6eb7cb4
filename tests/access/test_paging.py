"""What is long comes in pages: questions of all sessions, and a branch from its end."""

from __future__ import annotations

import msgspec
import pytest

from everturn.access.access import GATE_PAGE_LIMIT, Access, read_inbox_after
from everturn.errors import ConfigError, UnknownMessage
from everturn.stores.memory import MemoryStore
from everturn.testing.contracts.directory import send_to_agent, subagent_session_options
from everturn.testing.contracts.pagination import add_waiting_session
from everturn.testing.contracts.samples import NOON, gate_opened_events, turn_ended_events, turn_started_events
from tests.helpers.tenants import a_house, share_with_all, somebody


async def test_questions_come_page_by_page_and_none_is_left_out_or_told_twice() -> None:
    store = MemoryStore()
    for n in range(7):
        await add_waiting_session(store, f"s~{n}", f"t{n}", NOON + n // 3, "ada")
    await add_waiting_session(store, "foreign", "tf", NOON, "bob")
    async with a_house(store) as house:
        access = Access(house, somebody("ada", "owner"))
        whole = [view.session for view in (await access.gates.page()).gates]
        assert whole == [f"s~{n}" for n in range(7)]
        for size in (1, 2, 3, 7, 8):
            found, after = list[str](), ""
            while True:
                page = await access.gates.page(limit=size, after=after)
                assert len(page.gates) <= size
                found += [view.session for view in page.gates]
                after = page.next
                if not after:
                    break
            assert found == whole, size
        for wrong in ("x", "1~", "nan~g~s", "1e300~g~s", "1~g\x00~s"):
            with pytest.raises(ConfigError, match="after"):
                await access.gates.page(limit=1, after=wrong)


async def test_a_question_of_a_sub_turn_has_the_title_of_the_session_that_a_person_began() -> None:
    store = MemoryStore()
    await add_waiting_session(store, "s", "t", NOON, "ada")
    for name, by in (("s-a", "s"), ("s-a-b", "s-a")):
        options = subagent_session_options("s", by)
        await store.admit(send_to_agent(name, f"{name}.t", "ada", options=options))
        events = [
            *turn_started_events(f"{name}.t", command=f"{name}.t.k", options=options),
            *gate_opened_events(f"{name}.t"),
        ]
        await store.append(name, 0, events)
    async with a_house(store) as house:
        await share_with_all(store, "s")
        access = Access(house, somebody("ada", "owner"))
        assert [view.session for view in (await access.gates.page("s")).gates] == ["s", "s-a", "s-a-b"]
        assert [view.session for view in (await access.gates.page("s-a")).gates] == ["s-a", "s-a-b"]
        page = await access.sessions.list()
        assert page.waiting == ["s"] == [session.id for session in page.sessions]


async def test_the_inbox_begins_with_a_page_and_goes_on_with_the_rest_session_by_session() -> None:
    store = MemoryStore()
    many = GATE_PAGE_LIMIT + 150
    for n in range(many):
        await add_waiting_session(store, f"s{n:04}", f"t{n}", NOON + n, "ada")
    async with a_house(store) as house:
        access = Access(house, somebody("ada", "owner"))
        first = await access.inbox()
        assert len(first.gates) == GATE_PAGE_LIMIT
        rest = [item async for item in read_inbox_after(access, first)]
    sessions = {gate.session for gate in first.gates} | {item.session.id for item in rest if item.session is not None}
    assert sessions == {f"s{n:04}" for n in range(many)}
    assert all(item.waits and item.session and item.waits[0].session == item.session.id for item in rest)
    assert len(msgspec.json.encode(first)) < 400_000


async def test_a_branch_comes_from_its_end_page_by_page() -> None:
    store = MemoryStore()
    parent = None
    for n in range(5):
        await store.admit(send_to_agent("s", f"t{n}", "ada"))
        await store.append(
            "s",
            await store.head("s"),
            [*turn_started_events(f"t{n}", parent, command=f"t{n}.k"), *turn_ended_events(f"t{n}")],
        )
        parent = f"t{n}.out"
    async with a_house(store) as house:
        await share_with_all(store, "s")
        access = Access(house, somebody("ada", "member"))
        whole = await access.sessions.messages("s")
        assert (len(whole.messages), whole.next) == (10, "")
        for size in (1, 3, 9, 10, 11):
            page = await access.sessions.messages("s", limit=size)
            found = page.messages
            while page.next:
                page = await access.sessions.messages("s", limit=size, before=page.next)
                assert len(page.messages) <= size
                found = [*page.messages, *found]
            assert found == whole.messages, size
        with pytest.raises(ConfigError, match="before"):
            await access.sessions.messages("s", leaf="t1.out", before="t3.in", limit=2)
        with pytest.raises(UnknownMessage):
            await access.sessions.messages("s", before="nobody", limit=2)
