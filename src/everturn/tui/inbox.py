"""All that waits for somebody, in all sessions → a list that is always up to date, and a way to each question."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import DataTable, Static

from everturn import api
from everturn.terminal.exact import seen
from everturn.terminal.screen import columns, fitting
from everturn.tui.base import host
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.gates.asked import title_of
from everturn.tui.gates.choosing import lasting
from everturn.tui.gates.dialog import GateScreen
from everturn.tui.gates.keys import Keys
from everturn.tui.gates.table import Cells, Table
from everturn.tui.words.gates import words as gate_words_in
from everturn.tui.words.inbox import words as words_in

LOOK: Final = 0.5  # seconds between two looks
TIMES: Final = 30  # columns for the two times, and what is between
MOST: Final = 200  # characters of what is asked that could stand on a line


class InboxScreen(ClosingScreen[None]):
    """What waits, the oldest first."""

    DEFAULT_CSS = """
    InboxScreen #head { padding: 1 2 0 2; height: auto; text-style: bold; }
    InboxScreen #count { padding: 0 2 1 2; height: auto; color: $text-muted; }
    InboxScreen Table { margin: 0 1; }
    InboxScreen Keys { padding: 0 2; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "press('o')", show=False),
        Binding("escape,q", "press('escape')", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]

    def compose(self) -> ComposeResult:
        """A head, the list, the keys."""
        self.words = words = words_in(host(self).language)
        yield Static(words.title, id="head", markup=False)
        yield Static(id="count", markup=False)
        yield Table((words.since, words.session, words.what, words.left))
        yield Keys()

    def on_mount(self) -> None:
        """Fill it, and go on looking."""
        self.query_one(Table).focus()
        self.refresh_waits()
        self.set_interval(LOOK, self.refresh_waits)

    def on_resize(self) -> None:
        """Titles have more room, or less."""
        self.call_after_refresh(self.refresh_waits)

    def refresh_waits(self) -> None:
        """Show what waits now."""
        if not self.is_attached:
            return
        words, waits, table = self.words, host(self).waits, self.query_one(Table)
        count = words.count_one if len(waits) == 1 else words.count_many.format(len(waits))
        self.query_one("#count", Static).update(Content(count if waits else words.empty))
        table.display = bool(waits)
        table.fill({one.gate.id: self._cells(one) for one in waits})
        answers = [("enter", words.k_answer), ("o", words.k_open)] if waits else []
        self.query_one(Keys).offer([*answers, ("escape", words.k_back)])

    def _cells(self, asked: api.GateView) -> Cells:
        now, said = time.time(), gate_words_in(host(self).language)
        room = max((self.size.width - TIMES) // 3, 8)
        title = seen(" ".join(asked.title.split())) or self.words.untitled
        left = lasting(asked.gate.expires - now, said) if asked.gate.expires else ""
        what = title_of(asked.gate, said)
        if asked.gate.kind != "result" and asked.gate.arguments not in ("", "{}"):
            what += f"  {seen(asked.gate.arguments[:MOST])}"
        # A title is short or missing; what is asked has the rest of the line.
        wide = max(self.size.width - TIMES - min(columns(title), room), 8)
        return lasting(now - asked.opened, said), short(title, room), short(what, wide), left

    @property
    def chosen(self) -> api.GateView | None:
        """The question that the cursor is on."""
        name = self.query_one(Table).chosen
        return next((one for one in host(self).waits if one.gate.id == name), None)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter, or a click: read it."""
        event.stop()
        self.action_press("enter")

    def action_move(self, by: int) -> None:
        """Up and down."""
        table = self.query_one(Table)
        table.move_cursor(row=table.cursor_row + by)

    def action_press(self, key: str) -> None:
        """A key, or a click on one."""
        asked = self.chosen
        if key == "escape":
            self.dismiss()
        elif asked is not None and key == "enter":
            self.app.push_screen(GateScreen(asked), lambda is_answered: self.refresh_waits())  # pyright: ignore[reportUnknownMemberType]
        elif asked is not None and key == "o":
            self.run_worker(self._open(asked), exclusive=True)

    async def _open(self, asked: api.GateView) -> None:
        await host(self).open_session(await top_of(self, asked))
        self.dismiss()


async def top_of(screen: DOMNode, asked: api.GateView) -> str:
    """The session that a person began, above the one that asks."""
    session = asked.session
    for _ in range(16):
        info = await host(screen).attempt(host(screen).server.session(session).info())
        if info is None or not info.above:
            break
        session = info.above
    return session


def short(text: str, room: int) -> str:
    """A text in so many columns; in a list it may be cut, for all of it is one key away."""
    return text if columns(text) <= room else text[: fitting(text, room - 1)] + "…"
