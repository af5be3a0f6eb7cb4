"""Pagination contract of a store: pages of open gates, branches and sessions, and counts without reading them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from everturn.core.commands import Cancel
from everturn.core.events import CommandDropped, Event, MessageDeleted, StepFinished, StepStarted
from everturn.core.parts import CacheCollapse, Usage
from everturn.core.session_claims import is_quarantined, retry_pause
from everturn.core.store_ports import Store, StoreCounts
from everturn.errors import SessionQuarantined, UnknownMessage, UnknownSession
from everturn.testing.contracts.directory import send_to_agent, subagent_session_options
from everturn.testing.contracts.samples import (
    NOON,
    gate_opened_events,
    gate_resolved_with_grant,
    turn_ended_events,
    turn_started_events,
)
from everturn.testing.contracts.store_setup import StoreSetup

PageCursor = tuple[float, str, str]


def events_at(events: Sequence[Event], time: float) -> list[Event]:
    """The same events at another time."""
    return [replace(event, at=time) for event in events]


async def add_waiting_session(store: Store, session: str, turn: str, time: float, tenant: str = "local") -> None:
    """Make a session with a turn that waits for an answer since then."""
    await store.admit(send_to_agent(session, turn, tenant))
    await store.append(
        session, 0, [*turn_started_events(turn, command=f"{turn}.k"), *events_at(gate_opened_events(turn), time)]
    )


async def claim_until_quarantined(store: Store, session: str) -> None:
    """Claim a session again and again, as crashing drivers do, until it is quarantined."""
    now = NOON
    for tries in range(1, 20):
        await store.claim(session, now)
        now += 0.0 if is_quarantined(tries) else retry_pause(tries)


class PaginationContract(StoreSetup):
    """Pages leave nothing out and repeat nothing, and their cost depends on their size only."""

    # Gates -------------------------------------------------------------------------------------------------------

    async def test_pages_of_gates_go_from_the_oldest_to_the_newest_and_leave_none_out(self) -> None:
        store = await self.make()
        together = ["s1", "S2", "s10", "é", "s-", "s_"]
        for name in together:
            await add_waiting_session(store, name, f"t{name}", NOON)
        await add_waiting_session(store, "a", "new", NOON + 1)
        await add_waiting_session(store, "z", "old", NOON - 1)
        await add_waiting_session(store, "foreign", "t", NOON, "other")
        whole = ["z", *sorted(together), "a"]

        for size in (1, 2, 3, 7, 8, 9, None):
            found: list[str] = []
            after: PageCursor | None = None
            while page := await store.gate_page(tenant="local", limit=size, after=after):
                assert size is None or len(page) <= size
                found += [session for session, _ in page]
                session, row = page[-1]
                after = (row.opened, session, row.gate.id)
            assert found == whole, size
        assert [session for session, _ in await store.gate_page(limit=3)] == ["z", *sorted([*together, "foreign"])[:2]]
        assert len(await store.gate_page()) == 9
        assert await store.gate_page(tenant="nobody") == []

    async def test_a_page_of_gates_has_what_the_list_of_them_has(self) -> None:
        store = await self.make()
        await add_waiting_session(store, "a", "t1", NOON)
        await add_waiting_session(store, "b", "t2", NOON + 1)
        await add_waiting_session(store, "c", "t3", NOON + 2)
        await store.append("b", 6, [gate_resolved_with_grant("b", "t2", command="")])  # is answered, and waits no more

        assert [row for _, row in await store.gate_page()] == await store.gates()
        assert [session for session, _ in await store.gate_page()] == ["a", "c"]

    async def test_the_gates_of_a_session_are_those_of_its_sub_turns_too(self) -> None:
        store = await self.make()
        await add_waiting_session(store, "s", "t", NOON + 2)
        await add_waiting_session(store, "other", "t2", NOON)
        for n, (name, by) in enumerate((("s-a", "s"), ("s-a-b", "s-a"))):
            options = subagent_session_options("s", by)
            await store.admit(send_to_agent(name, f"u{n}", options=options))
            await store.append(
                name,
                0,
                [*turn_started_events(f"u{n}", command=f"u{n}.k", options=options), *gate_opened_events(f"u{n}")],
            )

        assert [session for session, _ in await store.gate_page("s")] == ["s-a", "s-a-b", "s"]
        assert [session for session, _ in await store.gate_page("s-a")] == ["s-a", "s-a-b"]
        assert [session for session, _ in await store.gate_page("s", limit=1)] == ["s-a"]
        assert await store.gate_page("s", tenant="other") == []
        assert await store.sessions_with_open_gates(["s", "s-a-b", "other", "nobody"]) == {"s", "s-a-b", "other"}
        with pytest.raises(UnknownSession):
            await store.gate_page("nobody")

    async def test_sessions_with_events_are_found_with_their_sub_agent_runs(self) -> None:
        store = await self.make()
        for name in ("s", "plain"):
            await add_waiting_session(store, name, f"t-{name}", NOON)
        options = subagent_session_options("s", "s")
        await store.admit(send_to_agent("s-a", "u0", options=options))
        await store.append("s-a", 0, turn_started_events("u0", command="u0.k", options=options))
        missed = CacheCollapse("unexpected", 5_000)
        finished = StepFinished(turn="u0", step=1, parts=(), finish="stop", usage=Usage(6_000, 1), cache=missed)
        await store.append("s-a", await store.head("s-a"), [StepStarted(turn="u0", step=1), finished])

        assert await store.sessions_with_events(["s", "plain", "nobody"], "cache") == {"s-a"}
        assert await store.sessions_with_events(["plain", "s-a"], "gate") == {"plain"}
        assert await store.sessions_with_events([], "cache") == set()
        assert [entry.event for entry in await store.indexed_events("s-a", "cache", "unexpected")] == [finished]

    async def test_sessions_in_which_nothing_is_asked_do_not_wait(self) -> None:
        store = await self.make()
        await store.admit(send_to_agent("quiet"))
        await add_waiting_session(store, "answered", "t2", NOON)
        await store.append("answered", 6, [gate_resolved_with_grant("answered", "t2", command="")])

        assert (
            await store.sessions_with_open_gates(["quiet", "answered"])
            == await store.sessions_with_open_gates([])
            == set()
        )

    # Branches and sessions ---------------------------------------------------------------------------------------

    async def test_a_branch_is_read_from_its_end_page_by_page(self) -> None:
        store = await self.make()
        parent = None
        for n in range(4):
            await store.admit(send_to_agent("s", f"t{n}"))
            events = [
                *turn_started_events(f"t{n}", parent, command=f"t{n}.k"),
                *(turn_ended_events(f"t{n}") if n < 3 else []),
            ]
            await store.append("s", await store.head("s"), events)
            parent = f"t{n}.out"
        whole = await store.path("s", parent)
        assert len(whole) == 8  # the last of them is still being written

        for size in (1, 2, 3, 5, 8, 9):
            found, leaf = whole[:0], parent
            while leaf is not None:
                page = await store.path("s", leaf, size)
                assert 0 < len(page) <= size
                found, leaf = page + found, page[0].parent
            assert found == whole, size
        assert await store.path("s", None, 2) == []
        await store.append("s", await store.head("s"), [MessageDeleted(message="t3.in")])
        with pytest.raises(UnknownMessage):
            await store.path("s", parent, 2)

    async def test_sessions_to_drive_are_paged_from_the_oldest(self) -> None:
        store = await self.make()
        for n in range(5):
            await store.admit(send_to_agent(f"s{n}", f"t{n}", at=NOON + n // 2))
        await store.append("s2", 0, [CommandDropped(at=NOON, command="t2.k", reason="")])

        for awake, whole in ((False, ["s0", "s1", "s2", "s3", "s4"]), (True, ["s0", "s1", "s3", "s4"])):
            for size in (1, 2, 4, None):
                found: list[str] = []
                after: tuple[float, str] | None = None
                while page := await store.sessions(awake, limit=size, after=after):
                    assert size is None or len(page) <= size
                    found += [info.id for info in page]
                    after = (page[-1].created, page[-1].id)
                assert found == whole

    async def test_many_sessions_are_known_at_once(self) -> None:
        store = await self.make()
        for name in ("a", "é~b", 'c"]'):
            await store.admit(send_to_agent(name, f"t{name}"))

        known = await store.infos(["a", "é~b", "nobody", "a", 'c"]', "x\0y"])
        assert known == {name: await store.info(name) for name in ("a", "é~b", 'c"]')}
        assert await store.infos([]) == {}

    # Counting ----------------------------------------------------------------------------------------------------

    async def test_open_gates_are_counted_over_all_tenants(self) -> None:
        store = await self.make()
        assert await store.count_all() == StoreCounts()
        await add_waiting_session(store, "a", "t1", NOON)
        await add_waiting_session(store, "b", "t2", NOON, "other")
        await store.admit(send_to_agent("c", "t3"))
        tally = await store.count_all()
        assert (tally.gates, tally.live) == (2, 1)
        await store.append("b", 6, [gate_resolved_with_grant("b", "t2", command="")])
        assert (await store.count_all()).gates == 1

    async def test_a_session_that_is_left_alone_is_counted_until_somebody_asks_something_of_it(self) -> None:
        store = await self.make()
        await store.admit(send_to_agent("s"))
        await store.admit(send_to_agent("other", "t2"))
        with pytest.raises(SessionQuarantined):
            await claim_until_quarantined(store, "s")
        assert (await store.count_all()).quarantined == 1
        assert [info.id for info in await store.sessions(quarantined=True)] == ["s"]
        await store.admit(Cancel(key="c", session="s", turn="t", at=NOON))
        assert (await store.count_all()).quarantined == 0
        assert await store.sessions(quarantined=True) == []

    async def test_how_long_somebody_waits_for_a_driver_is_known(self) -> None:
        store = await self.make()
        await store.admit(send_to_agent("a", "t1", at=NOON + 5))
        assert (await store.count_all()).oldest == NOON + 5
        await store.admit(send_to_agent("b", "t2", at=NOON + 1))
        assert (await store.count_all()).oldest == NOON + 1
        await store.append("b", 0, turn_started_events("t2", command="t2.k"))
        assert (await store.count_all()).oldest == NOON + 5
        await store.admit(
            send_to_agent("b", "t3", at=NOON + 2)
        )  # which waits for the turn before it, and not for a driver
        assert (await store.count_all()).oldest == NOON + 5
        await store.append("a", 0, turn_started_events("t1", command="t1.k"))
        assert (await store.count_all()).oldest == 0.0
