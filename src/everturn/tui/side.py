"""The sessions that were touched last, beside the conversation, where there is room for them."""

from __future__ import annotations

import time

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from everturn import api
from everturn.terminal.screen import prose
from everturn.tui.base import host
from everturn.tui.words.around import AroundWords, words

WIDE = 120  # columns from which on it is there by itself
SIDE_WIDTH = 32
MOST = 40  # sessions


def ago(then: float, now: float, said: AroundWords) -> str:
    """How long it has been, in a word."""
    minutes = max(0, int(now - then)) // 60
    if minutes < 1:
        return said.now
    if minutes < 60:
        return said.minutes.format(n=minutes)
    return said.hours.format(n=minutes // 60) if minutes < 24 * 60 else said.days.format(n=minutes // (24 * 60))


def sign_of(view: api.SessionView, waiting: set[str]) -> str:
    """How it is: a question, at work, stuck, or at rest."""
    if view.id in waiting:
        return "?"
    return "!" if view.stuck else "●" if view.is_awake else "○"


class Side(Vertical):
    """A list to choose from. `wanted` is what a person said of it; None: they said nothing."""

    DEFAULT_CSS = """
    Side { width: 32; background: $surface; display: none; }
    Side Static { padding: 0 1; color: $primary; text-style: bold; height: 1; }
    Side OptionList { background: $surface; border: none; height: 1fr; padding: 0 1; }
    Side OptionList > .option-list--option-highlighted { background: $panel; color: $foreground; text-style: none; }
    """

    def __init__(self) -> None:
        super().__init__(id="side")
        self.wanted: bool | None = None
        self._shown: list[tuple[str, str, str]] = []

    def compose(self) -> ComposeResult:
        """A title, and the list."""
        yield Static(Content(words(host(self).language).sessions), markup=False)
        yield OptionList(markup=False)

    def say_anew(self) -> None:
        """The language is another one."""
        self.query_one(Static).update(Content(words(host(self).language).sessions))
        self._shown = []

    def fit(self, width: int) -> None:
        """Be there or not, as there is room, or as somebody wants it."""
        self.display = width >= WIDE if self.wanted is None else self.wanted and width >= 2 * SIDE_WIDTH

    def toggle(self, width: int) -> None:
        """Be there, or not."""
        self.wanted = not self.display
        self.fit(width)

    def put(self, sessions: list[api.SessionView], shown: str, shown_title: str = "") -> None:
        """Show these; the list is drawn anew only when something in it is different.

        What is `shown` is called here as it is above the conversation, also before the list has heard of its title.
        """
        app = host(self)
        said, waiting = words(app.language), {one.session for one in app.waits}
        rows: list[tuple[str, str, str]] = []
        for view in sessions[:MOST]:
            mark = "▸" if view.id == shown else sign_of(view, waiting)
            title = prose(view.title or (shown_title if view.id == shown else "")) or said.untitled
            rows.append((view.id, f"{mark} {title}", ago(view.touched, time.time(), said)))
        if rows == self._shown:
            return
        self._shown = rows
        listed = self.query_one(OptionList)
        at = listed.highlighted
        listed.clear_options()
        for session, title, when in rows:
            room = SIDE_WIDTH - 5 - len(when)
            line = Content(title).truncate(room, ellipsis=True)
            gap = " " * max(1, room + 1 - line.cell_length)
            listed.add_option(Option(Content.assemble(line, gap, (when, "dim")), session))
        if at is not None and rows:
            listed.highlighted = min(at, len(rows) - 1)

    @on(OptionList.OptionSelected)
    async def _chosen(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        await host(self).open_session(event.option.id or "")
