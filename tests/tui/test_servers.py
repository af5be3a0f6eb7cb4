"""The MCP servers, in the terminal: how they are, exactly what is trusted, and that nothing is by one key."""

from __future__ import annotations

import pytest

from everturn import api
from everturn.terminal.tui.gates.keys import KeyBar
from everturn.terminal.tui.gates.rows import rows_text
from everturn.terminal.tui.gates.table import RowTable
from everturn.terminal.tui.mcp_servers import ServersScreen, server_rows
from everturn.terminal.tui.texts.mcp_servers import EN
from tests.helpers.gate_screen_app import Desk, at, harmless
from tests.helpers.scripted_server.server import Rig


async def shown(desk: Desk) -> ServersScreen:
    screen = ServersScreen()
    desk.app.push_screen(screen)
    await desk.until(lambda: screen.is_mounted and screen.servers is not None and screen.query_one(RowTable).names)
    return screen


@pytest.mark.live
@pytest.mark.timeout(300)
async def test_a_server_is_trusted_as_it_was_shown(rig: Rig) -> None:
    async with at(rig, (110, 36)) as desk:
        screen = await shown(desk)
        table = screen.query_one(RowTable)
        table.move_cursor(row=table.names.index("garden"))
        await desk.until(lambda: screen.chosen is not None and screen.chosen.name == "garden")
        view = screen.chosen
        assert view is not None
        if view.state == "untrusted":
            await desk.until(lambda: view.hash[:20] in desk.text)
            assert view.runs in desk.text
            await desk.press("y")
            assert screen.chosen is not None
            assert screen.chosen.state == "untrusted", "not by one key"
            await desk.press("t")
            await desk.until(lambda: "Trust garden as it is shown?" in desk.text)
            await desk.press("escape")
            await desk.until(lambda: "Trust garden" not in desk.text)
            await desk.press("t", "y")
            await desk.until(lambda: desk.app.told)
        await desk.until(lambda: screen.chosen is not None and screen.chosen.state == "ready")
        table.move_cursor(row=table.names.index("missing"))
        await desk.until(lambda: screen.chosen is not None and screen.chosen.name == "missing")
        assert "r" in dict(screen.query_one(KeyBar).keys)


@pytest.mark.live
@pytest.mark.timeout(300)
async def test_whoever_does_not_operate_it_can_only_look(rig: Rig) -> None:
    async with at(rig, user="owner") as desk:
        screen = await shown(desk)
        assert [key for key, _ in screen.query_one(KeyBar).keys] == ["escape"]
        await desk.press("t", "y", "r")
        assert not desk.app.told


def test_what_a_server_says_of_itself_is_only_text() -> None:
    evil = "[/nope]\x1b[2J\u202eabc"
    tool = api.McpToolView(name=evil, description=evil, is_changed=True)
    view = api.McpView(
        name=evil, transport="stdio", state="failed", since=0.0, title=evil, tools=[tool], reason=evil, problems=[evil],
        runs=evil, variables=[evil], changes=[evil], hash="h" * 64, login_problem=evil,
    )  # fmt: skip
    text = rows_text(server_rows(view, EN, 60))
    assert harmless(text.replace("\n", ""))
    assert "[/nope]" in text
    assert "h" * 64 in text.replace("\n", "").replace(" ", "")
    assert "new or changed" in text
