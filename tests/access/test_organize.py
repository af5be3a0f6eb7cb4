"""Sessions that people rename, pin, archive, label, find and delete, over the API."""

from __future__ import annotations

import pytest

from everturn import api
from everturn.access.access import Access
from everturn.errors import ConfigError, Forbidden, KeyConflict, UnknownSession
from tests.helpers.tenants import a_house, over, somebody, start_session


async def test_a_session_is_renamed_pinned_archived_and_labelled() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        first, second = await start_session(ada, "hello"), await start_session(ada, "goodbye")
        for sent in (first, second):
            await over(ada, sent)
        view = await ada.sessions.update(first.session, api.PatchSession(title="Mine", pinned=True), "k")
        assert (view.title, view.pinned, view.archived, view.labels, view.is_renamed) == ("Mine", True, False, [], True)
        again = await ada.sessions.update(first.session, api.PatchSession(title="Mine", pinned=True), "k")
        assert again == view  # the same request
        with pytest.raises(KeyConflict):
            await ada.sessions.update(first.session, api.PatchSession(title="Other"), "k")
        with pytest.raises(ConfigError, match="say what changes"):
            await ada.sessions.update(first.session, api.PatchSession())
        with pytest.raises(ConfigError, match="visible"):
            await ada.sessions.update(first.session, api.PatchSession(title="\u202e"))
        page = await ada.sessions.list()
        assert [view.id for view in page.sessions] == [second.session, first.session]  # a rename does not move it
        assert [view.id for view in page.pinned] == [first.session]
        assert not (await ada.sessions.list(before=(await ada.sessions.list(limit=1)).next)).pinned

        await ada.sessions.update(second.session, api.PatchSession(archived=True, labels=["work"]))
        assert [view.id for view in (await ada.sessions.list()).sessions] == [first.session]
        assert [view.id for view in (await ada.sessions.list(archived="only")).sessions] == [second.session]
        assert len((await ada.sessions.list(archived="include")).sessions) == 2
        assert [view.id for view in (await ada.sessions.list(archived="include", label="work")).sessions] == [
            second.session
        ]
        await ada.sessions.send(second.session, api.NewMessage(text="still there?"))  # archived, and can be continued


async def test_viewers_do_not_organize_sessions_and_nobody_that_of_another_tenant() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        sent = await start_session(ada, "hello")
        with pytest.raises(Forbidden):
            await Access(house, somebody(role="viewer")).sessions.update(sent.session, api.PatchSession(title="No"))
        with pytest.raises(UnknownSession):
            await Access(house, somebody("bob", role="owner")).sessions.update(
                sent.session, api.PatchSession(title="No")
            )
        assert (await ada.sessions.get(sent.session)).title == "hello"


async def test_a_search_is_filtered_by_label_archive_agent_and_time() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        first, second = await start_session(ada, "apple pie"), await start_session(ada, "apple tree")
        for sent in (first, second):
            await over(ada, sent)
        await ada.sessions.update(second.session, api.PatchSession(archived=True, labels=["garden"]))

        async def found(**filters: object) -> set[str]:
            return {hit.session for hit in (await ada.sessions.search("apple", **filters)).results}  # pyright: ignore[reportArgumentType]

        both = {first.session, second.session}
        assert await found() == both
        assert await found(archived="exclude") == {first.session}
        assert await found(archived="only") == await found(label="garden") == {second.session}
        assert await found(agent="nobody") == set()
        touched = (await ada.sessions.get(second.session)).updated
        assert await found(since=touched + 1) == set()
        assert await found(until=touched + 1) == both
        assert (await ada.sessions.search("apple")).results[0].updated == touched


async def test_who_started_a_session_may_delete_it_and_otherwise_an_owner() -> None:
    async with a_house() as house:
        ada, bob = Access(house, somebody(user="ada")), Access(house, somebody(user="bob"))
        sent = await start_session(ada, "hello")
        await over(ada, sent)
        with pytest.raises(Forbidden, match="only the author"):
            await bob.sessions.erase(sent.session)
        await ada.sessions.erase(sent.session)
        with pytest.raises(UnknownSession):
            await ada.sessions.get(sent.session)
