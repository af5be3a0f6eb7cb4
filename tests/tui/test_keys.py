"""Keys as they are shown: what is worth knowing, whole, and to be clicked."""

from __future__ import annotations

import pytest
from rich.cells import cell_len
from textual import events
from textual.app import App, ComposeResult

from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.texts import screens
from everturn.terminal.tui.texts.app import EN, ZH


class Alone(App[None]):
    """Hints, and what was pressed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.heard: list[str] = []

    def compose(self) -> ComposeResult:
        yield KeyHints(self._text)

    def on_key(self, event: events.Key) -> None:
        self.heard.append(event.key)


def lines(app: Alone) -> list[str]:
    return str(app.query_one(KeyHints).content).splitlines()


async def test_a_key_and_what_it_does_stay_on_one_line() -> None:
    app = Alone(screens.EN.branch_keys)
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        assert len(lines(app)) > 2
        assert [hint for line in lines(app) for hint in line.split(" · ")] == screens.EN.branch_keys.split(" · ")
        assert all(len(line) <= 40 for line in lines(app))
        await pilot.resize_terminal(200, 12)
        await pilot.pause()
        assert lines(app) == [screens.EN.branch_keys]


@pytest.mark.parametrize(
    ("text", "at", "key"),
    [
        ("Enter opens · Ctrl+E exports · Esc closes", 16, "ctrl+e"),
        ("Enter opens · Ctrl+E exports · Esc closes", 1, "enter"),
        ("Enter 打开 · Esc 关闭", 1, "enter"),
        ("a: restore to after it · Esc closes", 0, "a"),
    ],
)
async def test_a_click_is_the_key(text: str, at: int, key: str) -> None:
    app = Alone(text)
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.pause()
        await pilot.click(KeyHints, offset=(at, 0))
        await pilot.pause()
        assert app.heard == [key]


async def test_what_is_no_key_is_only_read() -> None:
    for translation in (EN, ZH):
        app = Alone(translation.welcome)
        async with app.run_test(size=(120, 12)) as pilot:
            await pilot.pause()
            before = str(app.query_one(KeyHints).content).partition("/attach")[0]
            await pilot.click(KeyHints, offset=(cell_len(before) + 1, 0))
            await pilot.pause()
            assert app.heard == []
