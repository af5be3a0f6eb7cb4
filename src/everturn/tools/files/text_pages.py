"""Pages of text files: decodes bytes and returns the lines a page at a time, or refuses binary data. Pure, and bounded
for any input.
"""

from __future__ import annotations

from msgspec import Struct

from everturn.errors import ToolError
from everturn.tools.files.paths import quote_path

MAX_LINE_LENGTH = 2_000  # characters of one line that are shown
MAX_PAGE_LENGTH = 40_000  # characters that are shown at once
_LOOKED_AT = 8_192  # leading bytes in which a text has no NUL
_MARKS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


class TextPage(Struct, frozen=True):
    """Some lines of a text; `following` is the first line of the next page, 0 at the end."""

    text: str
    first: int
    last: int
    total: int
    next_line: int = 0
    truncated_lines: int = 0  # lines that were truncated


def is_binary(data: bytes) -> bool:
    """Whether the data is binary."""
    return b"\0" in data[:_LOOKED_AT]


def decode_exact(data: bytes, path: str) -> str:
    """Decode UTF-8 without loss.

    Raises:
        ToolError: the data is not UTF-8 text; the message says where.
    """
    check_is_text(data, path)
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ToolError(
            f"{quote_path(path)} is not UTF-8 {_where(data, error)}; an edit would damage it. Ask the user to convert it"
        ) from None


def decode_lossy(data: bytes, path: str) -> tuple[str, str]:
    """The text with invalid bytes replaced, and a note about them."""
    check_is_text(data, path)
    try:
        return data.decode(), ""
    except UnicodeDecodeError as error:
        note = f"not UTF-8 {_where(data, error)}: such bytes are shown as \ufffd, and edit_file will not take this file"
        return data.decode("utf-8", "replace"), note


def check_is_text(data: bytes, path: str) -> None:
    """Refuse binary data, and text that is not UTF-8."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            raise ToolError(f"{quote_path(path)} is text in {name}; these tools read UTF-8. Ask the user to convert it")
    if is_binary(data):
        begin = data[:8].hex(" ")
        raise ToolError(
            f"{quote_path(path)} is not text: {len(data):,} bytes that begin with {begin}; it cannot be shown"
        )


def _where(data: bytes, error: UnicodeDecodeError) -> str:
    line = data.count(b"\n", 0, error.start) + 1
    return f"(line {line} has the byte 0x{data[error.start]:02x}; it may be Latin-1 or Windows-1252)"


def count_text_lines(text: str) -> int:
    """The number of lines. A text that ends in a line break has no further line after it."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)


def read_text_page(text: str, first: int, most: int) -> TextPage:
    """The lines from `first` (the first line is 1), at most `most`, and no more than fit on a page."""
    total = count_text_lines(text)
    at = 0
    for _ in range(first - 1):
        line_end = text.find("\n", at)
        if line_end < 0:
            at = len(text)
            break
        at = line_end + 1
    lines: list[str] = []
    size = cut = 0
    while at < len(text) and len(lines) < most:
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at : min(end, at + MAX_LINE_LENGTH)]
        if end - at > MAX_LINE_LENGTH:
            line += f"… [{end - at - MAX_LINE_LENGTH:,} more characters in this line]"
        if lines and size + len(line) >= MAX_PAGE_LENGTH:
            break
        cut += end - at > MAX_LINE_LENGTH
        lines.append(line)
        size += len(line) + 1
        at = end + 1
    last = first + len(lines) - 1
    return TextPage("\n".join(lines), first, last, total, last + 1 if at < len(text) else 0, cut)
