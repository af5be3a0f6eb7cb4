"""Model picker: searches all models that can be used here, with price, window and tool support, and chooses one."""

from __future__ import annotations

import asyncio
import os
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from everturn.config.available_models import AvailableModel, describe_row, search_models, survey_models
from everturn.config.key_store import use_stored_keys
from everturn.config.load import load_config
from everturn.errors import EverturnError
from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.texts.screens import get_screen_texts

MAX_SHOWN = 200  # rows
NAME_WIDTH = 40  # columns


class ModelPickerScreen(ClosingScreen[str], ModalScreen[str]):
    """A search field, and the models that match; the result is the name of a model."""

    DEFAULT_CSS = """
    ModelPickerScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss('')", "close"),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
    ]

    def __init__(self, offered: list[str], current: str, words: str = "") -> None:
        super().__init__()
        self._models = [AvailableModel(name, "") for name in offered]
        self._shown: list[AvailableModel] = []
        self._current, self._words = current, words

    def compose(self) -> ComposeResult:
        """The search field, the list, the key hints."""
        texts = get_screen_texts(get_host(self).language)
        with Vertical(classes="pane tall"):
            yield Static(Content(texts.models), classes="title", markup=False)
            yield Input(self._words, placeholder=texts.search_models, classes="search")
            yield OptionList(classes="list", markup=False)
            yield KeyHints(texts.pick_keys)

    def on_mount(self) -> None:
        """List what is known, and ask vendors and local servers for the rest."""
        self.query_one(Input).focus()
        self.call_after_refresh(self._list)
        self.run_worker(self._survey, exit_on_error=False)

    async def _survey(self) -> None:
        host = get_host(self)
        try:
            keys = await asyncio.to_thread(use_stored_keys)
            loaded = await asyncio.to_thread(load_config, os.environ.get("EVERTURN_CONFIG") or None)
            survey = await survey_models(loaded, keys)
        except EverturnError as error:
            host.show_message(str(error), "warning")
            return
        for problem in survey.problems:
            host.show_message(problem, "warning")
        known = {model.name for model in survey.models}
        self._models = [*(model for model in self._models if model.name not in known), *survey.models]
        index = self.query_one(OptionList).highlighted  # stays selected, though the list is another one
        self._list(self._shown[index].name if index is not None and self._shown else "")

    def _list(self, selected: str = "") -> None:
        listed = self.query_one(OptionList)
        self._shown = search_models(self._models, self.query_one(Input).value)[:MAX_SHOWN]
        listed.clear_options()
        for model in self._shown:
            row = describe_row(model)
            about = "  ".join(
                row[name] for name in ("window", "price", "tools", "source") if row[name] not in ("", "?")
            )
            sign = "● " if model.name == self._current else "  "
            name = escape_prose(row["name"])
            listed.add_option(
                Option(Content.assemble(sign, f"{name:<{NAME_WIDTH}} ", (escape_prose(about), "$text-muted")))
            )
        if self._shown:
            names = [model.name for model in self._shown]
            listed.highlighted = names.index(selected) if selected in names else 0

    @on(Input.Changed)
    def _typed(self) -> None:
        self._list()

    def action_move(self, step: int) -> None:
        """Move the selection, while the search field keeps the focus."""
        listed = self.query_one(OptionList)
        if step > 0:
            listed.action_cursor_down()
        else:
            listed.action_cursor_up()

    @on(Input.Submitted)
    def _entered(self) -> None:
        index = self.query_one(OptionList).highlighted
        typed = self.query_one(Input).value.strip()
        self.dismiss(self._shown[index].name if index is not None and self._shown else typed)

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._shown[event.option_index].name)
