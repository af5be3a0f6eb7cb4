"""Command-line arguments of known programs: options, their values and operands, as far as that is certain.

Where it is not certain whether a word is an option or the value of one, it counts as both. So `--` ends the options only
where it is surely no value: behind `curl -A` it is what curl calls itself, and what follows are options still.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from everturn.permissions.programs import Program
from everturn.permissions.words import Word

Role = Literal["option", "value", "argument"]
Surely = Literal["no", "maybe", "yes"]


class Argument(NamedTuple):
    """A word and what it is to its program. `is_free`: it stands where options do not, behind `--` or a script."""

    word: Word
    role: Role
    is_free: bool = False


def arguments(words: Sequence[Word], program: Program) -> Iterator[Argument]:
    """Say of each word behind a program's name what it is; a `--` that ends the options is left out."""
    takes: Surely = "no"  # whether the next word is a value of the one before
    is_free = is_lost = False  # lost: a word went by that could have been anything
    for word in words:
        if is_free:
            yield Argument(word, "argument", is_free=True)
        elif not word.is_static:
            could_be = could_be_option(word, program)
            is_one = word.expansion is not None and word.expansion.count == "one"
            yield Argument(word, "option" if could_be else _role(takes if is_one else "no"))
            is_lost = is_lost or could_be
            is_free = program.stops and takes == "no" and not is_lost
            takes = "maybe" if could_be else "no"
        elif word.text == "--" and takes == "no" and program.ends:
            is_free = True
        elif word.text.startswith("-") and word.text != "-" and takes != "yes":
            yield Argument(word, "option")
            takes = takes_value(word.text, program)
        else:
            yield Argument(word, "option" if word.text.startswith("-") and word.text != "-" else _role(takes))
            is_free = program.stops and takes == "no" and not is_lost
            takes = "no"


def _role(takes: Surely) -> Role:
    return "value" if takes == "yes" else "argument"


def could_be_option(word: Word, program: Program) -> bool:
    """Whether a word that is only known when it runs could then be an option, or several."""
    return word.expansion is None or word.expansion.could_begin_with("-+" if "+" in program.words else "-")


def takes_value(text: str, program: Program) -> Surely:
    """Whether an option takes the word behind it."""
    if text.startswith("--"):
        name, has_value, _ = text[2:].partition("=")
        return "no" if has_value or name in program.flags else "maybe"
    for at, letter in enumerate(text[1:], 1):
        if letter in program.valued:
            return "no" if text[at + 1 :] else "yes"
        if letter not in program.flag_letters and (
            not program.letters_known or letter in program.runs or letter in program.writes
        ):
            return "maybe"
    return "no"
