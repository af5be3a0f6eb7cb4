"""Review of a result: a person reads it, cuts selected text from it, or rewrites it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Static

from everturn.core.gates import Gate
from everturn.terminal.text.visible_text import count_invisible
from everturn.terminal.tui.gates.keys import Key
from everturn.terminal.tui.gates.panels import Panel
from everturn.terminal.tui.gates.redaction import RedactedText, Redaction
from everturn.terminal.tui.gates.text_view import TextView
from everturn.terminal.tui.texts.gates import GateTexts


class Review(Vertical):
    """What the model would read, in a text view with a selection."""

    DEFAULT_CSS = """
    Review { height: 1fr; min-height: 3; padding: 0 1; }
    Review > Static { height: auto; text-style: bold; }
    """

    class Scrolled(Message):
        """The text was scrolled or has changed."""

    def __init__(self, text: str, texts: GateTexts) -> None:
        super().__init__()
        self.texts = texts
        self.made = Redaction(text)
        self.is_read = False
        self._displayed: RedactedText = self.made.for_screen()

    def compose(self) -> ComposeResult:
        """A heading, and the text."""
        yield Static(self.texts.would_read, markup=False)
        yield TextView(self._displayed.text, read_only=True, show_line_numbers=False)

    def on_mount(self) -> None:
        """Track how far the text was read, whenever it scrolls."""
        page = self.text_view
        self.watch(page, "scroll_y", self._look, init=False)
        self.call_after_refresh(self._look)

    def on_resize(self) -> None:
        """Check again: all of it may fit now."""
        self.call_after_refresh(self._look)

    def _look(self) -> None:
        if self.text_view.size.height and self.text_view.is_at_end:
            self.is_read = True
        self.post_message(self.Scrolled())

    @property
    def text_view(self) -> TextView:
        """The text view."""
        return self.query_one(TextView)

    @property
    def below(self) -> int:
        """The number of lines below the screen."""
        return max(0, round(self.text_view.max_scroll_y - self.text_view.scroll_offset.y))

    @property
    def wanted_height(self) -> int:
        """The number of lines that it needs: a heading, and the text."""
        return 1 + max(self.text_view.wrapped_document.height, 2)

    @property
    def text(self) -> str | None:
        """The redacted text; None if nothing was changed."""
        return None if self.made.text == self.made.remaining else self.made.remaining

    def cut_selection(self, is_everywhere: bool) -> bool:
        """Cut the selected text; False if nothing is selected."""
        start, end = self._displayed.source(*self.text_view.chosen)
        if start == end:
            return False
        redaction = self.made
        self._show(redaction.cut_all(redaction.text[start:end]) if is_everywhere else redaction.cut_range(start, end))
        return True

    def undo(self) -> None:
        """Undo the last change."""
        self._show(self.made.previous())

    def write(self, text: str) -> None:
        """Replace the text; it can be undone."""
        self._show(Redaction(text, before=self.made))

    def _show(self, redaction: Redaction) -> None:
        page = self.text_view
        row, column = min(page.selection)
        self.made, self._displayed = redaction, redaction.for_screen()
        page.load_text(self._displayed.text)
        row = min(row, page.document.line_count - 1)
        page.move_cursor((row, min(column, len(page.document.get_line(row)))))
        is_changed = redaction.before is not None
        self.query_one(Static).update(self.texts.will_read if is_changed else self.texts.would_read)
        self.post_message(self.Scrolled())


class RewritePanel(Panel):
    """Editor for the result. Invisible characters are escaped in it, and stay escaped."""

    DEFAULT_CSS = "RewritePanel { height: 1fr; } RewritePanel TextView { height: 1fr; }"
    IS_TALL = True
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "press('ctrl+s')", show=False, priority=True)]

    class Written(Message):
        """The text that the model reads instead."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, gate: Gate, texts: GateTexts, redaction: Redaction) -> None:
        super().__init__(gate, texts)
        self._redaction = redaction

    def compose(self) -> ComposeResult:
        """A text area."""
        yield Static(self.texts.edit_result, classes="panel-title", markup=False)
        if count_invisible(self._redaction.remaining):
            yield Static(f"! {self.texts.written_out}", markup=False)
        yield TextView(self._redaction.for_screen().text)

    def begin(self) -> None:
        """Focus the text area."""
        self.query_one(TextView).focus()

    @property
    def keys(self) -> list[Key]:
        """Ctrl-S shows the result again."""
        return [("ctrl+s", self.texts.k_show), ("escape", self.texts.k_back)]

    def action_press(self, key: str) -> None:
        """Handle a key of this panel."""
        self.press(key)

    def press(self, key: str) -> None:
        """Finish."""
        if key == "ctrl+s":
            text = self.query_one(TextView).text
            if text == self._redaction.for_screen().text:
                self.post_message(self.Wrong(self.texts.unchanged))
            else:
                self.post_message(self.Written(text))
