"""Bytes → the lines of a text, a page at a time; or why they are no text. Pure, and bounded for any bytes."""

from __future__ import annotations

from msgspec import Struct

from everturn.errors import ToolError
from everturn.tools.files.paths import shown

LONGEST_LINE = 2_000  # characters that are shown of one
PAGE = 40_000  # characters that are shown at once
_LOOKED_AT = 8_192  # bytes in which a text has no zero
_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


class Page(Struct, frozen=True):
    """Some lines of a text; `following` is the line to go on with, 0 at the end."""

    text: str
    first: int
    last: int
    total: int
    following: int = 0
    cut: int = 0  # lines that were too long to be shown whole


def is_binary(data: bytes) -> bool:
    """Whether this is not meant to be read."""
    return b"\0" in data[:_LOOKED_AT]


def exact_text(data: bytes, path: str) -> str:
    """The text that these bytes are, and no other bytes are.

    Raises:
        ToolError: they are none; the text says where that shows.
    """
    check_text(data, path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{shown(path)} is not UTF-8 {_where(data, error)}; to edit it would damage it. "
            "Ask the person to convert it"
        ) from None


def shown_text(data: bytes, path: str) -> tuple[str, str]:
    """The text as well as it can be shown, and what is to be said of that."""
    check_text(data, path)
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        told = f"not UTF-8 {_where(data, error)}: such bytes are shown as \ufffd, and edit_file will not take this file"
        return data.decode("utf-8", "replace"), told


def check_text(data: bytes, path: str) -> None:
    """Refuse what is not meant to be read."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            raise ToolError(f"{shown(path)} is text in {name}; these tools read UTF-8. Ask the person to convert it")
    if is_binary(data):
        begin = data[:8].hex(" ")
        raise ToolError(f"{shown(path)} is not text: {len(data):,} bytes that begin with {begin}; it cannot be shown")


def _where(data: bytes, error: UnicodeDecodeError) -> str:
    line = data.count(b"\n", 0, error.start) + 1
    return f"(line {line} has the byte 0x{data[error.start]:02x}; it may be Latin-1 or Windows-1252)"


def count(text: str) -> int:
    """How many lines there are. What ends in a line break has no further line behind it."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def page(text: str, first: int, most: int) -> Page:
    """Lines from `first` (they begin at 1), at most so many, and no more than can be shown."""
    total = count(text)
    at = 0
    for _ in range(first - 1):
        found = text.find("\n", at)
        if found < 0:
            at = len(text)
            break
        at = found + 1
    lines: list[str] = []
    size = cut = 0
    while at < len(text) and len(lines) < most:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at : min(end, at + LONGEST_LINE)]
        if end - at > LONGEST_LINE:
            line += f"… [{end - at - LONGEST_LINE:,} more characters in this line]"
        if lines and size + len(line) >= PAGE:
            break
        cut += end - at > LONGEST_LINE
        lines.append(line)
        size += len(line) + 1
        at = end + 1
    last = first + len(lines) - 1
    return Page("\n".join(lines), first, last, total, last + 1 if at < len(text) else 0, cut)
