"""Memory, in the terminal: what is kept of a person is read, written, marked and deleted there."""

from __future__ import annotations

import pytest

from everturn.errors import UnknownFile
from everturn.terminal.tui.gates.keys import KeyBar
from everturn.terminal.tui.gates.table import RowTable
from everturn.terminal.tui.memory import MemoryEditor, MemoryScreen
from tests.helpers.gate_screen_app import Desk, at
from tests.helpers.scripted_server.server import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]


async def shown(desk: Desk) -> MemoryScreen:
    screen = MemoryScreen()
    desk.app.push_screen(screen)
    await desk.until(lambda: screen.is_mounted and screen.files is not None)
    return screen


async def test_files_are_created_edited_and_deleted(rig: Rig) -> None:
    async with at(rig, (100, 30), user="owner") as desk:
        screen = await shown(desk)
        await desk.until(lambda: "Memory is empty." in desk.text)
        await desk.press("n")
        await desk.until(lambda: isinstance(desk.app.screen, MemoryEditor) and desk.app.screen.is_mounted)
        await desk.type("likes.md\ntea, no sugar")
        await desk.press("ctrl+s")
        await desk.until(lambda: "likes.md was saved" in desk.app.told)
        await desk.until(lambda: "tea, no sugar" in desk.text)
        assert "13 of 1,048,576 bytes" in desk.text
        await desk.press("e")
        await desk.until(lambda: isinstance(desk.app.screen, MemoryEditor) and desk.app.screen.is_mounted)
        await desk.app.server.write_memory("likes.md", "changed elsewhere", untrusted=True)
        await desk.type("x")
        await desk.press("ctrl+s")
        await desk.until(lambda: any("changed since" in text for text in desk.app.told))
        await desk.press("escape")
        await desk.until(lambda: "changed elsewhere" in desk.text and "untrusted" in desk.text)
        await desk.press("t")
        await desk.until(lambda: screen.file is not None and not screen.file.file.untrusted)
        await desk.press("y")
        assert screen.query_one(RowTable).names == ["likes.md"], "not by one key"
        await desk.press("d")
        await desk.until(lambda: "Delete likes.md?" in desk.text)
        await desk.press("escape")
        await desk.until(lambda: "Delete likes.md?" not in desk.text)
        await desk.press("d", "y")
        await desk.until(lambda: "likes.md was deleted" in desk.app.told)
        await desk.until(lambda: "Memory is empty." in desk.text)
        assert [key for key, _ in screen.query_one(KeyBar).keys] == ["n", "escape"]
        await desk.press("escape")
        await desk.until(lambda: desk.app.screen is not screen)


async def test_the_files_of_another_user_are_not_there(rig: Rig) -> None:
    async with at(rig, user="owner") as desk:
        await desk.app.server.write_memory("mine.md", "\x41\u202e of the owner")
        screen = await shown(desk)
        await desk.until(lambda: screen.file is not None)
        assert "\u202e" not in desk.text
    async with at(rig, user="member", language="zh") as desk:
        await shown(desk)
        await desk.until(lambda: "记忆为空" in desk.text)
        with pytest.raises(UnknownFile):
            await desk.app.server.read_memory("mine.md")
