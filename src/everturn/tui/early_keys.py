"""Key buffer: keys typed before the prompt has the focus, replayed into it in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textual import events

SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?")  # arrows and the like: a line had no use for them
NAMED = {
    "\n": ("enter", "\r"),
    "\r": ("enter", "\r"),
    "\t": ("tab", "\t"),
    "\x11": ("ctrl+q", "\x11"),
    "\x7f": ("backspace", "\x7f"),
}


def keys_of(typed: str) -> Iterator[events.Key]:
    """The keys of a text that a terminal has kept line by line; a line ends with Enter."""
    for character in SEQUENCE.sub("", typed):
        if character in NAMED:
            yield events.Key(*NAMED[character])
        elif character.isprintable():
            yield events.Key(character, character)
