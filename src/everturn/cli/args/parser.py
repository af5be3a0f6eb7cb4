"""Argument parser for all commands: errors in one line with a suggestion, help that is wrapped and shows examples, and
value types."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, Final, NoReturn

INDENT: Final = 2  # columns in front of an example
NARROWEST: Final = 24  # columns; prose is unreadable on fewer


TOOLS: Final = "Python file or module with tools, or one tool in it; the file is executed; repeatable"
RULES: Final = "permission rules (TOML): what to allow, ask for and deny"
NO_COLOR: Final = "no colors; or set NO_COLOR"


class HelpFormatter(argparse.HelpFormatter):
    """Help formatter that wraps prose to the terminal, paragraph by paragraph, and leaves indented lines (examples) on
    their own."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return wrap_help_text(text, width, indent)


def wrap_help_text(text: str, width: int, indent: str = "") -> str:
    """Wrap the prose of a text; indented lines are wrapped only where they are too long."""
    columns = max(width - len(indent), NARROWEST)
    lines: list[str] = []
    prose: list[str] = []
    given = [*textwrap.dedent(text).strip("\n").splitlines(), ""]
    for line, following in zip(given, [*given[1:], ""], strict=True):
        is_heading = line.endswith(":") and (not following or following.startswith(" "))
        if line and not line.startswith(" ") and not is_heading:
            prose.append(line)
            continue
        lines += textwrap.wrap(" ".join(prose), columns, break_on_hyphens=False)
        lines += [line] if len(line) <= columns else _wrap_hanging(line, columns)
        prose = []
    return "\n".join(f"{indent}{line}".rstrip() for line in lines).rstrip("\n")


def _wrap_hanging(line: str, columns: int) -> list[str]:
    """Wrap a line that is too long with a hanging indent: under its text if a number precedes it, else under its
    beginning."""
    blanks = len(line) - len(line.lstrip())
    head, _, text = line.lstrip().partition("  ")
    indent = len(line) - len(text.lstrip()) if text and len(head) <= INDENT + 1 else blanks + 2 * INDENT
    return textwrap.wrap(
        line,
        columns,
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
        break_long_words=False,
        drop_whitespace=True,
    )


class Parser(argparse.ArgumentParser):
    """Argument parser that reports an error in one line, with the next step."""

    def __init__(self, **options: Any) -> None:
        # The same help format and no abbreviations in all commands.
        options |= {"formatter_class": HelpFormatter, "allow_abbrev": False}
        super().__init__(**options)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Parse the arguments.

        A subcommand reports its own unknown options, because it knows which options are similar.
        """
        options, unknown = super().parse_known_args(args, namespace)
        if unknown:
            word = next((word for word in unknown if word.startswith("-")), unknown[0]).partition("=")[0]
            if not word.startswith("-"):
                self.error(f"{word!r} is an unexpected argument")
            self.error(f"there is no option {word!r}{suggest_nearest(word, self._option_string_actions)}")
        return options, unknown

    def error(self, message: str) -> NoReturn:
        """Exit with code 2 and one line that says what is wrong."""
        see = " See" if message.endswith("?") else "; see"
        self.exit(2, f"{self.prog}: {message}{see} `{self.prog} --help`\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            choices = "" if len(known) > 6 else f"; there are: {', '.join(known)}"
            if value == "list" and not action.required and self.prog.count(" "):
                self.error(f"there is no command 'list': `{self.prog}` alone lists")
            hint = _suggest_deeper(str(value), action) or suggest_nearest(str(value), known) or choices
            self.error(f"there is no command {str(value)!r}{hint}")
        raise argparse.ArgumentError(
            action, f"{str(value)!r} is not one of {', '.join(known)}{suggest_nearest(value, known)}"
        )


def suggest_nearest(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean …?` for the closest known word, or "" if none is close."""
    from difflib import get_close_matches

    close = get_close_matches(word.lower(), list(known), 3, 0.6)
    # Swapped letters are the most frequent typo, and difflib prefers a word that lacks one of them.
    swapped = [near for near in close if sorted(near) == sorted(word.lower())]
    return f"; did you mean {(swapped or close)[0]}?" if close else ""


def _suggest_deeper(word: str, action: Any) -> str:
    """Return `; did you mean backup restore?` for a word that is a command of a command, or ""."""
    parents = [
        name for name, parser in action.choices.items() if word in getattr(_subparsers_action(parser), "choices", ())
    ]
    return f"; did you mean {' or '.join(f'{name} {word}' for name in parents)}?" if 0 < len(parents) <= 3 else ""


def add_command(
    commands: Any,
    name: str,
    about: str,
    description: str = "",
    *,
    examples: Sequence[str] = (),
    codes: str = "",
) -> argparse.ArgumentParser:
    """Add a command with a one-line summary, a description, examples and, where they carry meaning, its exit codes."""
    return commands.add_parser(
        name, help=about, description=description or make_sentence(about), epilog=make_epilog(examples, codes)
    )


def make_epilog(examples: Sequence[str], codes: str = "") -> str | None:
    """Build the text below the options: examples and exit codes."""
    example_text = "\n".join(["examples:", *(" " * INDENT + example for example in examples)]) if examples else ""
    return "\n\n".join(filter(None, (example_text, codes.strip("\n")))) or None


def make_sentence(about: str) -> str:
    """Turn a command's summary into a sentence."""
    return f"{about[0].upper()}{about[1:]}."


def _subparsers_action(parser: argparse.ArgumentParser) -> Any:
    """Return the subparsers action of a parser; argparse has no public way to get it."""
    kind: Any = argparse._SubParsersAction  # pyright: ignore[reportPrivateUsage]
    return next((action for action in parser._actions if isinstance(action, kind)), None)


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the subcommands of a parser, by name."""
    action = _subparsers_action(parser)
    return dict(action.choices) if action is not None else {}


def command_summaries(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the one-line summary of each subcommand, by name."""
    action = _subparsers_action(parser)
    return {choice.dest: choice.help or "" for choice in action._choices_actions} if action is not None else {}


def parse_port(text: str) -> int:
    """Parse a port number."""
    number = parse_int(text)
    if not 0 <= number <= 65_535:
        raise argparse.ArgumentTypeError(f"{text} is not a port; use 0 (any free port) to 65535")
    return number


def parse_positive_int(text: str) -> int:
    """Parse an integer of at least 1."""
    number = parse_int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small; use at least 1")
    return number


def parse_int(text: str) -> int:
    """Parse an integer."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
