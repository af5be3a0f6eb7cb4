"""Texts of the MCP servers screen."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.localization import load_texts


class McpServersTexts(Struct, frozen=True):
    """The texts of the MCP servers screen."""

    title: str
    loading: str
    none: str
    name: str
    state: str
    tools: str
    reason: str
    connecting: str
    ready: str
    down: str
    untrusted: str
    needs_login: str
    failed: str
    next_connecting: str
    next_down: str
    next_untrusted: str
    next_needs_login: str
    next_own_login: str
    next_failed: str
    operator: str
    stdio: str
    http: str
    hands: str
    calls: str
    changes: str
    hash: str
    trusts: str
    is_trusted: str
    sure: str
    trusted: str
    asked: str
    changed_mark: str
    log_in_at: str
    log_in_hint: str
    waiting: str
    no_tools: str
    k_trust: str
    k_sure: str
    k_retry: str
    k_login: str
    k_back: str


EN: Final = load_texts("terminal.mcp_servers", "en", McpServersTexts)
ZH: Final = load_texts("terminal.mcp_servers", "zh", McpServersTexts)


def get_mcp_texts(language: Literal["en", "zh"]) -> McpServersTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
