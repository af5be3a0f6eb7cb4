"""Picker screen: the models and agents of the server, with their descriptions."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from everturn.terminal.text.screen import escape_prose
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.folder import agent_label
from everturn.terminal.tui.host import get_host
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.texts.screens import get_screen_texts


class PickerScreen(ClosingScreen[tuple[str, str] | None], ModalScreen[tuple[str, str] | None]):
    """One list of both; the result is "model" or "agent", and the name."""

    DEFAULT_CSS = """
    PickerScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close")]

    def __init__(self, models: list[str], agent: str, model: str, *, only_models: bool = False) -> None:
        super().__init__()
        self._models, self._agent, self._model, self._only_models = models, agent, model, only_models

    def compose(self) -> ComposeResult:
        """Models first: people change them more often."""
        texts = get_screen_texts(get_host(self).language)
        rows: list[Option | None] = [Option(Content.styled(texts.models, "bold"), disabled=True)]
        rows += [Option(self._about_model(name), f"model:{name}") for name in self._models]
        if not self._only_models:
            rows += [None, Option(Content.styled(texts.agents, "bold"), disabled=True)]
            for agent in get_host(self).agents.agents:
                description = "  ".join(filter(None, (agent.description, agent.model)))
                label = agent_label(get_host(self).agents, agent.name)
                rows.append(Option(_row(label, agent.name == self._agent, description), f"agent:{agent.name}"))
        with Vertical(classes="pane"):
            yield Static(Content(texts.pick), classes="title", markup=False)
            yield OptionList(*rows, classes="list", markup=False)
            yield KeyHints(texts.pick_keys)

    def _about_model(self, name: str) -> Content:
        texts = get_screen_texts(get_host(self).language)
        view = next((model for model in get_host(self).agents.models if model.name == name), None)
        description = texts.context.format(tokens=f"{view.context:,}") if view is not None and view.context else ""
        badge = view.badge if view is not None and view.badge != name else ""
        return _row(name, name == self._model, "  ".join(filter(None, (badge, description))))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        kind, _, name = (event.option.id or "").partition(":")
        self.dismiss((kind, name))


def _row(name: str, is_now: bool, about: str) -> Content:
    return Content.assemble(
        "● " if is_now else "  ", escape_prose(name), (f"  {escape_prose(about)}", "$text-muted") if about else ""
    )
