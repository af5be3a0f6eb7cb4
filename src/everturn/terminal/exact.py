"""Text → lines in which every character can be seen, and none is missing: for what a person is about to allow."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, cast

from everturn.core.canonical import parse_object
from everturn.permissions.explaining import visible
from everturn.terminal.screen import Screen, columns, fitting

LEAST = 13  # columns that a text has beside its head; with fewer it stands below
FLAT = 48  # characters up to which a list or an object stands on one line
STEP = 2  # columns by which what goes on is set off from what begins
BLANK = r"\x20"


def seen(text: str) -> str:
    r"""One line with everything written out that cannot be seen: `\x1b`, `\u202e`, and blanks at its end."""
    shown = visible(text, len(text))
    bare = shown.rstrip(" ")
    return bare + BLANK * (len(shown) - len(bare))


def hidden(text: str) -> int:
    """How many characters of a text nobody would see; breaks of lines are seen, and so are tabs."""
    return sum(visible(char, 1) != char for char in text if char not in "\n\t")


def hidden_in(value: Any) -> int:
    """The same for whatever is in a JSON value."""
    if isinstance(value, str):
        return hidden(value)
    if isinstance(value, dict):
        return sum(hidden_in(key) + hidden_in(item) for key, item in cast("dict[str, Any]", value).items())
    return sum(map(hidden_in, cast("list[Any]", value))) if isinstance(value, list) else 0


def arguments(text: str) -> list[tuple[str, list[str]]]:
    """The arguments of a call, by the bytes that would run: each with its lines, ready to be shown."""
    given = parse_object(text)
    if given is None:
        return [("", [seen(line) for line in text.split("\n")])]
    return [(seen(name), _lines(value)) for name, value in given.items()]


def _lines(value: Any) -> list[str]:
    """A text as it is, so that it can be read; everything else, and a text that could be taken for it, as JSON."""
    if isinstance(value, str):
        is_plain = _is_plain(value)
        return [seen(line if is_plain else json.dumps(line, ensure_ascii=False)) for line in value.split("\n")]
    flat = json.dumps(value, ensure_ascii=False)
    if len(flat) <= FLAT or not isinstance(value, dict | list):
        return [seen(flat)]
    return [seen(line) for line in json.dumps(value, ensure_ascii=False, indent=2).split("\n")]


def _is_plain(text: str) -> bool:
    if not text or text != text.strip(" ") or ("\\" in text and ("\t" in text or hidden(text))):
        return False  # with a backslash of its own it would look as if something was hidden there, or nothing
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return True
    return False


def wrapped(line: str, room: int) -> Iterator[str]:
    """A line in pieces that fit, broken before blanks where there are some; put together they are the line.

    A blank at the end of a piece could not be seen, so it begins the next one.
    """
    room, at = max(room, LEAST), 0
    while len(line) - at > room or columns(line[at:]) > room:
        some = line[at : at + room + 1]  # each takes a column at least, and more of it need not be looked at
        size = fitting(some, room)
        if (blank := some.rfind(" ", 1, size + 1)) > 0 and some[:blank].rstrip(" "):
            size = len(some[:blank].rstrip(" "))
        yield some[:size]
        at += size
    yield line[at:]


def say(screen: Screen, text: str, style: str = "dim") -> int:
    """Say something in our own words, and say how many lines it took."""
    screen.row(" " * STEP, seen(text), style)
    return len(list(wrapped(text, screen.room - STEP)))


def block(screen: Screen, head: str, text: str, style: Callable[[str], str] = lambda line: "") -> int:
    """Write a text whole, under a head in our own words, and say how much of it cannot be seen."""
    count = say(screen, head, "") if head else 0
    count += write(screen, " " * 2 * STEP, [seen(line) for line in text.split("\n")], style)
    return count + warn(screen, hidden(text))


def warn(screen: Screen, found: int) -> int:
    """Say that so many characters cannot be seen."""
    if not found:
        return 0
    are = "character cannot be seen, and is" if found == 1 else "characters cannot be seen, and are"
    return say(screen, rf"{found} {are} written out, as \u202e or \x1b", "bad")


def write(
    screen: Screen, head: str, lines: list[str], style: Callable[[str], str] = lambda line: "", pad: int = 0
) -> int:
    """Write lines beside their head, whole, each in its style, and say how many it took.

    Where there are several, or one goes on below, a bar stands where each begins: nothing that is shown can look like
    a part of the question.
    """
    before, count = f"{head:<{pad}}", 0
    is_below = screen.room - columns(before) < LEAST
    if is_below:
        for piece in wrapped(head.strip(), screen.room - 2 * STEP):
            screen.line(" " * 2 * STEP + piece)
            count += 1
        before = " " * 3 * STEP
    bar = f"{screen.sign('│')} " if len(lines) > 1 else ""
    for line in lines:
        lead = bar
        for piece in wrapped(line, screen.room - columns(before) - len(bar)):
            screen.line(f"{before}{lead}{piece}", style(line))
            before, lead, count = " " * columns(before), " " * len(bar), count + 1
    return count
