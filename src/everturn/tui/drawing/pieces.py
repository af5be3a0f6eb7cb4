"""A text that grows → pieces of markdown, of which all but the last are finished and never read again.

Wherever the text was cut on its way, the same pieces come out: only whole lines decide that one is over. No piece is
longer than `LONGEST`, and none has more to be read in it than `HEAVIEST`, so that what is drawn again while a text
streams is never much, whoever wrote it.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct

LONGEST: Final = 8_000  # characters of a piece
LONGEST_LINE: Final = 2_000  # characters; a longer one is not read as markdown
HEAVIEST: Final = 10_000  # what it takes to read a piece, in characters that mean nothing
PER_LINE: Final = 16  # what a line takes besides its characters
PER_SIGN: Final = 5  # and a sign of markdown: it may begin or end something
MOST_SIGNS: Final = 400  # in a line; one with more is not read as markdown
MOST_COLUMNS: Final = 30  # of a table; one with more is drawn as it was written
CODE_LINES: Final = 40  # lines of code in a piece
CODE_LONGEST: Final = 3_000  # characters of them: some languages are slow to read

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})([^`]*)$")
_ITEM: Final = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|$)")
_DEEP: Final = re.compile(r"(?:[ \t]*(?:>|[-*+](?=[ \t])|\d{1,9}[.)](?=[ \t]))){16,}")

_SIGN: Final = re.compile(r"[*_\[\]`<\\$&~|]")

Kind = Literal["markdown", "code", "plain"]


class Piece(Struct, frozen=True):
    """A piece: markdown, lines of code of a language, or what is drawn as it was written."""

    kind: Kind
    source: str
    language: str = ""
    first: int = 0  # the number of the piece that its fence began with: they are copied together


class Pieces:
    """Cuts a text that only ever grows."""

    def __init__(self) -> None:
        self.finished: list[Piece] = []
        self._read = 0  # characters that were cut into lines
        self._lines: list[str] = []  # of the piece that is open
        self._size = self._weight = self._columns = 0
        self._fence, self._language, self._first = "", "", 0
        self._inner = ""  # the fence within an item of a list
        self._is_list = self._is_blank = self._is_plain = False

    def feed(self, text: str) -> list[Piece]:
        """Take in what the text is now, and give what comes after the finished pieces: nothing, or the open one."""
        end = text.rfind("\n") + 1
        if end > self._read:
            for line in text[self._read : end - 1].split("\n"):
                self._line(self._cut(line)[1].removesuffix("\r"))
            self._read = end
        cut, rest = self._cut(text[self._read :])
        self._read += cut
        return self._open(rest)

    def _cut(self, line: str) -> tuple[int, str]:
        """Cut a line that is too long, and draw it as it is; how much went, and what is left."""
        at = 0
        while len(line) - at > LONGEST:
            self._close()
            self.finished.append(Piece("plain", line[at : at + LONGEST], first=len(self.finished)))
            at += LONGEST
        return at, line[at:] if at else line

    def _open(self, rest: str) -> list[Piece]:
        lines = [*self._lines, rest] if rest else self._lines
        if self._fence and rest and self._ends_fence(rest):
            lines = self._lines
        chunk = self._chunk(lines)
        return [chunk] if chunk is not None else []

    def _chunk(self, lines: list[str]) -> Piece | None:
        if self._fence:
            return Piece("code", "\n".join(lines), self._language, self._first)
        source = "\n".join(lines).strip("\n")
        if not source.strip():
            return None
        odd = self._is_plain or any(map(_is_odd, lines))
        return Piece("plain" if odd else "markdown", source, first=len(self.finished))

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
        if self._is_blank and not self._goes_on(line):
            self._end()
        self._is_blank = False
        fence = _FENCE.match(line)
        if fence and not self._is_list and not self._is_plain:
            self._end()
            self._fence, self._language, self._first = fence[1], fence[2].strip().split(" ")[0], len(self.finished)
            return
        if self._is_list and not self._inner and line[0] not in " \t" and _ITEM.match(line) and self._is_half:
            self._end()  # a long list goes on as another one
        if not self._lines and not self._is_plain:
            self._is_list = bool(_ITEM.match(line))
        self._within(line)
        self._add(line)

    def _within(self, line: str) -> None:
        """A fence in an item of a list: blank lines in it end nothing."""
        bare = line.strip()
        if self._inner:
            if bare.startswith(self._inner) and not bare.strip(self._inner[0]):
                self._inner = ""
        elif self._is_list and (fence := re.match(r"(`{3,}|~{3,})", bare)):
            self._inner = fence[1]

    def _goes_on(self, line: str) -> bool:
        """Whether a list goes on after a blank line."""
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
        self._columns = max(self._columns, line.count("|"))  # a row of a table has as many cells as its head has
        self._weight += len(line) + PER_LINE + PER_SIGN * max(len(_SIGN.findall(line)), self._columns)
        if self._size > LONGEST or self._weight > HEAVIEST:  # the rest of it has lost what it belongs to
            self._close()
            self._is_plain = True

    @property
    def _is_half(self) -> bool:
        return self._is_plain or 2 * self._size > LONGEST or 2 * self._weight > HEAVIEST

    def _end(self) -> None:
        self._close()
        self._is_list = self._is_plain = False
        self._inner = ""

    def _code(self, line: str) -> None:
        if self._ends_fence(line):
            self._close()
            self._fence = ""
            return
        if len(self._lines) >= CODE_LINES or self._size + len(line) > CODE_LONGEST:
            self._close()
        self._lines.append(line)
        self._size += len(line) + 1

    def _ends_fence(self, line: str) -> bool:
        bare = line.strip()
        return len(line) - len(line.lstrip(" ")) < 4 and bare.startswith(self._fence) and not bare.strip(self._fence[0])


def _is_odd(line: str) -> bool:
    """Whether a line is drawn as it was written: to read it would take too long, and nobody would gain by it."""
    if len(line) > LONGEST_LINE or _DEEP.match(line):
        return True
    return line.count("|") > MOST_COLUMNS or (len(line) > MOST_SIGNS and len(_SIGN.findall(line)) > MOST_SIGNS)


def pieces_of(text: str) -> list[Piece]:
    """The pieces of a text that is whole."""
    chunks = Pieces()
    rest = chunks.feed(text)
    return [*chunks.finished, *rest]
