"""Texts of the lists beside a conversation: sessions, agents, branches, files, usage, settings."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from everturn.localization import load_texts


class ScreenTexts(Struct, frozen=True):
    """Lists, and their actions."""

    sessions: str
    search: str
    no_sessions: str
    nothing_found: str
    session_keys: str
    pinned: str
    running: str
    waiting: str
    quarantined: str
    untitled: str
    erase: str
    erase_what: str
    erased: str
    now: str
    minutes: str
    hours: str
    days: str
    pick: str
    pick_keys: str
    agents: str
    models: str
    search_models: str
    history: str
    search_history: str
    no_history: str
    agent_default: str
    model_of_agent: str
    context: str
    branches: str
    branch_keys: str
    steps: str
    step_keys: str
    no_steps: str
    continues_after: str
    version: str
    no_branches: str
    you: str
    model: str
    notice: str
    empty: str
    delete: str
    delete_what: str
    delete_last: str
    deleted: str
    rerun: str
    compare: str
    compare_keys: str
    nothing_to_compare: str
    same: str
    files: str
    files_keys: str
    no_files: str
    revert: str
    revert_what: str
    reverted: str
    redo: str
    redo_what: str
    usage: str
    usage_keys: str
    no_usage: str
    day: str
    agent: str
    tokens_in: str
    tokens_out: str
    calls: str
    cost: str
    total: str
    settings: str
    settings_keys: str
    theme: str
    language: str
    light: str
    dark: str
    contrast: str


EN: Final = load_texts("terminal.screens", "en", ScreenTexts)
ZH: Final = load_texts("terminal.screens", "zh", ScreenTexts)


def get_screen_texts(language: str) -> ScreenTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
