"""Organizing contract of a store: sessions that people rename, pin, archive and label, and lists that are filtered by it."""

from __future__ import annotations

import pytest

from everturn.core.commands import UpdateSession
from everturn.core.events import Event, MessageDeleted, SessionUpdated, TitleSet
from everturn.core.options import TurnOptions
from everturn.core.store_ports import SessionFilter, SessionInfo, Store
from everturn.errors import KeyConflict, UnknownSession
from everturn.testing.contracts.samples import NOON, send_message, turn_ended_events, turn_started_events
from everturn.testing.contracts.store_setup import StoreSetup


def how_it_is_listed(info: SessionInfo) -> tuple[str, bool, bool, bool, tuple[str, ...]]:
    """What people changed of a session."""
    return info.title, info.is_renamed, info.pinned, info.archived, info.labels


async def _session(store: Store, session: str, at: float = NOON, agent: str = "") -> None:
    """A session with one finished turn, last touched at a time."""
    options = TurnOptions(agent=agent)
    await store.admit(send_message("t.k", session, "t", at=at))
    started = turn_started_events(command="t.k", options=options)
    await store.append(session, 0, [*started, TitleSet(turn="t", at=NOON, title="Derived"), *turn_ended_events()])


async def _update(store: Store, session: str, *events: Event) -> SessionInfo:
    await store.append(session, await store.head(session), list(events))
    return await store.info(session)


class OrganizingContract(StoreSetup):
    """Sessions as people organize them."""

    async def test_a_session_is_renamed_pinned_archived_and_labelled_by_events(self) -> None:
        store = await self.make()
        await _session(store, "s")
        assert how_it_is_listed(await store.info("s")) == ("Derived", False, False, False, ())
        renamed = await _update(store, "s", SessionUpdated(at=NOON + 1, title="Mine"))
        assert how_it_is_listed(renamed) == ("Mine", True, False, False, ())
        pinned = await _update(store, "s", SessionUpdated(at=NOON + 2, pinned=True, labels=("work", "a b")))
        assert how_it_is_listed(pinned) == ("Mine", True, True, False, ("work", "a b"))
        several = (SessionUpdated(at=NOON + 3, archived=True), SessionUpdated(at=NOON + 4, pinned=False, labels=()))
        archived = await _update(store, "s", *several)
        assert how_it_is_listed(archived) == ("Mine", True, False, True, ())
        assert archived.organized == NOON + 4
        assert [archived] == await store.session_page("local") == await store.sessions()
        assert list((await store.infos(["s"])).values()) == [archived]

    async def test_a_title_that_a_person_gave_is_not_replaced(self) -> None:
        store = await self.make()
        await _session(store, "s")
        await _update(store, "s", SessionUpdated(at=NOON, title="Mine"))
        more = turn_started_events("t2", "t.in")
        info = await _update(store, "s", *more, TitleSet(turn="t2", at=NOON, title="Other"))
        assert info.title == "Mine"
        # Also where a store reads the rows of a session again: the deletion of a message, a claim, a copy.
        info = await _update(store, "s", *turn_ended_events("t2"), MessageDeleted(at=NOON, message="t2.in"))
        assert (info.title, (await store.tree("s")).title) == ("Mine", "Mine")
        await store.restore("copy", "local", [entry.event for entry in await store.events("s")])
        assert how_it_is_listed(await store.info("copy")) == how_it_is_listed(info)

    async def test_an_update_is_a_command_and_does_not_move_the_session_in_a_list(self) -> None:
        store = await self.make()
        update = UpdateSession(key="u", session="s", at=NOON + 50, title="Mine", by="ada")
        with pytest.raises(UnknownSession):
            await store.admit(update)
        await _session(store, "s", NOON)
        await _session(store, "newer", NOON + 1)
        assert (await store.admit(update)).is_new
        assert not (await store.admit(update)).is_new
        with pytest.raises(KeyConflict):
            await store.admit(UpdateSession(key="u", session="s", at=NOON + 50, title="Another", by="ada"))
        assert await store.inbox("s") == [update]
        claim = await store.claim("s", NOON + 51)
        assert claim is not None
        updated = SessionUpdated(at=NOON + 51, title="Mine", by="ada", command="u")
        await store.append("s", claim.head, [updated], claim.epoch)
        assert await store.inbox("s") == []
        info = await store.info("s")
        assert (info.title, info.touched, info.organized) == ("Mine", NOON, NOON + 51)
        assert [info.id for info in await store.session_page("local")] == ["newer", "s"]
        recent = SessionFilter(organized_since=NOON + 51)
        assert [info.id for info in await store.session_page("local", where=recent)] == ["s"]
        assert await store.session_page("local", where=SessionFilter(organized_since=NOON + 52)) == []

    async def test_a_list_is_filtered_by_what_people_did_with_sessions(self) -> None:
        store = await self.make()
        for at, name in enumerate(("plain", "pinned", "old", "both")):
            await _session(store, name, NOON + at, agent="critic" if name == "plain" else "writer")
        await _update(store, "pinned", SessionUpdated(at=NOON, pinned=True, labels=("work", "home")))
        await _update(store, "old", SessionUpdated(at=NOON, archived=True, labels=("wor",)))
        await _update(store, "both", SessionUpdated(at=NOON, pinned=True, archived=True))

        async def listed(where: SessionFilter, limit: int = 50) -> list[str]:
            return [info.id for info in await store.session_page("local", limit=limit, where=where)]

        assert await listed(SessionFilter()) == ["both", "old", "pinned", "plain"]
        assert await listed(SessionFilter(archived=False)) == ["pinned", "plain"]
        assert await listed(SessionFilter(archived=True)) == ["both", "old"]
        assert await listed(SessionFilter(pinned=True)) == ["both", "pinned"]
        assert await listed(SessionFilter(pinned=False)) == ["old", "plain"]
        assert await listed(SessionFilter(pinned=True, archived=False)) == ["pinned"]
        assert await listed(SessionFilter(label="work")) == ["pinned"]
        assert await listed(SessionFilter(label="wor")) == ["old"]  # the whole label, not its beginning
        assert await listed(SessionFilter(agent="critic")) == ["plain"]
        assert await listed(SessionFilter(archived=False), limit=1) == ["pinned"]
        after = await store.session_page("local", limit=1, where=SessionFilter(archived=False))
        cursor = (after[0].touched, after[0].id)
        rest = await store.session_page("local", before=cursor, where=SessionFilter(archived=False))
        assert [info.id for info in rest] == ["plain"]
        assert await store.session_page("other", where=SessionFilter(pinned=True)) == []

    async def test_what_people_did_with_an_erased_session_is_erased(self) -> None:
        store = await self.make()
        await _session(store, "s")
        await _update(store, "s", SessionUpdated(at=NOON + 1, title="Mine", pinned=True, labels=("work",)))
        await store.erase("s")
        for where in (SessionFilter(), SessionFilter(pinned=True), SessionFilter(organized_since=NOON)):
            assert await store.session_page("local", where=where) == []
