"""Requests that come again and again never read the whole log of a session."""

from __future__ import annotations

from contextlib import suppress

import pytest

from everturn import api
from everturn.core.events import Entry
from everturn.errors import AnsweredOtherwise, EverturnError, UnknownFile
from everturn.stores.memory import MemoryStore
from tests.helpers.tenants import a_house, access_of, gate_in, over, start_session


class RefusesWholeLogs(MemoryStore):
    """A store that refuses to read a whole log, from the moment on when it is told to."""

    is_refusing = False

    async def events(self, session: str, after: int = 0, turn: str | None = None) -> list[Entry]:
        assert turn is not None or after or not self.is_refusing, f"the whole log of {session} was read"
        return await super().events(session, after, turn)


async def test_a_sub_agents_session_is_shown_without_reading_the_log_of_its_parent() -> None:
    store = RefusesWholeLogs()
    async with a_house(store) as house:
        sent = await start_session(access_of(house, "member"), "clerk")
        gate = await gate_in(access_of(house, "approver"), sent.session)
        child = gate.gate.session
        assert child != sent.session
        store.is_refusing = True
        for role in ("viewer", "approver"):
            assert (await access_of(house, role).sessions.messages(child)).messages


async def test_a_second_answer_to_a_gate_is_refused_without_reading_the_log() -> None:
    store = RefusesWholeLogs()
    async with a_house(store) as house:
        approver = access_of(house, "approver")
        sent = await start_session(access_of(house, "member"), "pay 1")
        gate = await gate_in(approver, sent.session)
        await approver.gates.resolve(sent.session, gate.gate.id, api.AnswerGate(hash=gate.gate.hash, allow="once"))
        await over(approver, sent)
        store.is_refusing = True
        with pytest.raises(AnsweredOtherwise):
            await approver.gates.resolve(sent.session, gate.gate.id, api.AnswerGate(hash=gate.gate.hash, deny="no"))


async def test_messages_are_sent_edited_and_regenerated_without_reading_the_log() -> None:
    store = RefusesWholeLogs()
    async with a_house(store) as house:
        access = access_of(house, "approver")
        sent = await start_session(access, "hello")
        await over(access, sent)
        store.is_refusing = True
        answer = (await access.sessions.messages(sent.session)).messages[-1]
        for again in (
            await access.sessions.rerun(sent.session, answer.id, api.RegenerateAnswer()),
            await access.sessions.edit_message(sent.session, sent.message, api.EditMessage(text="hello again")),
            await access.sessions.send(sent.session, api.NewMessage(text="hello", busy="fork"), "key"),
        ):
            await over(access, again)
        with suppress(EverturnError):
            await access.sessions.send(sent.session, api.NewMessage(text="hello", busy="fork"), "key")
        with pytest.raises(UnknownFile):
            await access.files.revert(sent.session, api.RevertFiles(root="/home", tree="0" * 40))
        await access.sessions.select_message(sent.session, api.SelectBranch(message=sent.message))
        await access.sessions.delete_message(sent.session, answer.id)
