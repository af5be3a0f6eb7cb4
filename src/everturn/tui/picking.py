"""Who answers: the agents and the models of the server, with what each of them is."""

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

from everturn.terminal.screen import prose
from everturn.tui.base import host
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.keys import Hints
from everturn.tui.words.around import words


class PickScreen(ClosingScreen[tuple[str, str] | None], ModalScreen[tuple[str, str] | None]):
    """One list of both; gives back which of the two was chosen, and its name."""

    DEFAULT_CSS = """
    PickScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close")]

    def __init__(self, models: list[str], agent: str, model: str, *, only_models: bool = False) -> None:
        super().__init__()
        self._models, self._agent, self._model, self._only_models = models, agent, model, only_models

    def compose(self) -> ComposeResult:
        """Models first: they are changed more often."""
        said = words(host(self).language)
        rows: list[Option | None] = [Option(Content.styled(said.models, "bold"), disabled=True)]
        rows += [Option(self._about_model(name), f"model:{name}") for name in self._models]
        if not self._only_models:
            rows += [None, Option(Content.styled(said.agents, "bold"), disabled=True)]
            for one in host(self).agents.agents:
                about = "  ".join(filter(None, (one.description, one.model)))
                rows.append(Option(_row(one.name, one.name == self._agent, about), f"agent:{one.name}"))
        with Vertical(classes="pane"):
            yield Static(Content(said.pick), classes="title", markup=False)
            yield OptionList(*rows, classes="list", markup=False)
            yield Hints(said.pick_keys)

    def _about_model(self, name: str) -> Content:
        said = words(host(self).language)
        view = next((one for one in host(self).agents.models if one.name == name), None)
        about = said.context.format(tokens=f"{view.context:,}") if view is not None and view.context else ""
        badge = view.badge if view is not None and view.badge != name else ""
        return _row(name, name == self._model, "  ".join(filter(None, (badge, about))))

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        what, _, name = (event.option.id or "").partition(":")
        self.dismiss((what, name))


def _row(name: str, is_now: bool, about: str) -> Content:
    return Content.assemble("● " if is_now else "  ", prose(name), (f"  {prose(about)}", "dim") if about else "")
