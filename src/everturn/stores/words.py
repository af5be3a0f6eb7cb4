"""Text → the words it can be found by. Pure, and the same for every store: what one finds, all find.

A word is a run of letters, digits and `_`, without regard to case or width. Scripts that are written without spaces give
pairs of characters instead, so that a piece of a sentence is found although nobody knows where its words begin. A query
is found in a text that has, for each of the query's words, one that begins with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice

TEXT_LIMIT = 100_000
"""Characters of a text that are looked at. Whoever pastes a book finds it by its beginning."""

WORDS_LIMIT = 20_000
"""Different words of a text. Together they stay below the megabyte a `tsvector` may have."""

WORD_LIMIT = 64
"""Characters of a word; the rest of a longer one is ignored, in texts and in queries."""

ASKED_LIMIT = 32
"""Words of a query."""

# Thai and Lao, Myanmar, Khmer, kana, Han, Hangul (which has spaces, but hangs its endings onto its words).
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17e0-\u17e9"
    "\u3005\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)

# Signs that belong to the letter before them and that `\w` leaves out: accents, points, the vowels of India.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0df3\u0f71-\u0f84\u1ab0-\u1aff\u1dc0-\u1dff"
)

_RUN = re.compile(f"[\\w{_MARKS}{_UNSPACED}]+")
_PIECE = re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]").match
_PLAIN = "".join(char.lower() if char.isalnum() or char == "_" else " " for char in map(chr, range(128)))


def words(text: str) -> list[str]:
    """The different words of a text, in the order in which they first come."""
    if text.isascii():  # most are, and then it takes a quarter of the time
        found = dict.fromkeys(text[:TEXT_LIMIT].translate(_PLAIN).split())
        return list(dict.fromkeys([run[:WORD_LIMIT] for run in found]))[:WORDS_LIMIT]
    return list(dict.fromkeys(islice(_words(text, is_asked=False), 4 * WORDS_LIMIT)))[:WORDS_LIMIT]


def asked(text: str) -> list[str]:
    """The words of a query, each of which is to begin a word of the text. Without any, nothing is found."""
    return list(dict.fromkeys(islice(_words(text, is_asked=True), ASKED_LIMIT)))


def matches(query: Sequence[str], text: str) -> bool:
    """Whether a text has what was `asked`."""
    if not query:
        return False
    there = " " + " ".join(words(text))
    return all(f" {word}" in there for word in query)


def _words(text: str, is_asked: bool) -> Iterator[str]:
    text = text[:TEXT_LIMIT]
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)[:TEXT_LIMIT]
    for run in _RUN.findall(text.casefold()):
        if run.isascii():
            yield run[:WORD_LIMIT]
            continue
        for piece in _PIECE.findall(run):
            if _IS_UNSPACED(piece):
                yield from _pairs(piece, is_asked)
            else:
                yield piece[:WORD_LIMIT]


def _pairs(piece: str, is_asked: bool) -> Iterator[str]:
    for at in range(len(piece) - 1):
        yield piece[at : at + 2]
    # A text ends with a character that begins no pair, and that is found, too. In a query only a lone one is meant.
    if not is_asked or len(piece) == 1:
        yield piece[-1]
