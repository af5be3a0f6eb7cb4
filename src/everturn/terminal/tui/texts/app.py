"""Texts of the app: keys, commands, the input, and the lines around a conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from everturn.localization import load_texts


class AppTexts(Struct, frozen=True):
    """Keys, commands, the input, and the lines around it."""

    keys: Mapping[str, str]  # action -> what the key does
    slash: Mapping[str, str]  # command -> what it does
    groups: Mapping[str, str]
    new: str
    write: str
    write_new: str
    write_short: str
    write_new_short: str
    editing: str
    steering: str
    attached: str
    queued: str
    labelled: str  # a message that waits, behind what it waits for
    sending: str
    steers: str
    take_back: str
    taken_back: str
    asks: str
    reviews: str
    questions: str
    more_asks: str
    waits: str
    thinks: str
    answers: str
    requests: str
    one_runs: str
    many_run: str
    waits_here: str
    waits_elsewhere: str
    notify_gate: str
    stopping: str
    stopped_hard: str
    lost: str
    back: str
    summarizes: str
    offline: str
    nothing_runs: str
    nothing_said: str
    nothing_to_edit: str
    no_command: str
    no_command_near: str
    no_model: str
    no_agent: str
    saved: str
    nothing_to_save: str
    no_file: str
    exported: str
    say_path: str
    still_runs: str
    still_waits: str
    in_memory: str
    gone: str
    moved_here: str
    moved_away: str
    press_quit: str
    go_on: str
    small: str
    copied: str
    erased: str
    model_now: str
    agent_now: str
    agent_new_only: str
    help: str
    help_more: str
    yes: str
    no: str
    close: str
    palette: str
    stop: str
    move: str
    fold: str
    copy: str
    to_box: str
    welcome: str


EN: Final = load_texts("terminal.app", "en", AppTexts)
ZH: Final = load_texts("terminal.app", "zh", AppTexts)


def get_app_texts(language: str) -> AppTexts:
    """Return the texts in a language."""
    return ZH if language == "zh" else EN
