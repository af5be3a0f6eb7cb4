"""Sidebar: the sessions used last, beside the conversation, if the terminal is wide enough."""

from __future__ import annotations

import time

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from everturn import api
from everturn.terminal.text.screen import display_width, escape_prose
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.texts.screens import ScreenTexts, get_screen_texts

WIDE = 120  # columns from which on the sidebar is shown by default
SIDE_WIDTH = 32
MAX_SESSIONS = 40  # sessions


def format_age(then: float, now: float, texts: ScreenTexts) -> str:
    """Return how long ago a time was, short."""
    minutes = max(0, int(now - then)) // 60
    if minutes < 1:
        return texts.now
    if minutes < 60:
        return texts.minutes.format(n=minutes)
    return texts.hours.format(n=minutes // 60) if minutes < 24 * 60 else texts.days.format(n=minutes // (24 * 60))


def status_sign(view: api.SessionView, waiting: set[str]) -> str:
    """Return the status sign of a session: open gate, quarantined, running, pinned, or idle."""
    if view.id in waiting:
        return "?"
    return "!" if view.quarantined else "●" if view.is_awake else "^" if view.pinned else "○"


class Sidebar(Vertical):
    """A list of sessions. `wanted` is the person's choice to show it; None: no choice."""

    DEFAULT_CSS = """
    Sidebar { width: 32; background: $surface; display: none; }
    Sidebar Static { padding: 0 1; color: $primary; text-style: bold; height: 1; }
    Sidebar OptionList { background: $surface; border: none; height: 1fr; padding: 0 1; }
    Sidebar OptionList > .option-list--option-highlighted { background: $panel; color: $foreground; text-style: none; }
    """

    def __init__(self) -> None:
        super().__init__(id="side")
        self.wanted: bool | None = None
        self._shown: list[tuple[str, str, str]] = []

    def compose(self) -> ComposeResult:
        """A title, and the list."""
        yield Static(Content(get_screen_texts(get_host(self).language).sessions), markup=False)
        yield OptionList(markup=False)

    def refresh_texts(self) -> None:
        """Draw the texts again after a change of the language."""
        self.query_one(Static).update(Content(get_screen_texts(get_host(self).language).sessions))
        self._shown = []

    def fit(self, width: int) -> None:
        """Show or hide the sidebar, by the person's choice and the width."""
        self.display = width >= WIDE if self.wanted is None else self.wanted and width >= 2 * SIDE_WIDTH

    def toggle(self, width: int) -> None:
        """Show or hide the sidebar."""
        self.wanted = not self.display
        self.fit(width)

    def put(self, sessions: list[api.SessionView], shown: str, shown_title: str = "") -> None:
        """Show these sessions; the list is redrawn only if it changed.

        The session that is `shown` has the same title here as above the conversation, also before the list knows its
        title.
        """
        app = get_host(self)
        texts, waiting = get_screen_texts(app.language), {gate_view.session for gate_view in app.inbox_gates}
        rows: list[tuple[str, str, str]] = []
        for view in sessions[:MAX_SESSIONS]:
            mark = "▸" if view.id == shown else status_sign(view, waiting)
            title = escape_prose(view.title or (shown_title if view.id == shown else "")) or texts.untitled
            rows.append((view.id, f"{mark} {title}", format_age(view.updated, time.time(), texts)))
        if rows == self._shown:
            return
        self._shown = rows
        listed = self.query_one(OptionList)
        index = listed.highlighted
        listed.clear_options()
        for session, title, when in rows:
            listed.add_option(Option(session_line(title, when), session))
        if index is not None and rows:
            listed.highlighted = min(index, len(rows) - 1)

    @on(OptionList.OptionSelected)
    async def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        await get_host(self).open_session(event.option.id or "")


def session_line(title: str, when: str) -> Content:
    """Return a title, truncated to what is left of the line, and the time at its end."""
    room = SIDE_WIDTH - 5 - display_width(when)
    line = Content(title).truncate(room, ellipsis=True)
    gap = " " * max(1, room + 1 - line.cell_length)
    return Content.assemble(line, gap, (when, "$text-muted"))
