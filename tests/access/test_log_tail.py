"""The last turns of a log: whole turns, in pages that add up to the log, and what a client makes of them."""

from __future__ import annotations

from pathlib import Path

import msgspec
from benchmarks.long_logs import session_events, turn_events
from msgspec.structs import replace

from everturn import api
from everturn.access.conversations.log_tail import TAIL_BYTES, read_tail
from everturn.core.events import CallFinished, Event, LateResultReceived, LeafSelected, MessageDeleted, TurnStarted
from everturn.core.parts import Output
from everturn.core.store_ports import Store
from everturn.core.tree import MessageTree
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore
from everturn.terminal.tui.state import SessionState
from everturn.testing.contracts.samples import import_messages, messages_imported
from tests.helpers.tenants import a_house, access_of, over, start_session


async def tail_of(store: Store, turns: int, before: int = 0) -> api.LogTail:
    info = await store.info("s")
    tail = await read_tail(store, "s", info.leaf, turns, before)
    items = [api.LogItem(seq=entry.seq, event=entry.event) for entry in tail.entries]  # pyright: ignore[reportArgumentType]
    return api.LogTail(entries=items, start=tail.start, seq=tail.seq, leaf=info.leaf, title=info.title)


async def restored(events: list[Event]) -> MemoryStore:
    store = MemoryStore()
    await store.restore("s", "local", events)
    return store


def interleaved() -> list[Event]:
    """Eight turns; two of them run at the same time on two branches, one result is late, and one branch is deleted."""
    first, second = turn_events(4), turn_events(5)
    started = second[0]
    assert isinstance(started, TurnStarted)
    assert started.input is not None
    second[0] = replace(started, parent="t3.out", input=replace(started.input, parent="t3.out"))
    mixed = [event for pair in zip(first, second, strict=True) for event in pair]
    return [
        *messages_imported_events(),
        *turn_events(0),
        *with_running_tool(turn_events(1)),
        *turn_events(2),
        *turn_events(3),
        *mixed,
        *turn_events(6),
        LateResultReceived(turn="t1", at=2.0, call="t1.c1.0", output=Output("late")),
        LeafSelected(at=2.0, message="t6.out"),
        *turn_events(7),
        MessageDeleted(at=3.0, message="t7.in"),
    ]


def with_running_tool(events: list[Event]) -> list[Event]:
    """The events of a turn whose first call was cancelled while its tool still runs."""
    return [
        replace(event, state="cancelled", still_running=True)
        if isinstance(event, CallFinished) and event.call.endswith(".0")
        else event
        for event in events
    ]


def messages_imported_events() -> list[Event]:
    return [messages_imported(import_messages())]


async def test_pages_have_whole_turns_and_add_up_to_the_log() -> None:
    events = interleaved()
    for store_turns in (1, 2, 3, 50):
        store = await restored(events)
        found: dict[int, Event] = {}
        start = 0
        while start != 1:
            page = await tail_of(store, store_turns, start)
            turns = {item.event.turn for item in page.entries if isinstance(item.event, TurnStarted)}
            assert {getattr(item.event, "turn", "") for item in page.entries} <= turns | {""}
            assert page.start < start or not start
            start = page.start
            found |= {item.seq: item.event for item in page.entries}
        assert [found[seq] for seq in sorted(found)] == events


async def test_a_client_that_loads_the_end_and_then_the_rest_has_what_the_whole_log_gives() -> None:
    events = interleaved()
    whole = SessionState()
    for seq, event in enumerate(events, 1):
        whole.apply(api.StreamItem(seq=seq, event=event))  # pyright: ignore[reportArgumentType]
    for seen in range(2, len(events)):  # what is loaded when the client comes; the rest is streamed
        store = await restored(events[:seen])
        state = SessionState()
        state.load(await tail_of(store, 1))
        await store.append("s", seen, events[seen:])
        for seq in range(seen + 1, len(events) + 1):
            state.apply(api.StreamItem(seq=seq, event=events[seq - 1]))  # pyright: ignore[reportArgumentType]
        if not state.is_leaf_missing:
            assert [message.id for message in state.branch()][-1:] == [message.id for message in whole.branch()][-1:]
        while state.start > 1:
            state.load_earlier(await tail_of(store, 2, state.start))
        assert state.tree.messages == whole.tree.messages
        assert {key: sorted(ids) for key, ids in state.tree.children.items()} == {
            key: sorted(ids) for key, ids in whole.tree.children.items()
        }
        assert state.tree.deleted == whole.tree.deleted
        assert state.turns == whole.turns
        assert state.ends == whole.ends
        assert state.usage == whole.usage


async def test_the_first_page_has_the_end_of_the_selected_branch_however_old_it_is() -> None:
    events = [*messages_imported_events(), *session_events(9)]
    for leaf in ("t0.out", "i-1", "t8.out"):
        store = await restored([*events, LeafSelected(at=1.0, message=leaf)])
        page = await tail_of(store, 2)
        tree = MessageTree()
        for item in page.entries:
            tree.apply(item.event)
        assert page.leaf == leaf
        assert leaf in tree.messages
        assert page.title == (await store.info("s")).title


async def test_the_first_page_of_a_long_session_is_small(tmp_path: Path) -> None:
    store = SqlStore.sqlite(tmp_path / "a.db")
    await store.restore("s", "local", session_events(400))
    page = await tail_of(store, 20)
    await store.aclose()
    size = len(msgspec.json.encode(page))
    assert size < 200_000
    assert len([item for item in page.entries if isinstance(item.event, TurnStarted)]) >= 10
    assert TAIL_BYTES < 200_000


async def test_who_may_read_a_session_gets_its_tail_with_what_it_cost() -> None:
    async with a_house() as house:
        access = access_of(house, "member")
        sent = await start_session(access, "hello")
        await over(access, sent)
        page = await access_of(house, "viewer").log.tail(sent.session)
        whole = await access.log.page(sent.session)
        assert page.entries == whole.entries
        assert (page.start, page.seq) == (1, whole.entries[-1].seq)
        spent = await house.app.store.spent(session=sent.session)
        assert page.cost == spent.usage.cost
