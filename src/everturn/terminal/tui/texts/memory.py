"""Texts of the memory screen."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.localization import load_texts


class MemoryTexts(Struct, frozen=True):
    """The texts of the memory screen."""

    title: str
    loading: str
    none: str
    path: str
    size: str
    mark: str
    untrusted: str
    untrusted_hint: str
    used: str
    path_hint: str
    sure: str
    saved: str
    deleted: str
    k_edit: str
    k_new: str
    k_delete: str
    k_sure: str
    k_trust: str
    k_save: str
    k_back: str


EN: Final = load_texts("terminal.memory", "en", MemoryTexts)
ZH: Final = load_texts("terminal.memory", "zh", MemoryTexts)


def get_memory_texts(language: Literal["en", "zh"]) -> MemoryTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
