"""Texts of the permissions screen."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.localization import load_texts


class PermissionsTexts(Struct, frozen=True):
    """Rules, tools and grants."""

    title: str
    rules: str
    tools: str
    grants: str
    explain: str
    loading: str
    how: str
    no_rules: str
    never: str
    no_grants: str
    holds: str
    everywhere: str
    by: str
    until: str
    forever: str
    offered: str
    denied: str
    auto: str
    always: str
    ask: str
    deny: str
    allow: str
    manual: str
    reviewed: str
    egress: str
    looks_at: str
    tool: str
    arguments: str
    ask_how: str
    no_json: str
    unknown_tool: str
    unfit: str
    would_hand: str
    would_review: str
    sure: str
    revoked: str
    rule: str
    where: str
    when: str
    k_revoke: str
    k_sure: str
    k_agent: str
    k_ask: str
    k_back: str


EN: Final = load_texts("terminal.permissions", "en", PermissionsTexts)
ZH: Final = load_texts("terminal.permissions", "zh", PermissionsTexts)


def get_permissions_texts(language: Literal["en", "zh"]) -> PermissionsTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
