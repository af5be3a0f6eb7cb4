"""What a person likes, kept between two runs in a file of their own; and the screen to choose it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

import msgspec
from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from everturn.terminal.reaching import state_folder
from everturn.tui.base import app_of, host
from everturn.tui.dismiss import ClosingScreen
from everturn.tui.keys import Hints
from everturn.tui.looks import CONTRAST, DARK, LIGHT
from everturn.tui.words.around import words

NAME = "tui.json"
LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}


class Settings(Struct, frozen=True, omit_defaults=True):
    """What was chosen; "" is what is usual."""

    theme: str = ""
    language: Literal["", "en", "zh"] = ""
    bell: bool = False  # rings when a question comes


def place(environ: Mapping[str, str]) -> Path:
    """Where they are kept."""
    return state_folder(environ) / NAME


def load(environ: Mapping[str, str] | None = None) -> Settings:
    """What was chosen before. A file that cannot be read, or makes no sense, is as good as none."""
    try:
        return msgspec.json.decode(place(os.environ if environ is None else environ).read_bytes(), type=Settings)
    except (OSError, msgspec.MsgspecError, ValueError):
        return Settings()


def save(settings: Settings, environ: Mapping[str, str] | None = None) -> bool:
    """Keep it; whether that could be done. That it cannot is no reason not to go on."""
    path = place(os.environ if environ is None else environ)
    new = path.with_name(f".{NAME}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(settings))
        os.replace(new, path)
    except OSError:
        return False
    return True


class SettingsScreen(ClosingScreen[tuple[str, str] | None], ModalScreen[tuple[str, str] | None]):
    """Themes and languages; gives back which of the two was chosen, and what."""

    DEFAULT_CSS = """
    SettingsScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close")]

    def compose(self) -> ComposeResult:
        """One list of all that can be chosen."""
        said, now = words(host(self).language), host(self).language
        rows: list[Option | None] = [Option(Content.styled(said.language, "bold"), disabled=True)]
        rows += [Option(_row(name, key == now), f"language:{key}") for key, name in LANGUAGES.items()]
        rows += [None, Option(Content.styled(said.theme, "bold"), disabled=True)]
        about = {DARK: said.dark, LIGHT: said.light, CONTRAST: said.contrast}
        ours = [*about, *(name for name in sorted(app_of(self).available_themes) if name not in about)]
        rows += [Option(_row(name, name == app_of(self).theme, about.get(name, "")), f"theme:{name}") for name in ours]
        with Vertical(classes="pane tall"):
            yield Static(Content(said.settings), classes="title", markup=False)
            yield OptionList(*rows, classes="list", markup=False)
            yield Hints(said.settings_keys)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        what, _, value = (event.option.id or "").partition(":")
        self.dismiss((what, value))


def _row(name: str, is_now: bool, about: str = "") -> Content:
    return Content.assemble(("● " if is_now else "  "), name, (f"  {about}", "dim") if about else "")
