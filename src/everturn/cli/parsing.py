"""A command and what it takes → a parser that says in one line what is wrong, and shows examples in its help."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

INDENT: Final = 2  # columns in front of an example
NARROWEST: Final = 24  # columns; on less than these no prose is readable


TOOLS: Final = "a Python file or module with tools, or one of them; it is run; may be given again"
RULES: Final = "rules for tools, in TOML: what is allowed, asked and denied"
NO_COLOR: Final = "plain text; so does NO_COLOR in the environment"


class Help(argparse.HelpFormatter):
    """Prose is wrapped to the terminal, paragraph by paragraph. What is indented is an example, and has its own line."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return filled(text, width, indent)


def filled(text: str, width: int, indent: str = "") -> str:
    """Wrap what is prose in a text, and what is indented only where it is too long."""
    room = max(width - len(indent), NARROWEST)
    lines: list[str] = []
    prose: list[str] = []
    for line in [*textwrap.dedent(text).strip("\n").splitlines(), ""]:
        if line and not line.startswith(" ") and not line.endswith(":"):
            prose.append(line)
            continue
        lines += textwrap.wrap(" ".join(prose), room, break_on_hyphens=False)
        lines += [line] if len(line) <= room else _hung(line, room)
        prose = []
    return "\n".join(f"{indent}{line}".rstrip() for line in lines).rstrip("\n")


def _hung(line: str, room: int) -> list[str]:
    """A line that is too long, with the rest of it under its beginning: under the text, where a number stands before it."""
    blanks = len(line) - len(line.lstrip())
    head, _, text = line.lstrip().partition("  ")
    under = len(line) - len(text.lstrip()) if text and len(head) <= INDENT + 1 else blanks + 2 * INDENT
    return textwrap.wrap(
        line, room, subsequent_indent=" " * under, break_on_hyphens=False, break_long_words=False, drop_whitespace=True
    )


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with the next thing to do."""

    def __init__(self, **given: Any) -> None:
        given |= {"formatter_class": Help, "allow_abbrev": False}  # one look for all of them
        super().__init__(**given)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Read the words. What one of the commands does not know is said by that one, which knows what is near."""
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
            if not word.startswith("-"):
                self.error(f"{word!r} is one word too many")
            self.error(f"there is no option {word!r}{nearest(word, self._option_string_actions)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        """Leave, and say why."""
        then = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: {message}{then} `{self.prog} --help`\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            there = "" if len(known) > 6 else f"; there are: {', '.join(known)}"
            self.error(f"there is no command {str(value)!r}{nearest(str(value), known) or there}")
        raise argparse.ArgumentError(action, f"{str(value)!r} is none of {', '.join(known)}{nearest(value, known)}")


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?`, or nothing where nothing is near."""
    from difflib import get_close_matches

    close = get_close_matches(word.lower(), list(known), 1, 0.6)
    return f"; did you mean {close[0]}?" if close else ""


def add(
    commands: Any,
    name: str,
    about: str,
    description: str = "",
    *,
    examples: Sequence[str] = (),
    codes: str = "",
) -> argparse.ArgumentParser:
    """Add a command: a line about it, more of it, examples, and what its exit codes mean where they mean something."""
    return commands.add_parser(
        name, help=about, description=description or sentence(about), epilog=epilog(examples, codes)
    )


def epilog(examples: Sequence[str], codes: str = "") -> str | None:
    """What stands under the options: examples, and exit codes."""
    shown = "\n".join(["examples:", *(" " * INDENT + example for example in examples)]) if examples else ""
    return "\n\n".join(filter(None, (shown, codes.strip("\n")))) or None


def sentence(about: str) -> str:
    """A line about a command, as a sentence."""
    return f"{about[0].upper()}{about[1:]}."


def _below(parser: argparse.ArgumentParser) -> Any:
    """Where a parser has its commands; argparse has no public way to ask."""
    kind: Any = argparse._SubParsersAction  # pyright: ignore[reportPrivateUsage]
    return next((one for one in parser._actions if isinstance(one, kind)), None)


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below one, by their names."""
    below = _below(parser)
    return dict(below.choices) if below is not None else {}


def abouts(parser: argparse.ArgumentParser) -> dict[str, str]:
    """The line about each of the commands below one."""
    below = _below(parser)
    return {one.dest: one.help or "" for one in below._choices_actions} if below is not None else {}


def port(text: str) -> int:
    """A number of a port."""
    number = whole(text)
    if not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError(f"{text} is no port; one is from 0 (any that is free) to 65535")
    return number


def positive(text: str) -> int:
    """A whole number from 1."""
    number = whole(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too few; at least 1")
    return number


def whole(text: str) -> int:
    """A whole number."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
