"""Confirmation dialog: a yes-or-no question before an action that cannot be undone."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.texts.app import get_app_texts


class Confirm(ClosingScreen[bool], ModalScreen[bool]):
    """Yes or no; Esc means no."""

    DEFAULT_CSS = """
    Confirm { align: center middle; }
    Confirm Horizontal { height: auto; margin-top: 1; align-horizontal: right; }
    Confirm Button { margin-left: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "yes"),
        Binding("n,escape", "answer(False)", "no"),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, title: str, text: str) -> None:
        super().__init__()
        self._title, self._text = title, text

    def compose(self) -> ComposeResult:
        """The question, its explanation, and the two answers; No has the focus."""
        texts = get_app_texts(get_host(self).language)
        with Vertical(classes="pane slim"):
            yield Static(Content(escape_prose(self._title)), classes="title", markup=False)
            yield Static(Content(escape_prose(self._text)), markup=False)
            with Horizontal():
                yield Button(Content(f"{texts.no} (n)"), id="no")
                yield Button(Content(f"{texts.yes} (y)"), id="yes", variant="error")

    def on_mount(self) -> None:
        """Focus No, so that a stray key does nothing."""
        self.query_one("#no").focus()

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")

    def action_answer(self, agreed: bool) -> None:
        """Answer."""
        self.dismiss(agreed)
