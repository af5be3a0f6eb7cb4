"""Texts of the screen of saved prompts and instructions."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

from everturn.localization import load_texts


class PromptTexts(Struct, frozen=True):
    """The texts of the screen of saved prompts and instructions."""

    title: str
    loading: str
    name: str
    kind: str
    about: str
    prompt: str
    instructions: str
    scopes: dict[str, str]  # of a saved prompt
    layers: dict[str, str]  # of instructions
    not_shown: str
    empty: str
    arguments: str
    name_hint: str
    about_hint: str
    sure: str
    saved: str
    deleted: str
    no_prompt: str
    expanded: str
    k_use: str
    k_edit: str
    k_new: str
    k_delete: str
    k_sure: str
    k_save: str
    k_back: str


EN: Final = load_texts("terminal.prompts", "en", PromptTexts)
ZH: Final = load_texts("terminal.prompts", "zh", PromptTexts)


def get_prompt_texts(language: Literal["en", "zh"]) -> PromptTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
