"""Texts of the commands that organize a session."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from everturn.localization import load_texts
from everturn.terminal.tui.host import Language


class SessionTexts(Struct, frozen=True):
    """What was done, or is missing."""

    no_session: str
    which_title: str
    renamed: str
    pinned: str
    unpinned: str
    archived: str
    unarchived: str
    labelled: str
    unlabelled: str


EN: Final = load_texts("terminal.sessions", "en", SessionTexts)
ZH: Final = load_texts("terminal.sessions", "zh", SessionTexts)


def get_session_texts(language: Language) -> SessionTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
