"""Titles as the API tells them: from admission on, in the list, the inbox and the search."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from everturn import api
from everturn.access.access import Access
from everturn.core.commands import Send
from everturn.core.options import TurnOptions
from everturn.core.parts import FilePart, TextPart
from everturn.stores.sql.store import SqlStore
from everturn.testing import MemoryStore
from tests.helpers.sqlite_files import empty_database
from tests.helpers.tenants import a_house, gate_in, over, somebody, start_session

LONG = "pay the invoice of the harbour office before the end of this month, please"
TITLE = "pay the invoice of the harbour office before the end of…"


@pytest.fixture(params=["memory", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Any]:
    backend = MemoryStore() if request.param == "memory" else SqlStore.sqlite(empty_database(tmp_path / "s.db"))
    yield backend
    await backend.aclose()


async def test_what_waits_for_a_person_is_called_by_its_first_message_everywhere(store: Any) -> None:
    async with a_house(store) as house:
        access = Access(house, somebody(role="approver"))
        sent = await start_session(access, LONG)
        gate = await gate_in(access, sent.session)
        assert gate.title == TITLE
        assert [session.title for session in (await access.sessions.list()).sessions] == [TITLE]
        assert [gate.title for gate in (await access.inbox()).gates] == [TITLE]
        assert (await access.sessions.get(sent.session)).title == TITLE
        assert {result.title for result in (await access.sessions.search("invoice")).results} == {TITLE}
        await access.sessions.cancel_turn(sent.session, sent.turn, api.CancelTurn())
        await over(access, sent)


async def test_a_question_below_is_called_by_the_message_at_the_top(store: Any) -> None:
    async with a_house(store) as house:
        access = Access(house, somebody(role="approver"))
        sent = await start_session(access, "clerk see to it")
        gate = await gate_in(access, sent.session)
        assert gate.session != sent.session
        assert gate.title == "clerk see to it"
        assert {result.title for result in (await access.sessions.search("pay")).results} == {"clerk see to it"}
        await access.sessions.cancel_turn(sent.session, sent.turn, api.CancelTurn())
        await over(access, sent)


@pytest.mark.parametrize(
    ("parts", "title"),
    [((TextPart(LONG),), TITLE), ((FilePart("0" * 64, "image/png", 3, "harbour.png"),), "harbour.png"), (None, "")],
)
async def test_a_session_that_no_worker_has_picked_up_has_its_title(store: Any, parts: Any, title: str) -> None:
    async with a_house(store) as house:
        access = Access(house, somebody())
        options = TurnOptions(model="scripted", agent="helper", by="member-ada")
        # Admitted as another node would: nobody here is told, so nothing starts.
        send = Send(key="k", session="s1", tenant="ada", at=1.0, turn="t1", message="m1", parts=parts, options=options)
        await house.app.store.admit(send)
        assert (await house.app.store.info("s1")).title == ""
        assert (await access.sessions.get("s1")).title == title
        assert [session.title for session in (await access.sessions.list()).sessions] == [title]
        assert [session.title for session in (await access.inbox()).awake] == [title]
