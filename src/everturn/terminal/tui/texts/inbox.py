"""Texts of the inbox."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.localization import load_texts


class InboxTexts(Struct, frozen=True):
    """The texts of the inbox."""

    title: str
    count: str
    empty: str
    session: str
    what: str
    since: str
    left: str
    untitled: str
    k_answer: str
    k_open: str
    k_back: str


EN: Final = load_texts("terminal.inbox", "en", InboxTexts)
ZH: Final = load_texts("terminal.inbox", "zh", InboxTexts)


def get_inbox_texts(language: Literal["en", "zh"]) -> InboxTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
