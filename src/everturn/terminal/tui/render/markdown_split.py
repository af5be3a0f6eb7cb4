"""Incremental Markdown split: a growing text in pieces of Markdown, of which all but the last are finished and never
parsed again.

However the stream cuts the text, the pieces are the same: only whole lines finish a piece. No piece is longer than
`MAX_PIECE` or costs more to parse than `MAX_WEIGHT`, so the redraw of a streaming text is always cheap, whatever it
contains.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct

MAX_PIECE: Final = 8_000  # characters of a piece
MAX_LINE: Final = 2_000  # characters; a longer line is not parsed as Markdown
MAX_WEIGHT: Final = 10_000  # cost of parsing a piece, in units of one plain character
LINE_WEIGHT: Final = 16  # cost of a line besides its characters
DELIMITER_WEIGHT: Final = 5  # cost of a Markdown delimiter
MAX_DELIMITERS: Final = 400  # delimiters in a line; a line with more is not parsed as Markdown
MAX_TABLE_COLUMNS: Final = 30  # columns of a table; a table with more is drawn as it was written
MAX_CODE_LINES: Final = 40  # lines of code in a piece
MAX_CODE_PIECE: Final = 3_000  # characters of code in a piece: some lexers are slow

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_DEEP: Final = re.compile(r"(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))){16,}")

_SIGN: Final = re.compile(r"[*_\[\]`<\\$&~|]")

Kind = Literal["markdown", "code", "plain"]


class MarkdownPiece(Struct, frozen=True):
    """A piece: Markdown, lines of code, or plain text that is drawn as it was written."""

    kind: Kind
    source: str
    language: str = ""
    first: int = 0  # the index of the first piece of its code fence: these are copied together


class MarkdownSplitter:
    """Splits a text that only grows."""

    def __init__(self) -> None:
        self.finished: list[MarkdownPiece] = []
        self._read = 0  # characters that were split into lines
        self._lines: list[str] = []  # lines of the unfinished piece
        self._size = self._weight = self._columns = 0
        self._fence, self._language, self._first = "", "", 0
        self._inner = ""  # the code fence within a list item
        self._is_list = self._is_blank = self._is_plain = False

    def feed(self, text: str) -> list[MarkdownPiece]:
        """Take the whole text so far, and return what follows the finished pieces: nothing, or the unfinished piece."""
        end = text.rfind("\n") + 1
        if end > self._read:
            for line in text[self._read : end - 1].split("\n"):
                self._line(self._cut(line)[1].removesuffix("\r"))
            self._read = end
        cut, rest = self._cut(text[self._read :])
        self._read += cut
        return self._open(rest)

    def _cut(self, line: str) -> tuple[int, str]:
        """Split off plain pieces of a line that is too long; return how much was split off, and the rest."""
        start = 0
        while len(line) - start > MAX_PIECE:
            self._close()
            self.finished.append(MarkdownPiece("plain", line[start : start + MAX_PIECE], first=len(self.finished)))
            start += MAX_PIECE
        return start, line[start:] if start else line

    def _open(self, rest: str) -> list[MarkdownPiece]:
        lines = [*self._lines, rest] if rest else self._lines
        if self._fence and rest and self._ends_fence(rest):
            lines = self._lines
        chunk = self._chunk(lines)
        return [chunk] if chunk is not None else []

    def _chunk(self, lines: list[str]) -> MarkdownPiece | None:
        if self._fence:
            return MarkdownPiece("code", "\n".join(lines), self._language, self._first)
        source = "\n".join(lines).strip("\n")
        if not source.strip():
            return None
        odd = self._is_plain or any(map(_is_too_complex, lines))
        return MarkdownPiece("plain" if odd else "markdown", source, first=len(self.finished))

    def _close(self) -> None:
        chunk = self._chunk(self._lines)
        if chunk is not None and (chunk.source or chunk.first == len(self.finished)):
            self.finished.append(chunk)
        self._lines, self._size, self._weight, self._columns = [], 0, 0, 0
        self._is_blank = False

    def _line(self, line: str) -> None:
        if self._fence:
            self._code(line)
            return
        if not line.strip():
            self._blank()
            return
        if self._is_blank and not self._continues_list(line):
            self._end()
        self._is_blank = False
        fence = _FENCE.match(line)
        if fence and not self._is_list and not self._is_plain:
            self._end()
            self._fence, self._language, self._first = fence[1], fence[2].strip().split(" ")[0], len(self.finished)
            return
        if self._is_list and not self._inner and line[0] not in " \t" and _ITEM.match(line) and self._is_half:
            self._end()  # a long list is continued as another list
        if not self._lines and not self._is_plain:
            self._is_list = bool(_ITEM.match(line))
        self._track_inner_fence(line)
        self._add(line)

    def _track_inner_fence(self, line: str) -> None:
        """Track a code fence in a list item: blank lines in it end nothing."""
        bare = line.strip()
        if self._inner:
            if bare.startswith(self._inner) and not bare.strip(self._inner[0]):
                self._inner = ""
        elif self._is_list and (fence := re.match(r"(`{3,}|~{3,})", bare)):
            self._inner = fence[1]

    def _continues_list(self, line: str) -> bool:
        """Return whether a list continues after a blank line."""
        return self._is_list and (line[:1] in " \t" or bool(_ITEM.match(line)))

    def _blank(self) -> None:
        if self._inner or self._is_list:
            self._is_blank = not self._inner
            if self._lines:
                self._add("")
        else:
            self._end()

    def _add(self, line: str) -> None:
        self._lines.append(line)
        self._size += len(line) + 1
        self._columns = max(self._columns, line.count("|"))  # a table row has as many cells as its header
        self._weight += len(line) + LINE_WEIGHT + DELIMITER_WEIGHT * max(len(_SIGN.findall(line)), self._columns)
        if self._size > MAX_PIECE or self._weight > MAX_WEIGHT:  # the rest has lost its context
            self._close()
            self._is_plain = True

    @property
    def _is_half(self) -> bool:
        return self._is_plain or 2 * self._size > MAX_PIECE or 2 * self._weight > MAX_WEIGHT

    def _end(self) -> None:
        self._close()
        self._is_list = self._is_plain = False
        self._inner = ""

    def _code(self, line: str) -> None:
        if self._ends_fence(line):
            self._close()
            self._fence = ""
            return
        if len(self._lines) >= MAX_CODE_LINES or self._size + len(line) > MAX_CODE_PIECE:
            self._close()
        self._lines.append(line)
        self._size += len(line) + 1

    def _ends_fence(self, line: str) -> bool:
        bare = line.strip()
        return len(line) - len(line.lstrip(" ")) < 4 and bare.startswith(self._fence) and not bare.strip(self._fence[0])


def _is_too_complex(line: str) -> bool:
    """Return whether a line is drawn as it was written: parsing it would take too long, without a benefit."""
    if len(line) > MAX_LINE or _DEEP.match(line):
        return True
    return line.count("|") > MAX_TABLE_COLUMNS or (
        len(line) > MAX_DELIMITERS and len(_SIGN.findall(line)) > MAX_DELIMITERS
    )


def split_markdown(text: str) -> list[MarkdownPiece]:
    """Return the pieces of a complete text."""
    chunks = MarkdownSplitter()
    rest = chunks.feed(text)
    return [*chunks.finished, *rest]
