"""Visible text: shows every character, with invisible ones written out, for whatever a person is about to approve."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from everturn.core.canonical_json import parse_object
from everturn.permissions import explain
from everturn.terminal.text.screen import LineScreen, count_fitting, display_width

MIN_TEXT_WIDTH = 13  # columns that a text needs beside its head; with fewer it is written below
MAX_INLINE_JSON = 48  # characters up to which a list or an object is on one line
INDENT = 2  # columns of one level of indentation
BLANK = r"\x20"


def escape_invisible(text: str) -> str:
    r"""Return one line with everything escaped that cannot be seen: `\x1b`, `\u202e`, and blanks at its end."""
    escaped = explain.escape_invisible(text, len(text))
    bare = escaped.rstrip(" ")
    return bare + BLANK * (len(escaped) - len(bare))


def count_invisible(text: str) -> int:
    """Count the characters of a text that cannot be seen; line breaks and tabs can."""
    return sum(explain.escape_invisible(char, 1) != char for char in text if char not in "\n\t")


def count_invisible_in(value: Any) -> int:
    """Count the characters that cannot be seen in the strings of a JSON value."""
    if isinstance(value, str):
        return count_invisible(value)
    if isinstance(value, dict):
        return sum(
            count_invisible_in(key) + count_invisible_in(item) for key, item in cast("dict[str, Any]", value).items()
        )
    return sum(map(count_invisible_in, cast("list[Any]", value))) if isinstance(value, list) else 0


def format_arguments(text: str, schema: Mapping[str, Any] | None = None) -> list[tuple[str, list[str]]]:
    """Return the arguments of a call, from the bytes that would run: each name with its lines, ready to show.

    The schema of the tool only orders them; names that it does not have come last.
    """
    parsed = parse_object(text)
    if parsed is None:
        return [("", [escape_invisible(line) for line in text.split("\n")])]
    known: Any = None if schema is None else schema.get("properties")
    order = {name: place for place, name in enumerate(cast("dict[str, Any]", known) if isinstance(known, dict) else ())}
    names = sorted(parsed, key=lambda name: order.get(name, len(order)))
    return [(escape_invisible(name), _lines(parsed[name])) for name in names]


def _lines(value: Any) -> list[str]:
    """Return text as it is, to be readable; everything else, and text that could be mistaken for it, as JSON."""
    if isinstance(value, str):
        is_plain = _is_plain(value)
        return [
            escape_invisible(line if is_plain else json.dumps(line, ensure_ascii=False)) for line in value.split("\n")
        ]
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) <= MAX_INLINE_JSON or not isinstance(value, dict | list):
        return [escape_invisible(flat)]
    return [escape_invisible(line) for line in json.dumps(value, ensure_ascii=False, indent=2).split("\n")]


def _is_plain(text: str) -> bool:
    if not text or text != text.strip(" ") or ("\\" in text and ("\t" in text or count_invisible(text))):
        return False  # a literal backslash would be mistaken for an escape, or an escape for a literal backslash
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


def wrap_line(line: str, room: int) -> Iterator[str]:
    """Split a line into pieces that fit, before blanks where possible; joined, the pieces are the line.

    A blank at the end of a piece could not be seen, so it begins the next piece.
    """
    room, at = max(room, MIN_TEXT_WIDTH), 0
    while len(line) - at > room or display_width(line[at:]) > room:
        window = line[at : at + room + 1]  # each character takes at least one column, so the rest need not be measured
        size = count_fitting(window, room)
        if (blank := window.rfind(" ", 1, size + 1)) > 0 and window[:blank].rstrip(" "):
            size = len(window[:blank].rstrip(" "))
        yield window[:size]
        at += size
    yield line[at:]


def print_message(screen: LineScreen, text: str, style: str = "dim") -> int:
    """Print a message of our own, and return how many lines it took."""
    screen.row(" " * INDENT, escape_invisible(text), style)
    return len(list(wrap_line(text, screen.text_width - INDENT)))


def print_block(screen: LineScreen, head: str, text: str, style: Callable[[str], str] = lambda line: "") -> int:
    """Print a whole text under a heading of our own, with a warning about its invisible characters, and return the
    number of lines."""
    count = print_message(screen, head, "") if head else 0
    count += print_lines(screen, " " * 2 * INDENT, [escape_invisible(line) for line in text.split("\n")], style)
    return count + warn_invisible(screen, count_invisible(text))


def warn_invisible(screen: LineScreen, number: int) -> int:
    """Warn that this many characters cannot be seen."""
    if not number:
        return 0
    phrase = "character cannot be seen, and is" if number == 1 else "characters cannot be seen, and are"
    return print_message(screen, rf"{number} {phrase} written out, as \u202e or \x1b", "bad")


def print_lines(
    screen: LineScreen, head: str, lines: list[str], style: Callable[[str], str] = lambda line: "", pad: int = 0
) -> int:
    """Print whole lines beside their head, each in its style, and return how many lines that took.

    If there are several lines, or one is wrapped, a bar marks where each begins: nothing that is shown can look like a
    part of the question.
    """
    before, count = f"{head:<{pad}}", 0
    is_below = screen.text_width - display_width(before) < MIN_TEXT_WIDTH
    if is_below:
        for piece in wrap_line(head.strip(), screen.text_width - 2 * INDENT):
            screen.line(" " * 2 * INDENT + piece)
            count += 1
        before = " " * 3 * INDENT
    bar = f"{screen.sign('│')} " if len(lines) > 1 else ""
    for line in lines:
        lead = bar
        for piece in wrap_line(line, screen.text_width - display_width(before) - len(bar)):
            screen.line(f"{before}{lead}{piece}", style(line))
            before, lead, count = " " * display_width(before), " " * len(bar), count + 1
    return count
