"""Command-line arguments of known programs: options, their values and operands, as far as that is certain.

Where it is not certain whether a word is an option or the value of one, it counts as both. So `--` ends the options
only where it is certainly no value: after `curl -A` it is the user agent, and what follows are still options.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from everturn.permissions.shell.programs import ProgramOptions
from everturn.permissions.shell.word_expansion import ShellWord

Role = Literal["option", "value", "argument"]
Certainty = Literal["no", "maybe", "yes"]


class CommandArgument(NamedTuple):
    """A word and its role for the program. `is_free`: it is where options cannot be, after `--` or a script."""

    word: ShellWord
    role: Role
    is_after_options: bool = False


def classify_arguments(words: Sequence[ShellWord], program: ProgramOptions) -> Iterator[CommandArgument]:
    """The role of each word after a program's name; a `--` that ends the options is left out."""
    takes: Certainty = "no"  # whether the next word is a value of the one before
    is_free = is_lost = False  # lost: an earlier word could have been anything
    for word in words:
        if is_free:
            yield CommandArgument(word, "argument", is_after_options=True)
        elif not word.is_static:
            could_be = could_be_option(word, program)
            is_one = word.expansion is not None and word.expansion.count == "one"
            yield CommandArgument(word, "option" if could_be else _role(takes if is_one else "no"))
            is_lost = is_lost or could_be
            is_free = program.stops_at_argument and takes == "no" and not is_lost
            takes = "maybe" if could_be else "no"
        elif word.text == "--" and takes == "no" and program.has_double_dash:
            is_free = True
        elif word.text.startswith("-") and word.text != "-" and takes != "yes":
            yield CommandArgument(word, "option")
            takes = takes_value(word.text, program)
        else:
            yield CommandArgument(word, "option" if word.text.startswith("-") and word.text != "-" else _role(takes))
            is_free = program.stops_at_argument and takes == "no" and not is_lost
            takes = "no"


def _role(takes: Certainty) -> Role:
    return "value" if takes == "yes" else "argument"


def could_be_option(word: ShellWord, program: ProgramOptions) -> bool:
    """Whether a word that is only known at run time could then be an option, or several."""
    return word.expansion is None or word.expansion.could_begin_with("-+" if "+" in program.words else "-")


def takes_value(text: str, program: ProgramOptions) -> Certainty:
    """Whether an option takes the word after it."""
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
