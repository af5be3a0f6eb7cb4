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


async def opened(one: Person) -> SessionsScreen:
    await one.press("ctrl+o")
    await one.until(lambda: isinstance(one.app.screen, SessionsScreen) and one.app.screen._chosen(), "the sessions")
    assert isinstance(one.app.screen, SessionsScreen)
    return one.app.screen


async def command(one: Person, text: str) -> None:
    await one.app.commands.submit(text)


def test_what_was_found_is_shown_around_the_words() -> None:
    text = "x " * 100 + "the needle in it"
    assert "needle" in match_excerpt(text, "needle")[:50]
    assert match_excerpt("needle first", "needle") == "needle first"
    assert match_excerpt("other", "needle") == "other"


async def test_a_session_is_found_by_its_words_and_opened(rig: Rig) -> None:
    session = rig.say("a quetzalcoatlus flies over the lagoon")["session"]
    rig.wait_idle(session, 60)
    async with person(rig) as one:
        screen = await opened(one)
        screen.query_one(Input).value = "quetzalcoatlus"
        await one.until(lambda: screen._rows and set(screen._rows) == {session}, "what was found")
        await one.press("enter")
        await one.closed()
        await one.sees("a quetzalcoatlus flies")
        assert one.session == session


async def test_a_session_that_waits_is_marked_and_counted(rig: Rig) -> None:
    async with person(rig) as one:
        session = rig.say("mail")["session"]
        await one.until(lambda: any(gate.session == session for gate in one.app.inbox_gates), "the question")
        await one.reads(f"{len(one.app.inbox_gates)} pending")
        await opened(one)
        await one.reads("needs your answer")


async def test_a_session_is_renamed_pinned_labelled_and_archived(rig: Rig) -> None:
    older = rig.say("an older conversation")["session"]
    rig.wait_idle(older, 60)
    async with person(rig) as one:
        session = await one.say("a conversation to organize")
        await one.idle()
        await command(one, "/rename The harbour")
        await one.until(lambda: one.app.sessions[session].title == "The harbour", "the title")
        await one.reads("The harbour")
        await command(one, "/label work, trips")
        await one.until(lambda: one.app.sessions[session].labels == ["work", "trips"], "the labels")
        rig.api("PATCH", f"/api/sessions/{older}", {"pinned": True})
        await one.until(lambda: one.app.sessions[older].pinned, "what another client changed")
        assert next(iter(one.app.recent_sessions())).pinned
        await command(one, "/archive")
        await one.until(lambda: one.app.sessions[session].archived, "the archive")
        assert session not in [view.id for view in one.app.recent_sessions()]
        await command(one, "/archive")
        await one.until(lambda: not one.app.sessions[session].archived, "its return")
        await command(one, "/rename")
        await one.reads("which title?")
        rig.api("PATCH", f"/api/sessions/{older}", {"pinned": False})  # the next test looks at the first row


async def test_a_session_is_exported_and_erased(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    async with person(rig) as one:
        session = await one.say("to be taken out")
        await one.idle()
        screen = await opened(one)
        await one.until(lambda: screen._chosen() == session, "the session")
        await one.press("ctrl+e")
        await one.until(lambda: any(tmp_path.iterdir()), "the file")
        await one.until(lambda: zipfile.is_zipfile(tmp_path / f"{session}.zip"), "all of it")
        await one.press("ctrl+d")
        await one.press("n")
        assert rig.messages(session)
        await one.press("ctrl+d")
        await one.confirm()
        await one.until(lambda: session not in one.app.sessions, "its end")
        assert one.app.follower is None
    assert session not in {row["id"] for row in rig.api("GET", "/api/sessions")["sessions"]}
    assert os.listdir(tmp_path) == [f"{session}.zip"]
