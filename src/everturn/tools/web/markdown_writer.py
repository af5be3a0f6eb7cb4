"""Markdown writer: writes text and tags as Markdown, within a length limit. It tracks open elements, and builds no
tree.
"""

from __future__ import annotations

import re
from typing import Final

DEEPEST: Final = 6  # nesting of lists and quotes that is rendered

_BLOCKS: Final = frozenset(
    "address article aside body center dd details dialog div dl dt fieldset figcaption figure footer form header hgroup "
    "legend main nav noscript option section summary tbody tfoot thead caption".split()
)
_APART: Final = frozenset("p table h1 h2 h3 h4 h5 h6 ul ol blockquote pre".split())
_MARKS: Final = {
    "b": "**",
    "strong": "**",
    "i": "*",
    "em": "*",
    "del": "~~",
    "s": "~~",
    "code": "`",
    "kbd": "`",
    "samp": "`",
    "tt": "`",
}
_TICKS: Final = re.compile("`{3,}")


class MarkdownWriter:
    """Receives the text and the tags of a page in order, and writes Markdown."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._made: list[str] = []
        self._length = 0
        self._gap = 0  # line breaks before the next word
        self._is_spaced = False
        self._lists: list[int] = []  # the number of the last item; -1: an unordered list
        self._quotes = self._last_quotes = 0  # now, and in the last line
        self._marker = ""  # of a list item whose first word has not come yet
        self._waiting: list[str] = []  # marks that are written if a word comes before they are closed
        self._open: dict[str, int] = {}  # how often each mark is open
        self._href = ""
        self._pre: list[str] | None = None
        self._cells = 0  # of this row
        self._tables: list[str] = []  # open tables: `new`, `headed` (the first row is written) or `layout`

    @property
    def is_full(self) -> bool:
        """Whether the length limit is reached."""
        return self._length >= self._most

    def end(self) -> str:
        """Finish, and return the Markdown."""
        self.tag("/pre")
        self.link("")
        return "".join(self._made)[: self._most].strip()

    # ------------------------------------------------------------------------------------------------------ words

    def add_text(self, text: str) -> None:
        """Add text of the page."""
        if self._pre is not None:
            self._pre.append(text)
            self._length += len(text)
            return
        words = " ".join(text.split())
        if not words:
            self._is_spaced = self._is_spaced or bool(text)
            return
        self._is_spaced = self._is_spaced or text[0].isspace()
        if self._cells:
            words = words.replace("|", "\\|")
        self._begin()
        self._put(words)
        self._is_spaced = text[-1].isspace()

    def _begin(self) -> None:
        """Write what precedes a word: line breaks, the marker of an item, a space, marks."""
        if not self._made:
            self._put(self._margin())
        elif self._gap:
            between = "> " * min(self._quotes, self._last_quotes, DEEPEST)
            self._put("\n" + (between.rstrip() + "\n" if self._gap > 1 else "") + self._margin())
        elif self._is_spaced:
            self._put(" ")
        self._gap, self._is_spaced, self._marker, self._last_quotes = 0, False, "", self._quotes
        if self._waiting:
            self._put("".join(self._waiting))
            self._waiting.clear()

    def _margin(self) -> str:
        deep = min(len(self._lists), DEEPEST)
        indent = "  " * (deep - 1) + self._marker if self._marker and deep else "  " * deep
        return "> " * min(self._quotes, DEEPEST) + indent

    def _put(self, text: str) -> None:
        self._made.append(text)
        self._length += len(text)

    def _lay_out(self) -> None:
        """Treat a table as page layout: its cells contain headings or lists."""
        if self._cells:
            self._cells, self._tables[-1:] = 0, ["layout"]
            if self._made[-1] == "|":
                del self._made[-1]
                if not self._made[-1].strip():
                    del self._made[-1]

    def _break(self, lines: int) -> None:
        if self._cells:  # a row of a table is one line
            self._is_spaced = True
        else:
            self._gap = max(self._gap, lines)

    # ------------------------------------------------------------------------------------------------------- tags

    def link(self, href: str) -> None:
        """Start a link; "" ends it."""
        if self._href:
            self._close("[", f"]({self._href})")
        self._href = href
        if href:
            self._waiting.append("[")

    def tag(self, name: str) -> None:
        """Process any other start tag or, with a slash, end tag."""
        plain = name.removeprefix("/")
        is_end = plain != name
        if self._pre is not None:
            self._in_pre(plain, is_end)
        elif plain in _MARKS:
            self._mark(_MARKS[plain], is_end)
        elif plain == "a":
            self.link("")
        elif plain in ("table", "tr", "td", "th"):
            self._table(plain, is_end)
        elif plain in ("ul", "ol", "li"):
            self._list(plain, is_end)
        elif plain in _APART:
            self._apart(plain, is_end)
        elif plain in _BLOCKS or plain == "br":
            self._break(1)
        elif plain == "hr":
            self._break(2)
            self._begin()
            self._put("---")
            self._break(2)

    def _mark(self, mark: str, is_end: bool) -> None:
        now = self._open.get(mark, 0)
        self._open[mark] = max(now + (-1 if is_end else 1), 0)
        if not is_end and now == 0:
            self._waiting.append(mark)
        elif is_end and now == 1:
            self._close(mark, mark)

    def _close(self, opening: str, ending: str) -> None:
        """Close a mark, or drop it if it is empty."""
        if opening in self._waiting:
            self._waiting.remove(opening)
        else:
            self._put(ending)

    def _apart(self, name: str, is_end: bool) -> None:
        if name != "p":
            self._lay_out()
        self._break(2)
        if name == "blockquote":
            self._quotes = max(self._quotes + (-1 if is_end else 1), 0)
        elif name == "pre" and not is_end:
            self._pre = []
        elif name[0] == "h":
            self._waiting = [mark for mark in self._waiting if not mark.startswith("#")]
            if not is_end:
                self._waiting.insert(0, "#" * int(name[1]) + " ")

    def _list(self, name: str, is_end: bool) -> None:
        self._lay_out()
        if name == "li":
            self._break(1)
            self._marker = ""
            if not is_end and self._lists:
                if self._lists[-1] >= 0:
                    self._lists[-1] += 1
                self._marker = "- " if self._lists[-1] < 0 else f"{self._lists[-1]}. "
        elif not is_end:
            self._break(1 if self._lists else 2)
            self._lists.append(-1 if name == "ul" else 0)
        else:
            del self._lists[-1:]
            self._break(1 if self._lists else 2)

    def _table(self, name: str, is_end: bool) -> None:
        if name == "table":
            self._end_row()
            self._break(2)
            if is_end:
                del self._tables[-1:]
            else:
                self._tables[-1:] = ["layout"] if self._tables else []
                self._tables.append("new")
        elif name == "tr":
            self._end_row()
            self._break(1)
        elif not is_end and self._tables and self._tables[-1] == "layout":
            self._break(1)
        elif not is_end and self._tables:
            if self._cells:
                self._put(" |")
            else:
                self._begin()
                self._put("|")
            self._is_spaced = True
            self._cells += 1

    def _end_row(self) -> None:
        if not self._cells:
            return
        self._put(" |")
        cells, self._cells, self._gap = self._cells, 0, 1
        if self._tables and self._tables[-1] == "new":
            self._tables[-1] = "headed"
            self._put("\n" + self._margin() + "| --- " * min(cells, 100) + "|")

    def _in_pre(self, name: str, is_end: bool) -> None:
        if name == "br":
            self.add_text("\n")
        if name != "pre" or not is_end or self._pre is None:
            return
        text = "".join(self._pre).strip("\n")
        self._pre = None
        if not text.strip():
            return
        self._begin()
        margin = "\n" + self._margin()
        if len(text) + text.count("\n") * len(margin) > self._most:
            text = text[: self._most // len(margin)]
        fence = "`" * min(max([2, *(len(run) for run in _TICKS.findall(text))]) + 1, 64)
        self._put(f"{fence}{margin}" + text.replace("\n", margin) + f"{margin}{fence}")
        self._break(2)
