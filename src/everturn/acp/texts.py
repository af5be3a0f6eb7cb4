"""Texts of ACP from the catalogue: options of approvals, names of modes, descriptions of commands."""

from __future__ import annotations

from msgspec import Struct

from everturn.localization import Language, load_texts


class AcpTexts(Struct, frozen=True):
    """The group `acp` of the catalogue."""

    allow_once: str
    allow_always: str
    allow_session: str
    reject: str
    send: str
    withhold: str
    plan: str
    ask: str
    auto_edit: str
    plan_about: str
    ask_about: str
    auto_edit_about: str
    compact: str
    focus: str
    restarted: str
    elsewhere: str
    limit: str
    continue_turn: str
    end_turn: str


def get_acp_texts(language: Language) -> AcpTexts:
    """Return the texts in a language."""
    return load_texts("acp", language, AcpTexts)
