"""What steps did to files, and the way back: shown first, asked about, and then done."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from everturn.core.parts import FilesPart
from everturn.terminal.changes import changed, steps_of
from everturn.terminal.screen import prose
from everturn.tui.base import app_of
from everturn.tui.confirming import Confirm
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.following import Follower
from everturn.tui.keys import Hints
from everturn.tui.words.around import AroundWords, words

if TYPE_CHECKING:
    from everturn.tui.app import EverturnApp


class FilesScreen(ClosingScreen[None], ModalScreen[None]):
    """The steps that changed files, of all branches: what was done to a folder is done, whichever answer is selected."""

    DEFAULT_CSS = """
    FilesScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("a", "revert(False)", "after"),
    ]

    def __init__(self, follower: Follower) -> None:
        super().__init__()
        self._follower = follower
        self._steps = steps_of(follower.state.tree.messages.values())

    @property
    def around(self) -> EverturnApp:
        """The app, as it is."""
        return app_of(self)

    @property
    def _said(self) -> AroundWords:
        return words(self.around.language)

    def compose(self) -> ComposeResult:
        """The steps, the oldest first."""
        said = self._said
        with Vertical(classes="pane"):
            yield Static(Content(said.files), classes="title", markup=False)
            rows = [
                Option(Content(f"{number:>3}  {prose(changed(part.changes))}"))
                for number, part in enumerate(self._steps, 1)
            ]
            none = Option(Content.styled(said.no_files, "dim"), disabled=True)
            yield OptionList(*(rows or [none]), classes="list", markup=False)
            yield Hints(said.files_keys)

    def on_mount(self) -> None:
        """The last one is chosen."""
        if self._steps:
            self.query_one(OptionList).highlighted = len(self._steps) - 1

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_revert(True)

    def action_revert(self, before: bool) -> None:
        """Ask, and do it."""
        at = self.query_one(OptionList).highlighted
        if at is None or at >= len(self._steps):
            return
        ask_revert(self.around, self._follower, self._steps[at], before, lambda: self.dismiss(None))


def ask_revert(
    app: EverturnApp, follower: Follower, part: FilesPart, before: bool, done: Callable[[], object] = lambda: None
) -> None:
    """Ask whether files are to be what they were before a step, or after it; and do it."""
    said = words(app.language)

    async def agreed(yes: bool | None) -> None:
        if not yes:
            return
        if await app.attempt(follower.session.revert(part, to="before" if before else "after")) is not None:
            app.tell(said.reverted)
            done()

    title, text = (said.revert, said.revert_what) if before else (said.redo, said.redo_what)
    app.push_screen(Confirm(title, text.format(what=prose(changed(part.changes)))), agreed)
