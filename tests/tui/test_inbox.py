"""All that waits, in all sessions, in the terminal."""

from __future__ import annotations

from typing import Any

import pytest

from everturn import api
from everturn.core.gates import Gate
from everturn.terminal.tui.gates.dialog import GateScreen
from everturn.terminal.tui.gates.table import RowTable
from everturn.terminal.tui.inbox import InboxScreen
from tests.helpers.gate_screen_app import Desk, at, harmless
from tests.helpers.scripted_server.server import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


async def shown(desk: Desk) -> InboxScreen:
    screen = InboxScreen()
    desk.app.push_screen(screen)
    await desk.until(lambda: screen.is_mounted and bool(screen.query(RowTable)))
    return screen


async def test_what_waits_is_listed_opened_and_answered_and_what_is_answered_goes(rig: Rig) -> None:
    async with at(rig) as desk:
        screen = await shown(desk)
        await desk.until(lambda: "Nothing is pending" in desk.text)
        first, second = rig.say("mail: the first")["session"], rig.say("mail: the second")["session"]
        first_gate, two = await desk.gate(first), await desk.gate(second)
        desk.app.inbox_gates = [first_gate, two]
        await desk.until(lambda: "2 pending" in desk.text)
        table = screen.query_one(RowTable)
        assert table.names == [first_gate.gate.id, two.gate.id]
        assert "Allow send_mail?" in desk.text
        assert "Take a coat." in desk.text
        await desk.press("down", "o")
        await desk.until(lambda: desk.app.opened == [second])
        screen = await shown(desk)
        await desk.until(lambda: screen.query_one(RowTable).names)
        await desk.press("enter")
        await desk.until(lambda: isinstance(desk.app.screen, GateScreen) and desk.app.screen.accepts_keys)
        await desk.press("y")
        await desk.until(lambda: isinstance(desk.app.screen, InboxScreen))
        desk.app.inbox_gates = [two]
        await desk.until(lambda: "1 pending," in desk.text)
        await desk.app.server.answer(two, deny=True)


async def test_hostile_titles_are_only_text(rig: Rig) -> None:
    evil = "[/nope] [bold]x[/] \x1b[2J \u202eabc"
    gate: dict[str, Any] = {"turn": "t", "call": "c", "arguments": "{}", "hash": "h"}
    async with at(rig, (80, 24)) as desk:
        desk.app.inbox_gates = [api.GateView(session="s", title=evil, opened=0.0, gate=Gate(id="g", tool=evil, **gate))]
        await shown(desk)
        await desk.until(lambda: "[/nope] [bold]x" in desk.text)
        assert harmless(desk.text.replace("\n", ""))
