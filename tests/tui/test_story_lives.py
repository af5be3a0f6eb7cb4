"""What outlives a screen, a second one, and a server: turns, questions, and every letter of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.helpers.scripted_server import texts
from tests.helpers.scripted_server.server import Rig, a_rig
from tests.tui.screen_user import person

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def own() -> Iterator[Rig]:
    """A server that may be killed."""
    with a_rig() as server_rig:
        yield server_rig


async def test_somebody_leaves_at_a_question_and_comes_back(rig: Rig) -> None:
    before = len(rig.deeds("mail"))
    async with person(rig) as user:
        session = await user.say("mail")
        await user.gate("send_mail")
    assert rig.gates(session)
    async with person(rig, session) as again:
        await again.allow("send_mail")
        await again.idle()
        await again.sees("sent to ann@example.org")
    assert len(rig.deeds("mail")) == before + 1


async def test_two_screens_are_in_step(rig: Rig) -> None:
    async with person(rig) as user:
        session = await user.say("mail")
        await user.gate("send_mail")
        async with person(rig, session) as other:
            await other.gate("send_mail")
            await other.press("y")
            await user.closed()  # it was answered elsewhere
            await other.closed()
            await user.idle()
            await other.say("plain 60 pace 5")
            await user.sees("word59")
            await user.idle()
            await other.idle()
            stored = rig.stored_text(session)
            assert stored == texts.plain(60)
            await user.sees(stored)
            await other.sees(stored)


async def test_a_server_that_is_killed_loses_no_letter(own: Rig) -> None:
    async with person(own) as user:
        session = await user.say("plain 400 pace 10")
        await user.sees("word20")
        await asyncio.to_thread(own.kill)
        await user.reads("connection lost")
        await asyncio.to_thread(own.serve)
        await user.idle()
        stored = own.stored_text(session)
        assert stored == texts.plain(400)
        await user.sees(stored)
        assert user.text.count("word399") == 1
        assert "connection lost" not in user.screen
