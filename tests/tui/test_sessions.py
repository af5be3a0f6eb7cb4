"""All sessions: listed while they move, searched, opened, exported and erased."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from textual.widgets import Input

from everturn.terminal.tui.sessions import SessionsScreen, match_excerpt
from tests.helpers.scripted_server.server import Rig
from tests.tui.screen_user import Person, person

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]


async def opened(user: Person) -> SessionsScreen:
    await user.press("ctrl+o")
    await user.until(lambda: isinstance(user.app.screen, SessionsScreen) and user.app.screen._chosen(), "the sessions")
    assert isinstance(user.app.screen, SessionsScreen)
    return user.app.screen


async def command(user: Person, text: str) -> None:
    await user.app.commands.submit(text)


def test_what_was_found_is_shown_around_the_words() -> None:
    text = "x " * 100 + "the needle in it"
    assert "needle" in match_excerpt(text, "needle")[:50]
    assert match_excerpt("needle first", "needle") == "needle first"
    assert match_excerpt("other", "needle") == "other"


async def test_a_session_is_found_by_its_words_and_opened(rig: Rig) -> None:
    session = rig.say("a quetzalcoatlus flies over the lagoon")["session"]
    rig.wait_idle(session, 60)
    async with person(rig) as user:
        screen = await opened(user)
        screen.query_one(Input).value = "quetzalcoatlus"
        await user.until(lambda: screen._rows and set(screen._rows) == {session}, "what was found")
        await user.press("enter")
        await user.closed()
        await user.sees("a quetzalcoatlus flies")
        assert user.session == session


async def test_a_session_that_waits_is_marked_and_counted(rig: Rig) -> None:
    async with person(rig) as user:
        session = rig.say("mail")["session"]
        await user.until(lambda: any(gate.session == session for gate in user.app.inbox_gates), "the question")
        await user.reads(f"{len(user.app.inbox_gates)} pending")
        await opened(user)
        await user.reads("needs your answer")


async def test_a_session_is_renamed_pinned_labelled_and_archived(rig: Rig) -> None:
    older = rig.say("an older conversation")["session"]
    rig.wait_idle(older, 60)
    async with person(rig) as user:
        session = await user.say("a conversation to organize")
        await user.idle()
        await command(user, "/rename The harbour")
        await user.until(lambda: user.app.sessions[session].title == "The harbour", "the title")
        await user.reads("The harbour")
        await command(user, "/label work, trips")
        await user.until(lambda: user.app.sessions[session].labels == ["work", "trips"], "the labels")
        rig.api("PATCH", f"/api/sessions/{older}", {"pinned": True})
        await user.until(lambda: user.app.sessions[older].pinned, "what another client changed")
        assert next(iter(user.app.recent_sessions())).pinned
        await command(user, "/archive")
        await user.until(lambda: user.app.sessions[session].archived, "the archive")
        assert session not in [view.id for view in user.app.recent_sessions()]
        await command(user, "/archive")
        await user.until(lambda: not user.app.sessions[session].archived, "its return")
        await command(user, "/rename")
        await user.reads("which title?")
        rig.api("PATCH", f"/api/sessions/{older}", {"pinned": False})  # the next test looks at the first row


async def test_a_session_is_exported_and_erased(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with person(rig) as user:
        session = await user.say("to be taken out")
        await user.idle()
        screen = await opened(user)
        await user.until(lambda: screen._chosen() == session, "the session")
        await user.press("ctrl+e")
        await user.until(lambda: any(tmp_path.iterdir()), "the file")
        await user.until(lambda: zipfile.is_zipfile(tmp_path / f"{session}.zip"), "all of it")
        await user.press("ctrl+d")
        await user.press("n")
        assert rig.messages(session)
        await user.press("ctrl+d")
        await user.confirm()
        await user.until(lambda: session not in user.app.sessions, "its end")
        assert user.app.follower is None
    assert session not in {row["id"] for row in rig.api("GET", "/api/sessions")["sessions"]}
    assert os.listdir(tmp_path) == [f"{session}.zip"]
