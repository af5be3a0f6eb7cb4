"""Key buffer: keys typed before the prompt has the focus, replayed into it in order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from textual import events

SEQUENCE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?"
)  # arrow keys and similar: the line discipline had no use for them
NAMED = {
    "\n": ("enter", "\r"),
    "\r": ("enter", "\r"),
    "\t": ("tab", "\t"),
    "\x11": ("ctrl+q", "\x11"),
    "\x7f": ("backspace", "\x7f"),
}


def keys_from_text(typed: str) -> Iterator[events.Key]:
    """Return the key events of text that a terminal has buffered line by line; a line ends with Enter."""
    for character in SEQUENCE.sub("", typed):
        if character in NAMED:
            yield events.Key(*NAMED[character])
        elif character.isprintable():
            yield events.Key(character, character)
