"""Texts about the context window: what fills it, and its compaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from everturn.localization import load_texts


class ContextTexts(Struct, frozen=True):
    """The context screen, the warning line and the compaction command."""

    title: str
    keys: str
    kinds: Mapping[str, str]  # what tokens are for
    free: str
    reserve: str
    tokens: str
    share: str
    used: str
    used_unknown: str
    estimated: str
    no_window: str
    learned: str
    clears: str
    summarises: str
    limit: str
    policy_off: str
    policy_last: str
    compactions: str
    paused: str
    summarizing: str
    soon: str
    next: str
    off: str
    failing: str
    nothing: str
    nothing_yet: str
    undo: str
    undo_what: str
    undo_branch: str
    undone: str


EN: Final = load_texts("terminal.context", "en", ContextTexts)
ZH: Final = load_texts("terminal.context", "zh", ContextTexts)


def get_context_texts(language: str) -> ContextTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
