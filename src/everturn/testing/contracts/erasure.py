"""Erasure contract of a store: erasing a session erases its sub-agent sessions too, and no other of a similar name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from everturn.core.options import Lineage, TurnOptions
from everturn.core.store_ports import Store
from everturn.errors import SessionBusy, UnknownSession
from everturn.testing.contracts.samples import send_message, turn_ended_events, turn_started_events
from everturn.testing.contracts.store_setup import StoreSetup

BELOW = TurnOptions(lineage=Lineage("s", "t"))


class ErasureContract(StoreSetup):
    """A session and its sub-agent sessions are erased together, all or none, and never while one of them is busy."""

    async def make_with_subagent(self) -> Store:
        """A store with a finished session, a sub-agent session that is not finished, and one with a similar name."""
        store = await self.make()
        await store.admit(send_message())
        await store.append("s", 0, [*turn_started_events(), *turn_ended_events()])
        for session, turn, options in (("s-t.call", "t2", BELOW), ("s-other", "t3", TurnOptions())):
            await store.admit(replace(send_message(session=session, turn=turn, text="a secret"), options=options))
            await store.append(session, 0, turn_started_events(turn, text="a secret", options=options))
        await store.append("s-other", 2, turn_ended_events("t3"))
        return store

    async def test_an_erased_session_takes_those_of_its_sub_turns_with_it(self) -> None:
        store = await self.make_with_subagent()
        with pytest.raises(SessionBusy):
            await store.erase("s")
        assert await store.head("s") == 4  # all or none
        await store.append("s-t.call", 2, turn_ended_events("t2"))

        await store.erase("s")

        assert [info.id for info in await store.sessions()] == ["s-other"]
        assert [session for session, _ in await store.search("secret")] == ["s-other"]
        with pytest.raises(UnknownSession):
            await store.append("s-t.call", 4, turn_started_events("t4"))
        await store.erase("s")
        await store.erase("s-t.call")

    async def test_an_erased_sub_turn_takes_those_below_it_with_it_and_leaves_those_above(self) -> None:
        store = await self.make_with_subagent()
        await store.append("s-t.call", 2, turn_ended_events("t2"))
        deeper = "s-t.call-c"
        await store.admit(replace(send_message(session=deeper, turn="t4"), options=BELOW))
        await store.append(deeper, 0, [*turn_started_events("t4", options=BELOW), *turn_ended_events("t4")])

        await store.erase("s-t.call")

        assert sorted(info.id for info in await store.sessions()) == ["s", "s-other"]

    async def test_a_session_whose_sub_turn_is_about_to_begin_is_not_erased(self) -> None:
        store = await self.make_with_subagent()
        await store.append("s-t.call", 2, turn_ended_events("t2"))
        await store.admit(replace(send_message(session="s-next", turn="t4"), options=BELOW))

        with pytest.raises(SessionBusy):
            await store.erase("s")

    async def test_a_log_that_calls_itself_that_of_a_sub_turn_is_not_erased_with_another(self) -> None:
        store = await self.make_with_subagent()
        await store.append("s-t.call", 2, turn_ended_events("t2"))
        log = [entry.event for entry in await store.events("s-t.call")]
        await store.restore("s-copy", "local", log)

        await store.erase("s")

        assert sorted(info.id for info in await store.sessions()) == ["s-copy", "s-other"]
