"""Search terms: splits a text and a query into terms. Pure, and the same for every store, so that all find the same.

A term is a run of letters, digits and `_`, without regard to case or width. Scripts that are written without spaces
give pairs of characters instead, so that a part of a sentence is found without knowing where its words begin. A query
matches a text that has, for each of the query's terms, a term that begins with it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice

TEXT_LIMIT = 100_000
"""Characters of a text that are indexed. A longer text is found by its beginning only."""

TERMS_LIMIT = 20_000
"""Maximum number of different terms of a text. Together they stay below the megabyte a `tsvector` may have."""

TERM_LENGTH_LIMIT = 64
"""Characters of a term; the rest of a longer one is ignored, in texts and in queries."""

QUERY_TERMS_LIMIT = 32
"""Maximum number of terms of a query."""

# Thai and Lao, Myanmar, Khmer, kana, Han, Hangul (which has spaces, but hangs its endings onto its words).
_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0eff\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17e0-\u17e9"
    "\u3005\u3007\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)

# Combining marks, which `\w` does not match: accents, points, vowel signs of Indic scripts.
_MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e8\u06ea-\u06ed\u0900-\u0963\u0971-\u0df3\u0f71-\u0f84\u1ab0-\u1aff\u1dc0-\u1dff"
)

_PLAIN = "".join(char.lower() if char.isalnum() or char == "_" else " " for char in map(chr, range(128)))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a run of letters, of its pieces, and of a letter without spaces; compiling takes 20 ms."""
    return (
        re.compile(f"[\\w{_MARKS}{_UNSPACED}]+"),
        re.compile(f"[{_UNSPACED}]+|[^{_UNSPACED}]+"),
        re.compile(f"[{_UNSPACED}]"),
    )


def text_terms(text: str) -> list[str]:
    """Return the different terms of a text, in order of first occurrence."""
    if text.isascii():  # most texts are, and this takes a quarter of the time
        runs = dict.fromkeys(text[:TEXT_LIMIT].translate(_PLAIN).split())
        return list(dict.fromkeys([run[:TERM_LENGTH_LIMIT] for run in runs]))[:TERMS_LIMIT]
    return list(dict.fromkeys(islice(_words(text, is_query=False), 4 * TERMS_LIMIT)))[:TERMS_LIMIT]


def query_terms(text: str) -> list[str]:
    """Return the terms of a query, each of which has to begin a term of the text. A query without any finds nothing."""
    return list(dict.fromkeys(islice(_words(text, is_query=True), QUERY_TERMS_LIMIT)))


def matches(query: Sequence[str], text: str) -> bool:
    """Return whether a text contains all terms of a query."""
    if not query:
        return False
    terms = " " + " ".join(text_terms(text))
    return all(f" {word}" in terms for word in query)


def _words(text: str, is_query: bool) -> Iterator[str]:
    text = text[:TEXT_LIMIT]
    if text.isascii():
        yield from (run[:TERM_LENGTH_LIMIT] for run in text.translate(_PLAIN).split())
        return
    text = unicodedata.normalize("NFKC", text)[:TEXT_LIMIT]
    runs, pieces, unspaced = _patterns()
    for run in runs.findall(text.casefold()):
        if run.isascii():
            yield run[:TERM_LENGTH_LIMIT]
            continue
        for piece in pieces.findall(run):
            if unspaced.match(piece):
                yield from _pairs(piece, is_query)
            else:
                yield piece[:TERM_LENGTH_LIMIT]


def _pairs(piece: str, is_query: bool) -> Iterator[str]:
    for at in range(len(piece) - 1):
        yield piece[at : at + 2]
    # The last character of a text begins no pair and is indexed alone; in a query only if it is the only one.
    if not is_query or len(piece) == 1:
        yield piece[-1]
