"""Texts of the assistant in a folder: permission modes, what an empty Enter does, `!command`, and leaving."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from everturn.localization import load_texts
from everturn.terminal.tui.host import Language


class FolderTexts(Struct, frozen=True):
    """Modes, questions and notes."""

    modes: Mapping[str, str]  # mode -> its name
    mode_now: Mapping[str, str]  # mode -> what it does
    mode_later: str  # behind `mode_now`, while a turn runs in another mode
    no_modes: str
    step_limit: str
    plan_ready: str
    carry_on: str  # sent to the model
    carry_out: str  # sent to the model
    use_prompt: str  # sent to the model
    many_resources: str
    come_back: str
    no_folder: str
    no_session: str
    nothing_to_undo: str
    forked: str
    copy_of: str  # the title of a copied session
    nothing_to_fork: str
    earlier_lines: str
    shell_failed: str
    goes_with: str
    commands: str
    welcome: str
    start_folder: str
    start_model: str
    start_mode: str


EN: Final = load_texts("terminal.folder", "en", FolderTexts)
ZH: Final = load_texts("terminal.folder", "zh", FolderTexts)


def get_folder_texts(language: Language) -> FolderTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
