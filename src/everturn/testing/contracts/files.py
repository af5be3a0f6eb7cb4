"""What a store knows of files: the tree that was last recorded for each root; and when they may be reverted."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from everturn.core.commands import Revert, Stir
from everturn.core.events import (
    CallMade,
    CallSettled,
    CallStirred,
    CommandDropped,
    Event,
    FilesChanged,
    FilesReverted,
)
from everturn.core.parts import FileChange, FilesPart, Output, ToolPart
from everturn.core.ports import Store
from everturn.errors import KeyConflict, SessionBusy, Stale, UnknownSession, UnknownTurn
from everturn.testing.contracts.samples import NOON, called, over, ran, send, started


def changed(before: str, after: str, root: str = "") -> FilesChanged:
    """A step has changed a file."""
    changes = (FileChange("a.txt", "modified", 1, 1),)
    return FilesChanged(turn="t", at=NOON, step=1, before=before, after=after, root=root, changes=changes)


def reverted(before: str, after: str, root: str = "", command: str = "r") -> FilesReverted:
    """The files are again what they were."""
    return FilesReverted(at=NOON, root=root, before=before, after=after, command=command)


def revert(key: str = "r", root: str = "", tree: str = "one") -> Revert:
    """Let them be what they were."""
    return Revert(key=key, session="s", at=NOON, root=root, tree=tree)


def stir(key: str = "w", turn: str = "t") -> Stir:
    """The sub-turn of the call is about to be over."""
    return Stir(key=key, session="s", at=NOON, turn=turn, call=f"{turn}.call")


class FilesContract:
    """Trees are read off the log; files are reverted between turns; a call that waits for a sub-turn is stirred."""

    async def make(self) -> Store:
        """An empty store."""
        raise NotImplementedError

    async def working(self) -> Store:
        """A store with a turn whose call runs."""
        store = await self.make()
        await store.admit(send())
        await store.append("s", 0, [*started(), *called(), *ran()])
        return store

    # Trees ----------------------------------------------------------------------------------------------------------

    async def test_for_each_root_the_tree_that_was_recorded_last_is_known(self) -> None:
        store = await self.working()
        assert await store.roots("s") == {}

        await store.append("s", 6, [changed("", "one"), changed("g0", "g1", "/home/ada"), changed("one", "two")])
        assert await store.roots("s") == {"": "two", "/home/ada": "g1"}
        await store.append("s", 9, [changed("two", "three")])
        await store.append("s", 10, [*over(), reverted("g1", "g0", "/home/ada")])

        assert await store.roots("s") == {"": "three", "/home/ada": "g0"}

    async def test_an_append_that_is_refused_records_no_tree(self) -> None:
        store = await self.working()
        await store.append("s", 6, [changed("", "one")])

        with pytest.raises(Stale):
            await store.append("s", 6, [changed("", "two")])

        assert await store.roots("s") == {"": "one"}

    async def test_trees_are_a_sessions_own_and_go_with_it(self) -> None:
        store = await self.working()
        await store.admit(send(session="other", turn="t2"))
        await store.append("s", 6, [changed("", "one"), *over()])
        assert await store.roots("other") == {}

        await store.erase("s")

        for session in ("s", "absent"):
            with pytest.raises(UnknownSession):
                await store.roots(session)

    async def test_a_log_from_elsewhere_says_nothing_of_folders_here(self) -> None:
        store = await self.working()
        await store.append("s", 6, [changed("", "one"), changed("g0", "g1", "/home/ada"), *over()])
        log = [entry.event for entry in await store.events("s")]

        await store.restore("copy", "local", [*log, reverted("g1", "g0", "/home/ada"), reverted("one", "two")])
        assert await store.roots("copy") == {"": "two"}

        await store.append("copy", len(log) + 2, [reverted("g0", "g2", "/home/ada")])
        assert await store.roots("copy") == {"": "two", "/home/ada": "g2"}

    async def test_a_message_keeps_the_calls_that_a_tool_made_and_the_files_that_changed(self) -> None:
        store = await self.working()
        made = CallMade(turn="t", at=NOON, call="t.made", parent="t.call", name="look", arguments="{}", identity="i")
        settled: list[Event] = [
            CallSettled(turn="t", at=NOON, call=call, state="completed", output=Output(call))
            for call in ("t.made", "t.call")
        ]
        await store.append("s", 6, [made])
        await store.append("s", 7, [*settled, changed("", "one"), *over()])

        [_, message] = await store.path("s", "t.out")

        assert message == (await store.tree("s")).messages["t.out"]
        calls = [(part.call, part.parent, part.state) for part in message.parts if isinstance(part, ToolPart)]
        assert calls == [("t.call", "", "completed"), ("t.made", "t.call", "completed")]
        assert [part.after for part in message.parts if isinstance(part, FilesPart)] == ["one"]

    # Reverting ------------------------------------------------------------------------------------------------------

    async def test_files_are_not_reverted_while_a_turn_is_open_or_asked_for(self) -> None:
        store = await self.working()

        with pytest.raises(SessionBusy):
            await store.admit(revert())
        await store.append("s", 6, over())
        await store.admit(send("k2", turn="t2"))
        with pytest.raises(SessionBusy):
            await store.admit(revert())
        assert await store.inbox("s") == [send("k2", turn="t2")]
        with pytest.raises(UnknownSession):
            await store.admit(replace(revert(), tenant="eve"))
        with pytest.raises(UnknownSession):
            await store.admit(replace(revert(), session="absent"))

        await store.append("s", 8, [*started("t2", command="k2"), *over("t2")])
        assert (await store.admit(revert())).is_new

    async def test_a_revert_stands_in_the_inbox_until_it_is_acted_on_or_dropped(self) -> None:
        store = await self.working()
        await store.append("s", 6, [changed("", "one"), changed("one", "two"), *over()])

        assert (await store.admit(revert())).is_new
        assert not (await store.admit(revert())).is_new
        with pytest.raises(KeyConflict):
            await store.admit(revert(tree="two"))
        await store.admit(revert("r2", tree="never"))
        assert await store.inbox("s") == [revert(), revert("r2", tree="never")]
        assert (await store.info("s")).is_awake

        gone = CommandDropped(at=NOON, command="r2", reason="there is no such tree")
        await store.append("s", 10, [reverted("two", "one"), gone])

        assert await store.inbox("s") == []
        assert await store.roots("s") == {"": "one"}
        assert not (await store.info("s")).is_awake

    # Stirring -------------------------------------------------------------------------------------------------------

    async def test_a_call_is_stirred_in_a_turn_that_has_begun(self) -> None:
        store = await self.working()
        await store.admit(send("k2", turn="t2"))
        for turn in ("t2", "nobody"):  # asked for, and never heard of
            with pytest.raises(UnknownTurn):
                await store.admit(stir(turn=turn))
        with pytest.raises(UnknownSession):
            await store.admit(replace(stir(), tenant="eve"))

        assert (await store.admit(stir())).is_new
        assert not (await store.admit(stir())).is_new
        assert await store.inbox("s") == [send("k2", turn="t2"), stir()]
        await store.append("s", 6, [CallStirred(turn="t", at=NOON, call="t.call", command="w")])

        assert await store.inbox("s") == [send("k2", turn="t2")]

    async def test_a_stir_that_comes_too_late_is_taken_and_dropped(self) -> None:
        store = await self.working()
        await store.append("s", 6, over())

        assert (await store.admit(stir())).is_new
        await store.append("s", 8, [CommandDropped(at=NOON, command="w", reason="its turn is over")])

        assert await store.inbox("s") == []
