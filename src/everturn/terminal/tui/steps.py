"""Steps screen: the finished steps of an answer; the conversation continues after one of them, beside the answer."""

from __future__ import annotations

from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static

from everturn.core.forks import forkable_steps
from everturn.core.messages import Message
from everturn.core.parts import StepPart, TextPart, ToolPart
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.texts.screens import get_screen_texts

MAX_SHOWN: Final = 200  # characters of a text that can fill a line


def step_rows(answer: Message) -> list[tuple[int, str]]:
    """Return the finished steps of an answer, each with its calls or the beginning of its text."""
    rows: list[tuple[int, str]] = []
    known, calls, text = set(forkable_steps(answer)), list[str](), ""
    for part in answer.parts:
        if isinstance(part, ToolPart) and not part.parent:
            calls.append(part.name)
        elif isinstance(part, TextPart):
            text = text or " ".join(part.text[:MAX_SHOWN].split())
        elif isinstance(part, StepPart) and part.step in known:
            names = (f"{name} ×{calls.count(name)}" if calls.count(name) > 1 else name for name in dict.fromkeys(calls))
            rows.append((part.step, ", ".join(names) or text))
            calls, text = [], ""
    return rows


class StepsScreen(ClosingScreen[tuple[int, bool]], ModalScreen[tuple[int, bool]]):
    """A list of steps. The result is a step, and whether the model continues at once."""

    DEFAULT_CSS = """
    StepsScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("r", "rerun", "rerun"),
    ]

    def __init__(self, rows: list[tuple[int, str]]) -> None:
        super().__init__()
        self._rows = rows

    def compose(self) -> ComposeResult:
        """The steps, and the key hints."""
        texts = get_screen_texts(get_host(self).language)
        listed = [
            Content.assemble((f"{step:>3}  ", "$primary"), escape_prose(about) or texts.empty)
            for step, about in self._rows
        ]
        with Vertical(classes="pane"):
            yield Static(Content(texts.steps), classes="title", markup=False)
            yield OptionList(*(row.truncate(MAX_SHOWN, ellipsis=True) for row in listed), classes="list", markup=False)
            yield KeyHints(texts.step_keys)

    def on_mount(self) -> None:
        """Highlight the first step."""
        self.query_one(OptionList).focus()
        self.query_one(OptionList).highlighted = 0

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self._choose(is_rerun=False)

    def action_rerun(self) -> None:
        """Let the model continue after the step."""
        self._choose(is_rerun=True)

    def _choose(self, *, is_rerun: bool) -> None:
        index = self.query_one(OptionList).highlighted
        if index is not None:
            self.dismiss((self._rows[index][0], is_rerun))
