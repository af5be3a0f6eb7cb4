"""Rules, tools, remembered answers and explanations, in the terminal."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from everturn.core.tenants.accounts import Role
from everturn.terminal.tui.gates.scroll import ScrolledRows
from everturn.terminal.tui.gates.table import RowTable
from everturn.terminal.tui.permissions import PermissionsScreen
from tests.helpers.gate_screen_app import Desk, at
from tests.helpers.scripted_server.server import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


async def shown(desk: Desk) -> PermissionsScreen:
    screen = PermissionsScreen()
    desk.app.push_screen(screen)
    await desk.until(lambda: screen.is_mounted and screen.rules is not None)
    return screen


async def test_rules_tools_and_explanations_are_shown(rig: Rig) -> None:
    async with at(rig, (110, 36)) as desk:
        screen = await shown(desk)
        await desk.until(lambda: 'path = "private/**"' in desk.text)
        await desk.press("2")
        await desk.until(lambda: "always denied" in desk.text)
        assert "send_mail" in screen.query_one("#about", ScrolledRows).text
        await desk.press("4")
        await desk.until(lambda: isinstance(screen.focused, Input))
        await desk.press("enter")
        await desk.until(lambda: "Which tool?" in desk.text)
        await desk.type("read_file")
        screen.query_one("#arguments", Input).value = '{"path": "private/x"}'
        await desk.press("enter")
        await desk.until(lambda: "is denied" in desk.text)
        assert "decided by" in desk.text
        screen.query_one("#arguments", Input).value = "{"
        await desk.press("enter")
        await desk.until(lambda: "JSON object" in desk.text)


async def test_a_remembered_answer_is_revoked_after_a_second_key(rig: Rig) -> None:
    async with at(rig, (110, 36)) as desk:
        session = rig.say('call run {"command": "git blame x"}')["session"]
        view = await desk.gate(session)
        await desk.app.server.answer(view, allow=view.gate.offers[0])
        await desk.idle(session)
        screen = await shown(desk)
        await desk.press("3")
        await desk.until(lambda: "git blame x" in desk.text)
        table = screen.query_one(RowTable)
        table.move_cursor(row=table.names.index(view.gate.id))
        await desk.press("y")
        assert view.gate.id in table.names, "not without being asked"
        await desk.press("x")
        await desk.until(lambda: "Revoke it?" in desk.text)
        await desk.press("y")
        await desk.until(lambda: view.gate.id not in table.names)
        assert "git blame x" in desk.app.told[-1]
        left = [grant.grant.id for grant in await desk.app.server.grants()]
        assert view.gate.id not in left


@pytest.mark.parametrize("role", ["viewer", "owner"])
async def test_what_a_role_may_not_see_is_said_in_one_line(rig: Rig, role: Role) -> None:
    async with at(rig, user=role) as desk:
        screen = PermissionsScreen()
        desk.app.push_screen(screen)
        await desk.until(lambda: screen.is_mounted and (screen.rules is not None or screen.problem))
        assert "\n" not in screen.problem
