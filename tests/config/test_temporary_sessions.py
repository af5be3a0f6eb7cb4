"""Temporary chats: in no list, and erased when their time is over."""

from __future__ import annotations

import pytest
from tests.helpers.tenants import a_house, gate_in, over, somebody, start_session
from tests.helpers.waiting import wait_until

from everturn import api
from everturn.access.access import Access
from everturn.config.retention_job import erase_expired
from everturn.core.tenants.sharing import TEMPORARY_SECONDS
from everturn.errors import UnknownSession
from everturn.testing import FakeClock


async def test_a_temporary_chat_is_in_no_list_and_is_erased_after_a_day() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        ada = Access(house, somebody())
        permanent = await start_session(ada, "hello apple", private=True)
        sent = await start_session(ada, "hello apple", private=True, temporary=True)
        await over(ada, sent)
        await over(ada, permanent)
        assert [view.id for view in (await ada.sessions.list()).sessions] == [permanent.session]
        assert {hit.session for hit in (await ada.sessions.search("apple")).results} == {permanent.session}
        assert (await ada.sharing.get(sent.session)).temporary_until == clock.now() + TEMPORARY_SECONDS
        assert await erase_expired(house.app) == 0
        clock.advance(TEMPORARY_SECONDS)
        assert await erase_expired(house.app) == 1
        with pytest.raises(UnknownSession):
            await ada.sessions.get(sent.session)
        assert (await ada.sessions.get(permanent.session)).id == permanent.session
        assert await erase_expired(house.app) == 0


async def test_a_temporary_chat_that_waits_is_cancelled_and_then_erased() -> None:
    clock = FakeClock()
    async with a_house(clock=clock) as house:
        ada = Access(house, somebody())
        sent = await start_session(ada, "pay now", private=True, temporary=True)
        await gate_in(ada, sent.session)
        await house.app.store.sharing.set_temporary("ada", "session_that_never_began", clock.now())
        clock.advance(TEMPORARY_SECONDS)

        async def is_erased() -> bool:
            return await erase_expired(house.app) == 1

        await wait_until(is_erased)
        assert await house.app.store.sharing.expired(clock.now()) == []


async def test_a_temporary_chat_is_in_no_snapshot_of_the_inbox_and_its_gate_is() -> None:
    async with a_house() as house:
        ada = Access(house, somebody())
        sent = await ada.sessions.start(api.NewSession(text="pay now", temporary=True))
        await gate_in(ada, sent.session)
        inbox = await ada.inbox()
        assert [gate.session for gate in inbox.gates] == [sent.session]
        assert sent.session not in {view.id for view in inbox.awake}
