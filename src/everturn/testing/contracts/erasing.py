"""What goes with a session that is erased: the sessions of its sub-turns, and no other of a similar name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from everturn.core.options import Lineage, TurnOptions
from everturn.core.ports import Store
from everturn.errors import SessionBusy, UnknownSession
from everturn.testing.contracts.samples import over, send, started

BELOW = TurnOptions(above=Lineage("s", "t"))


class ErasureContract:
    """A session and its sub-turns are erased together, all or none, and never while one of them is busy."""

    async def make(self) -> Store:
        """An empty store."""
        raise NotImplementedError

    async def with_sub_turn(self) -> Store:
        """A store with a session whose turn is over, one of a sub-turn that is not, and one that looks like it."""
        store = await self.make()
        await store.admit(send())
        await store.append("s", 0, [*started(), *over()])
        for session, turn, options in (("s-t.call", "t2", BELOW), ("s-other", "t3", TurnOptions())):
            await store.admit(replace(send(session=session, turn=turn, text="a secret"), options=options))
            await store.append(session, 0, started(turn, text="a secret", options=options))
        await store.append("s-other", 2, over("t3"))
        return store

    async def test_an_erased_session_takes_those_of_its_sub_turns_with_it(self) -> None:
        store = await self.with_sub_turn()
        with pytest.raises(SessionBusy):
            await store.erase("s")
        assert await store.head("s") == 4  # of all or none
        await store.append("s-t.call", 2, over("t2"))

        await store.erase("s")

        assert [info.id for info in await store.sessions()] == ["s-other"]
        assert [session for session, _ in await store.search("secret")] == ["s-other"]
        with pytest.raises(UnknownSession):
            await store.append("s-t.call", 4, started("t4"))
        await store.erase("s")
        await store.erase("s-t.call")

    async def test_an_erased_sub_turn_takes_those_below_it_with_it_and_leaves_those_above(self) -> None:
        store = await self.with_sub_turn()
        await store.append("s-t.call", 2, over("t2"))
        deeper = "s-t.call-c"
        await store.admit(replace(send(session=deeper, turn="t4"), options=BELOW))
        await store.append(deeper, 0, [*started("t4", options=BELOW), *over("t4")])

        await store.erase("s-t.call")

        assert sorted(info.id for info in await store.sessions()) == ["s", "s-other"]

    async def test_a_session_whose_sub_turn_is_about_to_begin_is_not_erased(self) -> None:
        store = await self.with_sub_turn()
        await store.append("s-t.call", 2, over("t2"))
        await store.admit(replace(send(session="s-next", turn="t4"), options=BELOW))

        with pytest.raises(SessionBusy):
            await store.erase("s")

    async def test_a_log_that_calls_itself_that_of_a_sub_turn_is_not_erased_with_another(self) -> None:
        store = await self.with_sub_turn()
        await store.append("s-t.call", 2, over("t2"))
        log = [entry.event for entry in await store.events("s-t.call")]
        await store.restore("s-copy", "local", log)

        await store.erase("s")

        assert sorted(info.id for info in await store.sessions()) == ["s-copy", "s-other"]
