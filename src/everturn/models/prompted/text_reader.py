"""Text reader: streamed text for parsers that are written as if all of it were there.

A parser is a generator over a `TextReader`. It looks at `text` from `at` on, moves `at` past what it has parsed, and
yields when it needs more; so a grammar reads from top to bottom, and any split of the text gives the same result. Only
unparsed text is kept: that keeps the cost of a call of any length linear.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from typing import TypeVar, cast

T = TypeVar("T")
TextParser = Generator[None, None, T]
"""A parser: it yields for more text, and returns its result."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_MARK = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SCALAR = re.compile(r"[^\s,}\]]*")


class TextReader:
    """The text that was received and is not parsed yet."""

    __slots__ = ("at", "is_over", "text")

    def __init__(self) -> None:
        self.text, self.at, self.is_over = "", 0, False

    def feed(self, text: str) -> None:
        """Add text."""
        self.text = self.text[self.at :] + text if self.at < len(self.text) else text
        self.at = 0

    def take(self, end: int) -> str:
        """Return the text up to `end`, and consume it."""
        taken = self.text[self.at : end]
        self.at = end
        return taken


def wait_for_more(source: TextReader) -> TextParser[bool]:
    """Wait for more text; False at the end."""
    if source.is_over:
        return False
    yield
    return True


def next_char(source: TextReader) -> TextParser[str]:
    """Return the next character that is not whitespace, without consuming it; "" at the end."""
    while True:
        match = _BLANKS.match(source.text, source.at)
        assert match is not None
        source.at = match.end()
        if source.at < len(source.text):
            return source.text[source.at]
        if not (yield from wait_for_more(source)):
            return ""


def json_value(source: TextReader, take: Callable[[str], None]) -> TextParser[bool]:
    """Pass on a JSON value as it is written, in the pieces in which it arrives; False if it was cut off.

    The content is not validated: only the end of the value is found.
    """
    first = yield from next_char(source)
    if first == '"':
        return (yield from _string(source, take))
    if first in ("{", "["):
        return (yield from _nested(source, take))
    while True:
        match = _SCALAR.match(source.text, source.at)
        assert match is not None
        take(source.take(match.end()))
        if source.at < len(source.text):
            return True
        if not (yield from wait_for_more(source)):
            return first != ""


def _string(source: TextReader, take: Callable[[str], None]) -> TextParser[bool]:
    end = source.at + 1  # after the opening quote
    while True:
        match = _IN_STRING.match(source.text, end)
        assert match is not None
        end = match.end()
        if end < len(source.text) and source.text[end] == '"':
            take(source.take(end + 1))
            return True
        take(source.take(end))  # a trailing backslash waits for the escaped character
        if not (yield from wait_for_more(source)):
            return False
        end = 0


def _nested(source: TextReader, take: Callable[[str], None]) -> TextParser[bool]:
    depth, end = 0, source.at
    while True:
        match = _MARK.search(source.text, end)
        if match is None:
            take(source.take(len(source.text)))
            if not (yield from wait_for_more(source)):
                return False
            end = 0
            continue
        end = match.end()
        if match[0] == '"':
            take(source.take(end - 1))
            if not (yield from _string(source, take)):
                return False
            end = source.at
            continue
        depth += 1 if match[0] in "{[" else -1
        if depth <= 0:
            take(source.take(end))
            return True


def json_text(source: TextReader) -> TextParser[str | None]:
    """Parse a JSON string; None if it was cut off."""
    pieces: list[str] = []
    if not (yield from json_value(source, pieces.append)):
        return None
    return unquoted("".join(pieces))


def unquoted(text: str) -> str:
    """Decode a JSON string; return anything else unchanged."""
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def read_rest(source: TextReader) -> TextParser[str]:
    """Return all remaining text."""
    pieces = [source.take(len(source.text))]
    while (yield from wait_for_more(source)):
        pieces.append(source.take(len(source.text)))
    return "".join(pieces)


def advance(reading: TextParser[T]) -> T | None:
    """Continue a parser; return its result once it has one."""
    try:
        next(reading)
    except StopIteration as end:
        return cast("T", end.value)
    return None
