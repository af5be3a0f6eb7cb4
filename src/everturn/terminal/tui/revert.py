"""Revert screen: the steps that changed files, and their revert after a confirmation."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from everturn.core.parts import FilesPart
from everturn.terminal.text.file_changes import steps_with_changes, summarize_changes
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.chat_host import ChatHost, get_chat_host
from everturn.terminal.tui.confirm import Confirm
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.session_follower import SessionFollower
from everturn.terminal.tui.texts.screens import ScreenTexts, get_screen_texts


class FilesScreen(ClosingScreen[None], ModalScreen[None]):
    """The steps that changed files, of all branches: they changed the folder, whichever answer is selected now."""

    DEFAULT_CSS = """
    FilesScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "close"),
        Binding("a", "revert(False)", "after"),
    ]

    def __init__(self, follower: SessionFollower) -> None:
        super().__init__()
        self._follower = follower
        self._steps = steps_with_changes(follower.state.tree.messages.values())

    @property
    def host(self) -> ChatHost:
        """The app, as the host of the conversation."""
        return get_chat_host(self)

    @property
    def _screen_texts(self) -> ScreenTexts:
        return get_screen_texts(self.host.language)

    def compose(self) -> ComposeResult:
        """The steps, the oldest first."""
        texts = self._screen_texts
        with Vertical(classes="pane"):
            yield Static(Content(texts.files), classes="title", markup=False)
            rows = [
                Option(Content(f"{number:>3}  {escape_prose(summarize_changes(part.changes))}"))
                for number, part in enumerate(self._steps, 1)
            ]
            none = Option(Content(texts.no_files), disabled=True)
            yield OptionList(*(rows or [none]), classes="list", markup=False)
            yield KeyHints(texts.files_keys if rows else texts.usage_keys)

    def on_mount(self) -> None:
        """Highlight the last step."""
        if self._steps:
            self.query_one(OptionList).highlighted = len(self._steps) - 1

    @on(OptionList.OptionSelected)
    def _selected(self) -> None:
        self.action_revert(True)

    def action_revert(self, before: bool) -> None:
        """Confirm, and revert."""
        index = self.query_one(OptionList).highlighted
        if index is None or index >= len(self._steps):
            return
        confirm_revert(self.host, self._follower, self._steps[index], before, lambda: self.dismiss(None))


def confirm_revert(
    app: ChatHost,
    follower: SessionFollower,
    part: FilesPart,
    before: bool,
    done: Callable[[], object] = lambda: None,
) -> None:
    """Ask whether to restore the files as they were before a step, or after it; and do it."""
    texts = get_screen_texts(app.language)

    async def agreed(yes: bool | None) -> None:
        if not yes:
            return
        if await app.attempt(follower.session.revert(part, to="before" if before else "after")) is not None:
            app.show_message(texts.reverted)
            done()

    title, text = (texts.revert, texts.revert_what) if before else (texts.redo, texts.redo_what)
    app.push_screen(Confirm(title, text.format(what=escape_prose(summarize_changes(part.changes)))), agreed)
