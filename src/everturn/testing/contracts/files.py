"""Files contract of a store: the last recorded tree of each root; and when files may be reverted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from everturn.core.commands import NotifyCall, Revert
from everturn.core.events import (
    CallFinished,
    CallNotified,
    CommandDropped,
    Event,
    FilesChanged,
    FilesReverted,
    NestedCallRequested,
)
from everturn.core.parts import FileChange, FilesPart, Output, ToolPart
from everturn.core.store_ports import Store
from everturn.errors import KeyConflict, SessionBusy, Stale, UnknownSession, UnknownTurn
from everturn.testing.contracts.samples import (
    NOON,
    call_requested_events,
    call_started_events,
    send_message,
    turn_ended_events,
    turn_started_events,
)
from everturn.testing.contracts.store_setup import StoreSetup


def files_changed_event(before: str, after: str, root: str = "") -> FilesChanged:
    """The event of a step that has changed a file."""
    changes = (FileChange("a.txt", "modified", 1, 1),)
    return FilesChanged(turn="t", at=NOON, step=1, before=before, after=after, root=root, changes=changes)


def files_reverted_event(before: str, after: str, root: str = "", command: str = "r") -> FilesReverted:
    """The event of a revert."""
    return FilesReverted(at=NOON, root=root, before=before, after=after, command=command)


def revert(key: str = "r", root: str = "", tree: str = "one") -> Revert:
    """The command that reverts the files."""
    return Revert(key=key, session="s", at=NOON, root=root, tree=tree)


def notify_call(key: str = "w", turn: str = "t") -> NotifyCall:
    """The notification that the sub-agent run of the call is about to end."""
    return NotifyCall(key=key, session="s", at=NOON, turn=turn, call=f"{turn}.call")


class FilesSetup(StoreSetup):
    """How the suites of this module make a store."""

    async def make_working(self) -> Store:
        """A store with a turn whose call runs."""
        store = await self.make()
        await store.admit(send_message())
        await store.append("s", 0, [*turn_started_events(), *call_requested_events(), *call_started_events()])
        return store


class FilesContract(FilesSetup):
    """Trees are read from the log; files are reverted between turns; a call that waits for a sub-agent run is
    notified.
    """

    # Trees ----------------------------------------------------------------------------------------------------------

    async def test_for_each_root_the_tree_that_was_recorded_last_is_known(self) -> None:
        store = await self.make_working()
        assert await store.recorded_trees("s") == {}

        await store.append(
            "s",
            6,
            [
                files_changed_event("", "one"),
                files_changed_event("g0", "g1", "/home/ada"),
                files_changed_event("one", "two"),
            ],
        )
        assert await store.recorded_trees("s") == {"": "two", "/home/ada": "g1"}
        await store.append("s", 9, [files_changed_event("two", "three")])
        await store.append("s", 10, [*turn_ended_events(), files_reverted_event("g1", "g0", "/home/ada")])

        assert await store.recorded_trees("s") == {"": "three", "/home/ada": "g0"}

    async def test_an_append_that_is_refused_records_no_tree(self) -> None:
        store = await self.make_working()
        await store.append("s", 6, [files_changed_event("", "one")])

        with pytest.raises(Stale):
            await store.append("s", 6, [files_changed_event("", "two")])

        assert await store.recorded_trees("s") == {"": "one"}

    async def test_a_message_keeps_the_calls_that_a_tool_made_and_the_files_that_changed(self) -> None:
        store = await self.make_working()
        made = NestedCallRequested(
            turn="t", at=NOON, call="t.made", parent="t.call", name="look", arguments="{}", identity="i"
        )
        settled: list[Event] = [
            CallFinished(turn="t", at=NOON, call=call, state="completed", output=Output(call))
            for call in ("t.made", "t.call")
        ]
        await store.append("s", 6, [made])
        await store.append("s", 7, [*settled, files_changed_event("", "one"), *turn_ended_events()])

        [_, message] = await store.path("s", "t.out")

        assert message == (await store.tree("s")).messages["t.out"]
        calls = [(part.call, part.parent, part.state) for part in message.parts if isinstance(part, ToolPart)]
        assert calls == [("t.call", "", "completed"), ("t.made", "t.call", "completed")]
        assert [part.after for part in message.parts if isinstance(part, FilesPart)] == ["one"]

    # Reverting ------------------------------------------------------------------------------------------------------

    async def test_files_are_not_reverted_while_a_turn_is_open_or_asked_for(self) -> None:
        store = await self.make_working()

        with pytest.raises(SessionBusy):
            await store.admit(revert())
        await store.append("s", 6, turn_ended_events())
        await store.admit(send_message("k2", turn="t2"))
        with pytest.raises(SessionBusy):
            await store.admit(revert())
        assert await store.inbox("s") == [send_message("k2", turn="t2")]
        with pytest.raises(UnknownSession):
            await store.admit(replace(revert(), tenant="eve"))
        with pytest.raises(UnknownSession):
            await store.admit(replace(revert(), session="absent"))

        await store.append("s", 8, [*turn_started_events("t2", command="k2"), *turn_ended_events("t2")])
        assert (await store.admit(revert())).is_new

    async def test_a_revert_stands_in_the_inbox_until_it_is_acted_on_or_dropped(self) -> None:
        store = await self.make_working()
        await store.append(
            "s", 6, [files_changed_event("", "one"), files_changed_event("one", "two"), *turn_ended_events()]
        )

        assert (await store.admit(revert())).is_new
        assert not (await store.admit(revert())).is_new
        with pytest.raises(KeyConflict):
            await store.admit(revert(tree="two"))
        await store.admit(revert("r2", tree="never"))
        assert await store.inbox("s") == [revert(), revert("r2", tree="never")]
        assert (await store.info("s")).is_awake

        dropped = CommandDropped(at=NOON, command="r2", reason="there is no such tree")
        await store.append("s", 10, [files_reverted_event("two", "one"), dropped])

        assert await store.inbox("s") == []
        assert await store.recorded_trees("s") == {"": "one"}
        assert not (await store.info("s")).is_awake

    # Notifications
    # --------------------------------------------------------------------------------------------------

    async def test_a_call_is_stirred_in_a_turn_that_has_begun(self) -> None:
        store = await self.make_working()
        await store.admit(send_message("k2", turn="t2"))
        for turn in ("t2", "nobody"):  # requested, and unknown
            with pytest.raises(UnknownTurn):
                await store.admit(notify_call(turn=turn))
        with pytest.raises(UnknownSession):
            await store.admit(replace(notify_call(), tenant="eve"))

        assert (await store.admit(notify_call())).is_new
        assert not (await store.admit(notify_call())).is_new
        assert await store.inbox("s") == [send_message("k2", turn="t2"), notify_call()]
        await store.append("s", 6, [CallNotified(turn="t", at=NOON, call="t.call", command="w")])

        assert await store.inbox("s") == [send_message("k2", turn="t2")]

    async def test_a_stir_that_comes_too_late_is_taken_and_dropped(self) -> None:
        store = await self.make_working()
        await store.append("s", 6, turn_ended_events())

        assert (await store.admit(notify_call())).is_new
        await store.append("s", 8, [CommandDropped(at=NOON, command="w", reason="its turn is over")])

        assert await store.inbox("s") == []


class FilesDirectoryContract(FilesSetup):
    """File trees of sessions that were imported or erased."""

    async def test_trees_are_a_sessions_own_and_go_with_it(self) -> None:
        store = await self.make_working()
        await store.admit(send_message(session="other", turn="t2"))
        await store.append("s", 6, [files_changed_event("", "one"), *turn_ended_events()])
        assert await store.recorded_trees("other") == {}

        await store.erase("s")

        for session in ("s", "absent"):
            with pytest.raises(UnknownSession):
                await store.recorded_trees(session)

    async def test_a_log_from_elsewhere_says_nothing_of_folders_here(self) -> None:
        store = await self.make_working()
        await store.append(
            "s", 6, [files_changed_event("", "one"), files_changed_event("g0", "g1", "/home/ada"), *turn_ended_events()]
        )
        log = [entry.event for entry in await store.events("s")]

        await store.restore(
            "copy", "local", [*log, files_reverted_event("g1", "g0", "/home/ada"), files_reverted_event("one", "two")]
        )
        assert await store.recorded_trees("copy") == {"": "two"}

        await store.append("copy", len(log) + 2, [files_reverted_event("g0", "g2", "/home/ada")])
        assert await store.recorded_trees("copy") == {"": "two", "/home/ada": "g2"}
