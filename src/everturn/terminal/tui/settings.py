"""User settings: theme, language and bell, saved in a file of the user, and the screen to change them."""

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

from everturn.terminal.text.local_tools import state_dir
from everturn.terminal.tui.dismiss import ClosingScreen
from everturn.terminal.tui.host import get_app, get_host
from everturn.terminal.tui.key_bar import KeyHints
from everturn.terminal.tui.texts.screens import get_screen_texts
from everturn.terminal.tui.themes import CONTRAST, DARK, LIGHT

NAME = "tui.json"
LANGUAGES: Mapping[str, str] = {"en": "English", "zh": "中文"}


class UserSettings(Struct, frozen=True, omit_defaults=True):
    """The saved settings; "" is the default."""

    theme: str = ""
    language: Literal["", "en", "zh"] = ""
    bell: bool = False  # rings when a gate opens


def settings_path(environ: Mapping[str, str]) -> Path:
    """Return the path of the settings file."""
    return state_dir(environ) / NAME


def load_user_settings(environ: Mapping[str, str] | None = None) -> UserSettings:
    """Load the saved settings. A file that is unreadable or invalid counts as missing."""
    try:
        return msgspec.json.decode(
            settings_path(os.environ if environ is None else environ).read_bytes(), type=UserSettings
        )
    except (OSError, msgspec.MsgspecError, ValueError):
        return UserSettings()


def save_user_settings(settings: UserSettings, environ: Mapping[str, str] | None = None) -> bool:
    """Save the settings, and return whether that worked; the app continues if it did not."""
    path = settings_path(os.environ if environ is None else environ)
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
    """Themes and languages; the result is which of the two was chosen, and its value."""

    DEFAULT_CSS = """
    SettingsScreen { align: center middle; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "close")]

    def compose(self) -> ComposeResult:
        """One list of all choices."""
        texts, current = get_screen_texts(get_host(self).language), get_host(self).language
        rows: list[Option | None] = [Option(Content.styled(texts.language, "bold"), disabled=True)]
        rows += [Option(_row(name, key == current), f"language:{key}") for key, name in LANGUAGES.items()]
        rows += [None, Option(Content.styled(texts.theme, "bold"), disabled=True)]
        descriptions = {DARK: texts.dark, LIGHT: texts.light, CONTRAST: texts.contrast}
        names = [*descriptions, *(name for name in sorted(get_app(self).available_themes) if name not in descriptions)]
        rows += [
            Option(_row(name, name == get_app(self).theme, descriptions.get(name, "")), f"theme:{name}")
            for name in names
        ]
        with Vertical(classes="pane tall"):
            yield Static(Content(texts.settings), classes="title", markup=False)
            yield OptionList(*rows, classes="list", markup=False)
            yield KeyHints(texts.settings_keys)

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        setting, _, value = (event.option.id or "").partition(":")
        self.dismiss((setting, value))


def _row(name: str, is_now: bool, about: str = "") -> Content:
    return Content.assemble(("● " if is_now else "  "), name, (f"  {about}", "$text-muted") if about else "")
