"""History search: finds a message that was sent earlier, and puts it into the input."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from everturn.terminal.text.prompt_history import search_history
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.texts.screens import get_screen_texts

MAX_SHOWN = 200  # rows
ROW_LENGTH = 200  # characters of a row


class HistorySearchScreen(ClosingScreen[str], ModalScreen[str]):
    """A search field, and the messages that match, newest first; the result is the text of a message."""

    DEFAULT_CSS = """
    HistorySearchScreen { align: center middle; }
    HistorySearchScreen OptionList > .option-list--option { text-wrap: nowrap; text-overflow: ellipsis; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss('')", "close"),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("ctrl+r", "move(1)", show=False, priority=True),
    ]

    def __init__(self, entries: list[str], words: str = "") -> None:
        super().__init__()
        self._entries, self._words = entries, words
        self._shown: list[str] = []

    def compose(self) -> ComposeResult:
        """The search field, the list, the key hints."""
        texts = get_screen_texts(get_host(self).language)
        with Vertical(classes="pane tall"):
            yield Static(Content(texts.history), classes="title", markup=False)
            yield Input(self._words, placeholder=texts.search_history, classes="search")
            yield OptionList(classes="list", markup=False)
            yield KeyHints(texts.pick_keys)

    def on_mount(self) -> None:
        """List everything."""
        self.query_one(Input).focus()
        self.query_one(OptionList).can_focus = False
        self._list()

    def _list(self) -> None:
        listed = self.query_one(OptionList)
        self._shown = search_history(self._entries, self.query_one(Input).value)[:MAX_SHOWN]
        listed.clear_options()
        listed.add_options(
            [Option(Content(escape_prose(" ".join(entry.split())[:ROW_LENGTH]))) for entry in self._shown]
        )
        if self._shown:
            listed.highlighted = 0

    @on(Input.Changed)
    def _typed(self) -> None:
        self._list()

    def action_move(self, by: int) -> None:
        """Move to the next message, or the one before."""
        listed = self.query_one(OptionList)
        if by > 0:
            listed.action_cursor_down()
        else:
            listed.action_cursor_up()

    @on(Input.Submitted)
    def _entered(self) -> None:
        index = self.query_one(OptionList).highlighted
        self.dismiss(self._shown[index] if index is not None and self._shown else "")

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[event.option_index])
