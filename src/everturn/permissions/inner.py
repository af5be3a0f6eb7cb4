"""What a command may run beside itself, as data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from everturn.permissions.parsing import Unreadable
from everturn.permissions.words import Word


class Argv(NamedTuple):
    """A command, by its words."""

    words: Sequence[Word]


class Script(NamedTuple):
    """A command line in a word, to be read in its turn."""

    text: str
    is_bash: bool = True


class Assigned(NamedTuple):
    """A variable and its value, NAME=value."""

    word: Word


class Power(NamedTuple):
    """Something that a command may do beyond its trade, as an item of its own."""

    words: tuple[Word, ...]
    text: str


Found = Argv | Script | Assigned | Power


def base_name(name: str) -> str:
    """Return the name that a program is known by; some file systems do not tell upper from lower case."""
    return name.rpartition("/")[2].casefold()


def static(word: Word) -> str:
    """Return the value of a word that has to be known."""
    if not word.is_static:
        raise Unreadable(f"{word.shown[:60]!r} is only known when it runs, and decides what runs; write it out")
    return word.text
