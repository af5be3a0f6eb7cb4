"""What was used, by day and agent."""

from __future__ import annotations

import time
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from everturn import api
from everturn.core.options import Spent
from everturn.terminal.answer import dollars
from everturn.terminal.screen import columns, prose
from everturn.tui.base import host
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.keys import Hints
from everturn.tui.words.around import AroundWords, words

DAYS = 30
DAY = 86_400.0  # seconds
NARROW, WIDE = 10, 24  # columns of a number, and the most of a name


def _pad(text: str, width: int, is_right: bool = False) -> str:
    """A text in a column; wide characters count twice."""
    gap = " " * max(0, width - columns(text))
    return gap + text if is_right else text + gap


def _numbers(spent: Spent) -> list[str]:
    usage = spent.usage
    cost = "" if usage.cost is None else dollars(usage.cost)
    return [f"{usage.input:,}", f"{usage.output:,}", f"{spent.calls:,}", cost]


def table(view: api.UsageView, said: AroundWords) -> Content:
    """All of it, in columns: the last day first, and the sum below."""
    days = sorted(view.days, key=lambda one: (one.day, one.agent), reverse=True)
    rows = [[one.day, prose(one.agent), *_numbers(one.spent)] for one in days]
    head = [said.day, said.agent, said.tokens_in, said.tokens_out, said.calls, said.cost]
    rows = [head, *rows, [said.total, "", *_numbers(view.total)]]
    widths = [min(WIDE, max(columns(row[at]) for row in rows)) for at in range(len(head))]
    lines = ["  ".join(_pad(cell, widths[at], at > 1) for at, cell in enumerate(row)) for row in rows]
    styles = ["bold $primary", *[""] * len(days), "bold"]
    return Content("\n").join(Content.styled(line, style) for line, style in zip(lines, styles, strict=True))


class UsageScreen(ClosingScreen[None], ModalScreen[None]):
    """The last thirty days."""

    DEFAULT_CSS = """
    UsageScreen { align: center middle; }
    UsageScreen ScrollableContainer { height: auto; max-height: 100%; }
    UsageScreen #table { width: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss(None)", "close")]

    def compose(self) -> ComposeResult:
        """A title and a table."""
        said = words(host(self).language)
        with Vertical(classes="pane"):
            yield Static(Content(said.usage), classes="title", markup=False)
            with ScrollableContainer():
                yield Static(Content("…"), id="table", markup=False)
            yield Hints(said.usage_keys)

    async def on_mount(self) -> None:
        """Ask for it."""
        said, app = words(host(self).language), host(self)
        view = await app.attempt(app.server.usage(time.time() - DAYS * DAY))
        if view is not None:
            shown = table(view, said) if view.days else Content(said.no_usage)
            self.query_one("#table", Static).update(shown)
