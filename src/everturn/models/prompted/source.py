"""Text that comes in pieces → something a parser can be written against as if it were all there.

A parser is a generator over a `Source`. It looks at `text` from `at` on, moves `at` past what it has understood, and
yields when it needs more; so a grammar reads from top to bottom, and any split of the text gives the same result.
Nothing is held but what is not understood yet: that keeps a call of any length linear.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Generator
from typing import TypeVar, cast

T = TypeVar("T")
Reading = Generator[None, None, T]
"""A parser: it yields for more text, and returns what it read."""

_BLANKS = re.compile(r"[ \t\r\n]*")
_MARK = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'[^"\\]*+(?:\\.[^"\\]*+)*+', re.DOTALL)
_SCALAR = re.compile(r"[^\s,}\]]*")


class Source:
    """What has come and is not read yet."""

    __slots__ = ("at", "is_over", "text")

    def __init__(self) -> None:
        self.text, self.at, self.is_over = "", 0, False

    def feed(self, text: str) -> None:
        """More has come."""
        self.text = self.text[self.at :] + text if self.at < len(self.text) else text
        self.at = 0

    def take(self, end: int) -> str:
        """The text up to `end`, which is read now."""
        taken = self.text[self.at : end]
        self.at = end
        return taken


def more(source: Source) -> Reading[bool]:
    """Wait for more; False when there is no more to come."""
    if source.is_over:
        return False
    yield
    return True


def next_sign(source: Source) -> Reading[str]:
    """The next character that is not blank, not read yet; "" at the end."""
    while True:
        found = _BLANKS.match(source.text, source.at)
        assert found is not None
        source.at = found.end()
        if source.at < len(source.text):
            return source.text[source.at]
        if not (yield from more(source)):
            return ""


def json_value(source: Source, take: Callable[[str], None]) -> Reading[bool]:
    """Hand a JSON value on as it is written, in the pieces in which it comes; False if it was cut off.

    Whether what stands inside makes sense is not looked at: only where it ends.
    """
    first = yield from next_sign(source)
    if first == '"':
        return (yield from _string(source, take))
    if first in ("{", "["):
        return (yield from _nested(source, take))
    while True:
        found = _SCALAR.match(source.text, source.at)
        assert found is not None
        take(source.take(found.end()))
        if source.at < len(source.text):
            return True
        if not (yield from more(source)):
            return first != ""


def _string(source: Source, take: Callable[[str], None]) -> Reading[bool]:
    end = source.at + 1  # behind the quote that opens it
    while True:
        found = _IN_STRING.match(source.text, end)
        assert found is not None
        end = found.end()
        if end < len(source.text) and source.text[end] == '"':
            take(source.take(end + 1))
            return True
        take(source.take(end))  # a backslash at the very end waits for what it escapes
        if not (yield from more(source)):
            return False
        end = 0


def _nested(source: Source, take: Callable[[str], None]) -> Reading[bool]:
    depth, end = 0, source.at
    while True:
        found = _MARK.search(source.text, end)
        if found is None:
            take(source.take(len(source.text)))
            if not (yield from more(source)):
                return False
            end = 0
            continue
        end = found.end()
        if found[0] == '"':
            take(source.take(end - 1))
            if not (yield from _string(source, take)):
                return False
            end = source.at
            continue
        depth += 1 if found[0] in "{[" else -1
        if depth <= 0:
            take(source.take(end))
            return True


def json_text(source: Source) -> Reading[str | None]:
    """A JSON string, read; None if it was cut off."""
    pieces: list[str] = []
    if not (yield from json_value(source, pieces.append)):
        return None
    return unquoted("".join(pieces))


def unquoted(text: str) -> str:
    """What a JSON string says; anything else as it stands."""
    try:
        value: object = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, str) else text


def rest(source: Source) -> Reading[str]:
    """Everything up to the end."""
    pieces = [source.take(len(source.text))]
    while (yield from more(source)):
        pieces.append(source.take(len(source.text)))
    return "".join(pieces)


def run(reading: Reading[T]) -> T | None:
    """Go on reading; what was read, once it is known."""
    try:
        next(reading)
    except StopIteration as end:
        return cast("T", end.value)
    return None
