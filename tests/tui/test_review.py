"""A result is read by a person first, in the terminal: sent, with something taken out, written differently, or withheld."""

from __future__ import annotations

import pytest
from textual.widgets.text_area import Selection

from everturn.terminal.tui.gates.dialog import GateScreen
from everturn.terminal.tui.gates.keys import KeyBar
from everturn.terminal.tui.gates.panels import DenyPanel
from everturn.terminal.tui.gates.review import RewritePanel
from everturn.terminal.tui.gates.text_view import TextView
from tests.helpers.gate_screen_app import Desk, at
from tests.helpers.scripted_server.server import Rig
from tests.helpers.scripted_server.tools import SECRET

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


async def review(desk: Desk) -> tuple[str, GateScreen, TextView]:
    session, screen = await desk.asked("review")
    assert screen.review is not None
    return session, screen, screen.review.text_view


async def test_what_is_selected_is_taken_out_before_the_model_reads_it(rig: Rig) -> None:
    async with at(rig) as desk:
        session, screen, page = await review(desk)
        assert SECRET in desk.text
        await desk.press("r")
        assert "Select something first" in desk.line
        await desk.press("down", *["right"] * 10, "shift+end")  # behind `password: `
        await desk.press("r")
        await desk.until(lambda: "password: [redacted]" in page.text)
        assert f"{SECRET}x" in page.text
        await desk.press("u")
        await desk.until(lambda: "[redacted]" not in page.text)
        page.selection = Selection((1, 10), (1, 10 + len(SECRET)))
        await desk.press("R")
        await desk.until(lambda: SECRET not in page.text)
        assert ("y", screen.texts.k_send_this) in screen.query_one(KeyBar).keys
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        assert SECRET not in rig.stored_text(session)
        assert "the password is not [redacted]x" in rig.stored_text(session)


@pytest.mark.long  # the story has one, too
async def test_it_is_written_differently_and_shown_again(rig: Rig) -> None:
    async with at(rig) as desk:
        session, screen, _ = await review(desk)
        await desk.press("e")
        await desk.until(lambda: isinstance(screen.panel, RewritePanel) and isinstance(screen.focused, TextView))
        screen.query_one("RewritePanel TextView", TextView).load_text("account: nobody")
        await desk.press("ctrl+s")
        await desk.until(lambda: screen.panel is None and "will read exactly this" in desk.text)
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        assert rig.stored_text(session).endswith("account: nobody")


async def test_it_is_sent_as_it_is_or_withheld(rig: Rig) -> None:
    async with at(rig) as desk:
        session, screen, _ = await review(desk)
        await desk.press("y")
        assert await desk.gone() is True
        await desk.idle(session)
        assert SECRET in rig.stored_text(session)
        session, screen, _ = await review(desk)
        await desk.press("n")
        await desk.until(lambda: isinstance(screen.panel, DenyPanel) and screen.focused is not None)
        await desk.type("private")
        await desk.press("enter")
        assert await desk.gone() is True
        await desk.idle(session)
        assert SECRET not in rig.stored_text(session)
        assert "private" in rig.stored_text(session)
