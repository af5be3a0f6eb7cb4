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

from everturn.terminal.text.screen import display_width, escape_prose
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
            agents = get_host(self).agents
            labels = {agent.name: agent_label(agents, agent.name) for agent in agents.agents}
            width = max(map(display_width, labels.values()), default=0)
            for agent in agents.agents:
                description = " · ".join(filter(None, (agent.model, agent.description)))
                row = _row(labels[agent.name], agent.name == self._agent, description, width)
                rows.append(Option(row, f"agent:{agent.name}"))
        with Vertical(classes="pane"):
            yield Static(Content(texts.pick), classes="title", markup=False)
            yield OptionList(*rows, classes="list", markup=False)
            yield KeyHints(texts.pick_keys)

    def _about_model(self, name: str) -> Content:
        texts = get_screen_texts(get_host(self).language)
        view = next((model for model in get_host(self).agents.models if model.name == name), None)
        description = texts.context.format(tokens=f"{view.context:,}") if view is not None and view.context else ""
        badge = view.badge if view is not None and view.badge != name else ""
        width = max(map(display_width, self._models))
        return _row(name, name == self._model, " · ".join(filter(None, (badge, description))), width)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        kind, _, name = (event.option.id or "").partition(":")
        self.dismiss((kind, name))


def _row(name: str, is_now: bool, about: str, width: int) -> Content:
    """Return a row; the descriptions of all rows begin in one column."""
    head = Content.assemble("● " if is_now else "  ", escape_prose(name))
    gap = " " * max(2, width + 4 - head.cell_length)
    return Content.assemble(head, (f"{gap}{escape_prose(about)}", "$text-muted") if about else "")
