"""A result → what a person leaves of it: read, taken out of by selecting, or written differently."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from everturn.core.asking import Gate
from everturn.terminal.exact import hidden
from everturn.tui.gates.keys import Key
from everturn.tui.gates.page import Page
from everturn.tui.gates.panels import Panel
from everturn.tui.gates.redaction import Redaction, Sheet
from everturn.tui.words.gates import GateWords


class Review(Vertical):
    """What the model would read, on a page where it can be selected."""

    DEFAULT_CSS = """
    Review { height: 1fr; min-height: 3; padding: 0 1; }
    Review > Static { height: auto; text-style: bold; }
    """

    class Moved(Message):
        """Something else is on the screen now."""

    def __init__(self, text: str, words: GateWords) -> None:
        super().__init__()
        self.words = words
        self.made = Redaction(text)
        self.is_read = False
        self._sheet: Sheet = self.made.shown()

    def compose(self) -> ComposeResult:
        """A head, and the page."""
        yield Static(self.words.would_read, markup=False)
        yield Page(self._sheet.text, read_only=True, show_line_numbers=False)

    def on_mount(self) -> None:
        """Look where it is read to, whenever it moves."""
        page = self.page
        self.watch(page, "scroll_y", self._look, init=False)
        self.call_after_refresh(self._look)

    def on_resize(self) -> None:
        """It may all fit now."""
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        if self.page.size.height and self.page.is_at_end:
            self.is_read = True
        self.post_message(self.Moved())

    @property
    def page(self) -> Page:
        """Where the text is."""
        return self.query_one(Page)

    @property
    def below(self) -> int:
        """Lines below what is on the screen."""
        return max(0, round(self.page.max_scroll_y - self.page.scroll_offset.y))

    @property
    def wanted(self) -> int:
        """How many lines it needs: a head, and the text."""
        return 1 + max(self.page.wrapped_document.height, 2)

    @property
    def text(self) -> str | None:
        """What is left of it; None: all."""
        return None if self.made.text == self.made.left else self.made.left

    def take_out(self, is_everywhere: bool) -> bool:
        """Take out what is selected; False: nothing is."""
        start, end = self._sheet.source(*self.page.chosen)
        if start == end:
            return False
        made = self.made
        self._show(made.without_all(made.text[start:end]) if is_everywhere else made.without(start, end))
        return True

    def undo(self) -> None:
        """As it was before."""
        self._show(self.made.undone())

    def write(self, text: str) -> None:
        """Put another text in its place; it can be undone."""
        self._show(Redaction(text, before=self.made))

    def _show(self, made: Redaction) -> None:
        page = self.page
        row, column = min(page.selection)
        self.made, self._sheet = made, made.shown()
        page.load_text(self._sheet.text)
        row = min(row, page.document.line_count - 1)
        page.move_cursor((row, min(column, len(page.document.get_line(row)))))
        is_changed = made.before is not None
        self.query_one(Static).update(self.words.will_read if is_changed else self.words.would_read)
        self.post_message(self.Moved())


class RewritePanel(Panel):
    """The result, to be written differently. What could not be seen is written out, and stays so."""

    DEFAULT_CSS = "RewritePanel { height: 1fr; } RewritePanel Page { height: 1fr; }"
    IS_TALL = True
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "press('ctrl+s')", show=False, priority=True)]

    class Written(Message):
        """What the model is to read instead."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, gate: Gate, words: GateWords, made: Redaction) -> None:
        super().__init__(gate, words)
        self._made = made

    def compose(self) -> ComposeResult:
        """A page to write on."""
        yield Static(self.words.edit_result, classes="panel-title", markup=False)
        if hidden(self._made.left):
            yield Static(f"! {self.words.written_out}", markup=False)
        yield Page(self._made.shown().text)

    def begin(self) -> None:
        """Type at once."""
        self.query_one(Page).focus()

    @property
    def keys(self) -> list[Key]:
        """Ctrl-S shows it again."""
        return [("ctrl+s", self.words.k_show), ("escape", self.words.k_back)]

    def action_press(self, key: str) -> None:
        """A key of this panel."""
        self.press(key)

    def press(self, key: str) -> None:
        """Done."""
        if key == "ctrl+s":
            text = self.query_one(Page).text
            if text == self._made.shown().text:
                self.post_message(self.Wrong(self.words.unchanged))
            else:
                self.post_message(self.Written(text))
