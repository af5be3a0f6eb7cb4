"""Nested programs: data types for what a command may run besides itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from everturn.permissions.shell.parser import UnreadableCommand
from everturn.permissions.shell.word_expansion import ShellWord


class NestedCommand(NamedTuple):
    """A command, by its words."""

    words: Sequence[ShellWord]


class NestedScript(NamedTuple):
    """A command line in a word, to be read itself."""

    text: str
    is_bash: bool = True


class Assignment(NamedTuple):
    """A variable and its value, NAME=value."""

    word: ShellWord


class Capability(NamedTuple):
    """Something that an option lets a command do, as a subject of its own."""

    words: tuple[ShellWord, ...]
    text: str


NestedItem = NestedCommand | NestedScript | Assignment | Capability


def base_name(name: str) -> str:
    """The name that a program is known by; some file systems ignore case."""
    return name.rpartition("/")[2].casefold()


def require_static(word: ShellWord) -> str:
    """The value of a word, which must be known."""
    if not word.is_static:
        raise UnreadableCommand(
            f"{word.shown[:60]!r} is known only when the command runs, and decides which program runs; write the "
            "value itself"
        )
    return word.text
