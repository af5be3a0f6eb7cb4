"""Inbox screen: the open gates of all sessions, kept up to date."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.dom import DOMNode
from textual.widgets import DataTable, Static

from everturn import api
from everturn.core.canonical_json import encode_canonical, parse_object
from everturn.localization import format_text
from everturn.terminal.text.screen import count_fitting, display_width
from everturn.terminal.text.visible_text import escape_invisible
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.gates.answer_keys import format_time_left
from everturn.terminal.tui.gates.dialog import GateScreen
from everturn.terminal.tui.gates.keys import KeyBar
from everturn.terminal.tui.gates.summary import gate_title
from everturn.terminal.tui.gates.table import Cells, RowTable
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.texts.gates import get_gate_texts as gate_words_in
from everturn.terminal.tui.texts.inbox import get_inbox_texts as words_in

REFRESH_INTERVAL: Final = 0.5  # seconds between two refreshes
TIME_COLUMNS: Final = 30  # columns of the two times, and the gaps
NO_EXPIRY_COLUMNS: Final = 24  # the same while nothing expires
MAX_ARGUMENTS: Final = 200  # characters of the arguments that can fill a line
MAX_PARSED: Final = 200_000  # characters of arguments that are parsed for a line


class InboxScreen(ClosingScreen[None]):
    """Open gates, the oldest first."""

    DEFAULT_CSS = """
    InboxScreen #head { padding: 1 2 0 2; height: auto; text-style: bold; }
    InboxScreen #count { padding: 0 2 1 2; height: auto; color: $text-muted; }
    InboxScreen RowTable { margin: 0 1; }
    InboxScreen KeyBar { padding: 0 2; margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("o", "press('o')", show=False),
        Binding("escape,q", "press('escape')", show=False),
        Binding("j", "move(1)", show=False),
        Binding("k", "move(-1)", show=False),
    ]

    def compose(self) -> ComposeResult:
        """A heading, the list, the keys."""
        self.words = texts = words_in(get_host(self).language)
        yield Static(texts.title, id="head", markup=False)
        yield Static(id="count", markup=False)
        yield RowTable((texts.since, texts.session, texts.what, texts.left))
        yield KeyBar()

    def on_mount(self) -> None:
        """Fill the list, and keep refreshing it."""
        self.query_one(RowTable).focus()
        self.refresh_waits()
        self.set_interval(REFRESH_INTERVAL, self.refresh_waits)

    def on_resize(self) -> None:
        """Draw the rows for the new width."""
        self.call_after_refresh(self.refresh_waits)

    def refresh_waits(self) -> None:
        """Show the gates that are open now."""
        if not self.is_attached:
            return
        texts, gates, table = self.words, get_host(self).inbox_gates, self.query_one(RowTable)
        count = format_text(texts.count, n=len(gates))
        self.query_one("#count", Static).update(Content(count if gates else texts.empty))
        table.display = bool(gates)
        expires = any(gate_view.gate.expires for gate_view in gates)
        columns = self.size.width - (TIME_COLUMNS if expires else NO_EXPIRY_COLUMNS)
        widths = column_widths([self._title(gate_view) for gate_view in gates], columns)
        table.fill({gate_view.gate.id: self._cells(gate_view, widths) for gate_view in gates})
        answers = [("enter", texts.k_answer), ("o", texts.k_open)] if gates else []
        self.query_one(KeyBar).offer([*answers, ("escape", texts.k_back)])

    def _title(self, gate_view: api.GateView) -> str:
        return escape_invisible(" ".join(gate_view.title.split())) or self.words.untitled

    def _cells(self, gate_view: api.GateView, widths: tuple[int, int]) -> Cells:
        now, gate_texts = time.time(), gate_words_in(get_host(self).language)
        time_left = format_time_left(gate_view.gate.expires - now, gate_texts) if gate_view.gate.expires else ""
        question = gate_title(gate_view.gate, gate_texts)
        if gate_view.gate.kind != "result" and gate_view.gate.arguments not in ("", "{}"):
            question += f"  {summarize_arguments(gate_view.gate.arguments)}"
        return (
            format_time_left(now - gate_view.opened, gate_texts),
            truncate_columns(self._title(gate_view), widths[0]),
            truncate_columns(question, widths[1]),
            time_left,
        )

    @property
    def chosen(self) -> api.GateView | None:
        """The gate that the cursor is on."""
        name = self.query_one(RowTable).chosen
        return next((gate_view for gate_view in get_host(self).inbox_gates if gate_view.gate.id == name), None)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Enter, or a click: open the gate."""
        event.stop()
        self.action_press("enter")

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        table = self.query_one(RowTable)
        table.move_cursor(row=table.cursor_row + by)

    def action_press(self, key: str) -> None:
        """Handle a key, or a click on its hint."""
        gate_view = self.chosen
        if key == "escape":
            self.dismiss()
        elif gate_view is not None and key == "enter":
            self.app.push_screen(GateScreen(gate_view), lambda is_answered: self.refresh_waits())  # pyright: ignore[reportUnknownMemberType]
        elif gate_view is not None and key == "o":
            self.run_worker(self._open(gate_view), exclusive=True)

    async def _open(self, gate_view: api.GateView) -> None:
        await get_host(self).open_session(await root_session(self, gate_view))
        self.dismiss()


async def root_session(screen: DOMNode, gate_view: api.GateView) -> str:
    """Return the root session of a gate: the one that a person started, above its sub-agents."""
    session = gate_view.session
    for _ in range(16):
        info = await get_host(screen).attempt(get_host(screen).server.session(session).info())
        if info is None or not info.parent:
            break
        session = info.parent
    return session


def column_widths(titles: Sequence[str], columns: int) -> tuple[int, int]:
    """Return the columns of the titles and of the questions: titles have at most a third, questions all the rest."""
    room = max(columns // 3, 8)
    widest = max((min(display_width(title), room) for title in titles), default=room)
    return room, max(columns - widest, 8)


def summarize_arguments(text: str) -> str:
    """Return the arguments in one line, the shortest first: `to: ann@example.org · subject: Rain · body: Dear…`."""
    arguments = parse_object(text) if len(text) <= MAX_PARSED else None
    if arguments is None:
        return escape_invisible(text[:MAX_ARGUMENTS])
    values = {
        name: value if isinstance(value, str) else encode_canonical(value) for name, value in arguments.items() if value
    }
    pieces = [
        f"{name}: {value[:MAX_ARGUMENTS]}" for name, value in sorted(values.items(), key=lambda item: len(item[1]))
    ]
    return escape_invisible(" · ".join(" ".join(piece.split("\n")) for piece in pieces))


def truncate_columns(text: str, room: int) -> str:
    """Truncate a text to this many columns; opening the row shows all of it."""
    return text if display_width(text) <= room else text[: count_fitting(text, room - 1)] + "…"
