"""Log contract of a store: what it appends, and the projections that are read from it."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Awaitable
from contextlib import suppress
from types import FrameType

import pytest
from msgspec.structs import replace

from everturn.core.commands import AnyCommand, Cancel, Delete, Select
from everturn.core.events import (
    CommandDropped,
    Event,
    GateResolved,
    LateResultReceived,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    TitleSet,
)
from everturn.core.messages import Message
from everturn.core.parts import Output
from everturn.core.tree import MessageTree
from everturn.errors import EverturnError, Stale, UnknownMessage
from everturn.testing.contracts.samples import (
    ALLOW,
    answer_gate,
    gate_opened_events,
    late_result_command,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.testing.contracts.store_setup import StoreSetup


async def cost_of(work: Awaitable[object]) -> int:
    """How many function calls a piece of work makes in this thread: unlike time, that is the same everywhere."""
    calls, before = 0, sys.getprofile()

    def tally(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(tally)
    try:
        await work
    finally:
        sys.setprofile(before)
    return calls


class LogContract(StoreSetup):
    """The log and its projections: one writer, atomic appends, and the same view for every reader."""

    # The log ---------------------------------------------------------------------------------------------------

    async def test_events_are_numbered_from_one_and_read_as_they_were_written(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        events = [*turn_started_events(text="👋 \x00 \u2028\n"), *gate_opened_events(), *turn_ended_events()]

        assert await store.head("s") == 0
        assert await store.append("s", 0, events[:2]) == 2
        assert await store.append("s", 2, events[2:]) == await store.head("s") == len(events)

        entries = await store.events("s")
        assert [entry.seq for entry in entries] == list(range(1, len(events) + 1))
        assert [entry.event for entry in entries] == events
        for after in range(len(events) + 2):
            assert await store.events("s", after) == entries[after:]
            for most in (1, 2, len(events), len(events) + 1):
                assert await store.event_page("s", after, most) == entries[after : after + most]

    async def test_an_append_from_another_position_is_refused_and_writes_nothing(self) -> None:
        store = await self.make_waiting()
        head, before = await store.head("s"), await store.events("s")

        for after in (0, head - 1, head + 1):
            with pytest.raises(Stale):
                await store.append("s", after, turn_ended_events())

        assert await store.events("s") == before
        assert await store.open_turns("s") == ["t"]

    async def test_of_two_drivers_that_append_at_once_one_is_refused(self) -> None:
        store = await self.make_waiting()
        head = await store.head("s")

        both = await asyncio.gather(
            *(store.append("s", head, [TitleSet(turn="t", title=title)]) for title in "ab"), return_exceptions=True
        )

        assert sorted(isinstance(one, Stale) for one in both) == [False, True]
        assert await store.head("s") == head + 1

    async def test_an_append_that_fails_writes_nothing(self) -> None:
        store = await self.make_waiting()
        head, before = await store.head("s"), await store.tree("s")
        impossible = GateResolved(turn="t", gate="never opened", call="", resolution=ALLOW)
        events: list[Event] = [TitleSet(turn="t", title="new"), impossible, LeafSelected(message=None)]

        with suppress(Exception):
            await store.append("s", head, events)

        assert await store.head("s") in (head, head + len(events))
        if await store.head("s") == head:
            assert (await store.info("s")).title == ""
            assert before == await store.tree("s")

    async def test_events_of_one_turn_keep_their_places_in_the_log(self) -> None:
        store = await self.make()
        await store.admit(send_message())
        first, second = turn_started_events("t"), turn_started_events("t2", command="k2")
        await store.append("s", 0, [first[0], second[0], LeafSelected(message=None), second[1], first[1]])

        assert [entry.seq for entry in await store.events("s", turn="t")] == [1, 5]
        assert [entry.event for entry in await store.events("s", turn="t2")] == second
        assert [entry.seq for entry in await store.events("s", 2, turn="t2")] == [4]
        assert await store.events("s", turn="nobody") == []

    async def test_the_event_that_names_a_command_takes_it_out_of_the_inbox(self) -> None:
        store = await self.make_waiting()
        acted: list[tuple[AnyCommand, Event]] = [
            (send_message("k2", turn="t2"), turn_started_events("t2", "t.out", command="k2")[0]),
            (
                replace(send_message("k9", turn="t9"), steers=True, joins="t2"),
                MessageAdded(turn="t2", message=Message("t9.in", "t2.in", "user", turn="t2"), command="k9"),
            ),
            (answer_gate("k3"), GateResolved(turn="t", gate="t.gate", call="t.call", resolution=ALLOW, command="k3")),
            (Cancel(key="k4", session="s", turn="t2"), CommandDropped(command="k4", reason="it was over")),
            (Select(key="k5", session="s", message="t.in"), LeafSelected(message="t.in", command="k5")),
            (Cancel(key="k6", session="s", turn="t"), turn_ended_events(command="k6")[0]),
            (
                late_result_command("k7"),
                LateResultReceived(turn="t", call="t.call", output=Output("late"), command="k7"),
            ),
            (Delete(key="k8", session="s", message="t2.in"), MessageDeleted(message="t2.in", command="k8")),
        ]
        for command, event in acted:
            await store.admit(command)
            await store.append("s", await store.head("s"), [TitleSet(turn="t", title="says nothing of it")])
            assert await store.inbox("s") == [command]
            await store.append("s", await store.head("s"), [event])
            assert await store.inbox("s") == []

    async def test_a_turn_is_open_until_its_terminal_event_and_a_late_result_does_not_open_it_again(self) -> None:
        store = await self.make_waiting()
        await store.append("s", await store.head("s"), turn_started_events("t2", "t.out"))
        assert await store.open_turns("s") == ["t", "t2"]

        await store.append("s", await store.head("s"), turn_ended_events("t"))
        await store.append(
            "s", await store.head("s"), [LateResultReceived(turn="t", call="t.call", output=Output("late"))]
        )

        assert await store.open_turns("s") == ["t2"]

    # Projections -------------------------------------------------------------------------------------------------

    async def test_the_tree_is_the_fold_of_the_log(self) -> None:
        store = await self.make_waiting()
        more = [
            *turn_started_events("t2", "t.in"),
            *gate_opened_events("t2"),
            *turn_ended_events("t2"),
            MessageDeleted(message="t2.in"),
        ]
        await store.append("s", await store.head("s"), [*more, TitleSet(turn="t", title="A title")])
        tree = MessageTree()
        for entry in await store.events("s"):
            tree.apply(entry.event)

        assert await store.tree("s") == tree
        assert await store.path("s", "t.out") == tree.path("t.out")
        info = await store.info("s")
        assert (info.id, info.title, info.leaf) == ("s", "A title", tree.leaf)

    async def test_a_path_is_one_branch_and_costs_no_more_when_there_are_others(self) -> None:
        store = await self.make_waiting()
        await store.path("s", "t.out")  # fills caches on first use
        alone = await cost_of(store.path("s", "t.out"))
        for at in range(300):
            await store.append("s", await store.head("s"), turn_started_events(f"t{at}", "t.in"))
        await store.path("s", "t.out")

        assert await cost_of(store.path("s", "t.out")) <= 2 * alone + 20
        assert [message.id for message in await store.path("s", "t.out")] == ["t.in", "t.out"]
        assert await store.path("s", None) == []

    async def test_there_is_no_path_to_what_is_unknown_or_deleted(self) -> None:
        store = await self.make_waiting()
        await store.append("s", await store.head("s"), [MessageDeleted(message="t.in")])

        for leaf in ("nobody", "t.in", "t.out"):
            with pytest.raises(UnknownMessage):
                await store.path("s", leaf)

    async def test_a_session_is_awake_while_somebody_should_drive_it(self) -> None:
        store = await self.make()

        async def is_awake() -> bool:
            awake = [info.id for info in await store.sessions(awake=True)]
            assert [info.id for info in await store.sessions()] == ["s"]
            assert (await store.info("s")).is_awake == (awake == ["s"])
            return awake == ["s"]

        await store.admit(send_message())
        assert await is_awake()  # a command to process
        await store.append("s", 0, turn_started_events())
        assert await is_awake()  # a running turn
        await store.append("s", 2, gate_opened_events())
        assert not await is_awake()  # it waits
        await store.admit(answer_gate())
        assert await is_awake()
        answered = GateResolved(turn="t", gate="t.gate", call="t.call", resolution=ALLOW, command="a")
        await store.append("s", 6, [answered])
        assert await is_awake()
        await store.append("s", 7, turn_ended_events())
        assert not await is_awake()


class LogDirectoryContract(StoreSetup):
    """The log as the directory reads it: many sessions at once, and search."""

    async def test_the_positions_of_many_sessions_are_read_at_once(self) -> None:
        store = await self.make()
        names = ["s", 'a "quoted" [name]', "ünï", "s4"]
        for at, session in enumerate(names):
            await store.admit(send_message(session=session))
            if at:
                await store.append(session, 0, turn_started_events()[:at])
        await store.append("s4", 3 - 1, turn_ended_events())
        await store.erase("s4")

        assert await store.heads([*names, "nobody", "s"]) == {"s": 0, names[1]: 1, names[2]: 2}
        assert await store.heads([]) == {}

    async def test_messages_are_found_by_their_words_unless_they_were_deleted(self) -> None:
        store = await self.make()
        for session, text in (("s", "Lunch is at noon"), ("s2", "no lunch today"), ("s3", "supper")):
            await store.admit(send_message(session=session))
            await store.append(session, 0, turn_started_events(text=text))
        await store.append("s2", 2, [MessageDeleted(message="t.in")])

        assert [(session, message.text) for session, message in await store.search("LUNCH")] == [
            ("s", "Lunch is at noon")
        ]
        assert await store.search("breakfast") == []


class BlobStoreContract(StoreSetup):
    """Blobs: bytes by their hash."""

    async def test_bytes_are_kept_under_their_hash(self) -> None:
        store = await self.make()
        data = bytes(range(256)) * 300

        name = await store.put_blob(data)

        assert name == await store.put_blob(data) == hashlib.sha256(data).hexdigest()
        assert await store.blob(name) == data
        assert await store.blob(await store.put_blob(b"")) == b""
        with pytest.raises(EverturnError):
            await store.blob("0" * 64)
