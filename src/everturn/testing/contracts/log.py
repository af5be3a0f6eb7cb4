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
from everturn.core.context.compaction import compact_path
from everturn.core.events import (
    CallFinished,
    CommandDropped,
    CompactionFinished,
    CompactionStarted,
    Event,
    FilesChanged,
    FilesReverted,
    GateResolved,
    LateResultReceived,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    RevertStarted,
    StepFinished,
    StepStarted,
    SubagentStarted,
    TitleSet,
    TurnCancelled,
    TurnFinishing,
)
from everturn.core.messages import Message
from everturn.core.parts import ClearedPart, Output, Quote, StepPart, SummaryPart, TextPart, Usage
from everturn.core.projections.event_index import EventIndex
from everturn.core.tree import MessageTree
from everturn.errors import EverturnError, Stale, UnknownMessage, UnknownSession
from everturn.testing.contracts.samples import (
    ALLOW,
    answer_gate,
    gate_opened_events,
    import_messages,
    late_result_command,
    messages_imported,
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

        assert sorted(isinstance(result, Stale) for result in both) == [False, True]
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

    async def test_the_tree_of_imported_finished_and_late_messages_is_the_fold_of_the_log(self) -> None:
        store = await self.make_waiting()
        imported = import_messages()
        finished = CallFinished(turn="t", call="t.call", state="cancelled", output=Output("no"), still_running=True)
        ended = [TurnFinishing(turn="t", outcome="cancelled"), finished, TurnCancelled(turn="t")]
        late = LateResultReceived(turn="t", call="t.call", output=Output("late"))
        for events in (
            ended,
            [messages_imported(imported, "t.out", title="Parcels")],
            [late],
            turn_started_events("t2", f"{imported.key}-1"),
            gate_opened_events("t2"),
            [LeafSelected(message="t.out")],
            turn_started_events("t3", "t.out"),
            [*turn_ended_events("t3"), MessageDeleted(message="t3.in")],
        ):
            await store.append("s", await store.head("s"), events)
            tree = MessageTree()
            for entry in await store.events("s"):
                tree.apply(entry.event)
            found = await store.tree("s")
            assert (found.messages, list(found.messages)) == (tree.messages, list(tree.messages))
            assert (found.children, found.deleted) == (tree.children, tree.deleted)
            assert (found.leaf, found.title) == (tree.leaf, tree.title)

    async def test_compactions_and_continued_texts_are_read_as_they_were_written(self) -> None:
        """A request is made of the branch: a part that a store changed would change it."""
        part = SummaryPart(
            "Goal: go on.",
            "t.out",
            1,
            "t.in",
            (Quote("t.in", "hello"),),
            ("call t.call mail {} -> completed",),
            2,
            before=900,
            after=100,
            limit=1000,
            untrusted=True,
        )
        notices = [
            Message("t.cleared", "t.out", "notice", (ClearedPart(("t.call",), 900, 700, 1000),), turn="t"),
            Message("t.summary", "t.cleared", "notice", (part,), turn="t"),
        ]
        cut = (TextPart("cut in the mi"),)
        events = [
            *turn_started_events(),
            StepStarted(turn="t", step=1),
            StepFinished(turn="t", step=1, parts=cut, finish="length", usage=Usage(800, 9), continues=True),
            MessageAdded(turn="t", message=notices[0]),
            CompactionStarted(turn="t", number=1, kept="t.out", step=1, task="t.in", used=900, limit=1000),
            MessageAdded(turn="t", message=notices[1]),
            CompactionFinished(turn="t", number=1, usage=Usage(700, 50), model="small"),
            *turn_ended_events(),
        ]
        store = await self.make()
        await store.admit(send_message())
        await store.append("s", 0, events)
        assert [entry.event for entry in await store.events("s")] == events
        tree = MessageTree()
        for event in events:
            tree.apply(event)
        path = await store.path("s", "t.summary")
        assert path == tree.path("t.summary")
        assert path[1].parts == (*cut, StepPart(1, "length", Usage(800, 9), continues=True))
        assert compact_path(path) == compact_path(tree.path("t.summary"))

    async def test_events_are_found_by_their_keys(self) -> None:
        store = await self.make_waiting()
        await store.admit(send_message("k2", "other", "t2"))
        await store.append("other", 0, [*turn_started_events("t2", command="k2"), *gate_opened_events("t2")])
        cut = Output("the beginning…", blob="0" * 64)
        long_root = "/\0" + "é" * 300
        steered = Message("m", "t.out", "user", (TextPart("and?"),), turn="t")
        keyed: list[Event] = [
            SubagentStarted(turn="t", call="t.call", session="s-t.call", child="c", number=1),
            CallFinished(turn="t", call="t.call", state="completed", output=cut),
            MessageAdded(turn="t", message=steered, command="joined"),
            FilesChanged(turn="t", step=1, root=long_root, before="a", after="b"),
            RevertStarted(root=long_root, before="b", after="a", key="r"),
            FilesReverted(root=long_root, before="b", after="a", command="r"),
            FilesReverted(root=long_root + "2", before="b", after="a", command="r2"),
            FilesChanged(turn="t", step=1, root="", before="", after="c"),
            CommandDropped(command="dropped", reason="too late"),
            LateResultReceived(turn="t", call="t.call", output=Output("late")),
        ]
        plain: list[Event] = [
            CallFinished(turn="t", call="t.call", state="completed", output=Output("short")),
            MessageAdded(turn="t", message=replace(steered, id="m2", parent="m")),
        ]
        head = await store.head("s")
        opened = (await store.events("s"))[-2].event
        await store.append("s", head, [*keyed, *plain])

        async def found(index: EventIndex, key: str | None = None) -> list[Event]:
            return [entry.event for entry in await store.indexed_events("s", index, key)]

        assert await found("gate", "t.gate") == await found("gate") == [opened]
        assert await found("subagent", "s-t.call") == keyed[:1]
        assert await found("result", "t.call") == keyed[1:2]
        assert await found("command") == [keyed[2], keyed[8]]
        assert await found("command", "joined") == keyed[2:3]
        assert await found("command", "dropped") == keyed[8:9]
        assert await found("files", long_root) == keyed[3:6]
        assert await found("files", long_root + "2") == keyed[6:7]
        assert await found("files", "") == keyed[7:8]
        assert await found("files") == keyed[3:8]
        assert await found("late", "t.call") == keyed[9:10]
        assert [entry.event for entry in await store.indexed_events("s", "files", limit=2)] == keyed[3:5]
        assert [entry.event for entry in await store.indexed_events("s", "files", "", 1)] == keyed[7:8]
        assert await store.indexed_events("s", "subagent", "nobody", 1) == []
        assert await found("subagent", "nobody") == []
        assert [entry.seq for entry in await store.indexed_events("s", "command")] == [head + 3, head + 9]
        with pytest.raises(UnknownSession):
            await store.indexed_events("nowhere", "gate")

    async def test_an_event_is_found_by_its_key_at_the_same_cost_in_a_long_log(self) -> None:
        store = await self.make_waiting()
        await store.indexed_events("s", "gate", "t.gate")  # fills caches on first use
        alone = await cost_of(store.indexed_events("s", "gate", "t.gate"))
        others = [[*turn_started_events(f"t{at}", "t.in"), *gate_opened_events(f"t{at}")] for at in range(100)]
        await store.append("s", await store.head("s"), [event for events in others for event in events])
        await store.indexed_events("s", "gate", "t.gate")

        assert await cost_of(store.indexed_events("s", "gate", "t.gate")) <= 2 * alone + 20

    async def test_a_path_is_one_branch_and_costs_no_more_when_there_are_others(self) -> None:
        store = await self.make_waiting()
        await store.path("s", "t.out")  # fills caches on first use
        alone = await cost_of(store.path("s", "t.out"))
        others = [turn_started_events(f"t{at}", "t.in") for at in range(300)]
        await store.append("s", await store.head("s"), [event for events in others for event in events])
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

    async def test_an_imported_answer_is_found_at_once(self) -> None:
        store = await self.make()
        await store.admit(import_messages())
        await store.append("s", 0, [messages_imported(import_messages())])
        assert [message.id for _, message in await store.search("comes")] == ["i-1"]


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
