"""Usage screen: tokens, calls and costs, by day and agent."""

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
from everturn.terminal.lines.turn_view import format_cost
from everturn.terminal.text.screen import display_width, escape_prose
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.folder import agent_label
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.texts.screens import ScreenTexts, get_screen_texts

DAYS = 30
DAY = 86_400.0  # seconds
NO_AGENT = "–"  # of sub-agents that are tools, and of requests outside of turns
MIN_NAME = 4  # columns of a name that is truncated
NARROW, WIDE = 10, 24  # columns of a number, and the maximum of a name


def _pad(text: str, width: int, is_right: bool = False) -> str:
    """Pad a text to a column; wide characters count twice."""
    gap = " " * max(0, width - display_width(text))
    return gap + text if is_right else text + gap


def _numbers(spent: Spent) -> list[str]:
    usage = spent.usage
    cost = "" if usage.cost is None else format_cost(usage.cost)
    return [f"{usage.input:,}", f"{usage.output:,}", f"{spent.calls:,}", cost]


def usage_table(view: api.UsageView, agents: api.AgentList, texts: ScreenTexts, width: int = 0) -> Content:
    """Return the usage as a table: the last day first, and the total at the end.

    In a narrow screen the names of agents are truncated: a number without its last digits would be another number.
    """
    days = sorted(view.days, key=lambda day_usage: (day_usage.day, day_usage.agent), reverse=True)
    rows = [
        [day_usage.day, escape_prose(agent_label(agents, day_usage.agent)) or NO_AGENT, *_numbers(day_usage.spent)]
        for day_usage in days
    ]
    head = [texts.day, texts.agent, texts.tokens_in, texts.tokens_out, texts.calls, texts.cost]
    rows = [head, *rows, [texts.total, "", *_numbers(view.total)]]
    widths = [min(WIDE, max(display_width(row[column]) for row in rows)) for column in range(len(head))]
    gap = "  " if not width or sum(widths) + 2 * len(widths) - 2 <= width else " "
    excess = sum(widths) + len(gap) * (len(widths) - 1) - width if width else 0
    if excess > 0:
        widths[1] = max(widths[1] - excess, MIN_NAME)
    for row in rows:
        row[1] = Content(row[1]).truncate(widths[1], ellipsis=True).plain
    lines = [gap.join(_pad(cell, widths[column], column > 1) for column, cell in enumerate(row)) for row in rows]
    styles = ["bold $primary", *[""] * len(days), "bold"]
    return Content("\n").join(Content.styled(line, style) for line, style in zip(lines, styles, strict=True))


class UsageScreen(ClosingScreen[None], ModalScreen[None]):
    """The usage of the last thirty days."""

    DEFAULT_CSS = """
    UsageScreen { align: center middle; }
    UsageScreen ScrollableContainer { height: auto; max-height: 100%; }
    UsageScreen #table { width: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss(None)", "close")]

    def compose(self) -> ComposeResult:
        """A title and a table."""
        texts = get_screen_texts(get_host(self).language)
        with Vertical(classes="pane"):
            yield Static(Content(texts.usage), classes="title", markup=False)
            with ScrollableContainer():
                yield Static(Content("…"), id="table", markup=False)
            yield KeyHints(texts.usage_keys)

    async def on_mount(self) -> None:
        """Request the usage."""
        texts, app = get_screen_texts(get_host(self).language), get_host(self)
        view = await app.attempt(app.server.usage(time.time() - DAYS * DAY))
        if view is not None:
            room = self.query_one(ScrollableContainer).size.width
            shown = usage_table(view, app.agents, texts, room) if view.days else Content(texts.no_usage)
            self.query_one("#table", Static).update(shown)
