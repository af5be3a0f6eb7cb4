"""Confusable text: finds words that may look like other words, and text that is read in two directions. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

MAX_WORDS: Final = 8  # words that are reported
MAX_CHECKED: Final = 100_000  # characters that are checked
_WORD: Final = re.compile(r"[^\W_]+|[\u2460-\u24ff]+")
_ORDERED: Final = re.compile(r"[A-Za-z0-9$&|;<>/\\]")


class ConfusableTable(Struct, frozen=True, forbid_unknown_fields=True):
    """confusables.json, which the web UI imports as well."""

    scripts: frozenset[str]
    latin_lookalikes: str
    """Letters of other alphabets that look like Latin letters."""


@cache
def confusable_table() -> ConfusableTable:
    """Return the table; the file is read once."""
    return msgspec.json.decode(Path(__file__).with_name("confusables.json").read_bytes(), type=ConfusableTable)


class Lookalike(Struct, frozen=True):
    """A word that may look like another: of mixed alphabets, of one that looks like Latin, or in styled letters."""

    word: str
    why: Literal["mixed", "foreign", "styled"]


def find_lookalikes(text: str) -> list[Lookalike]:
    """Return such words, each once; ASCII text has none."""
    if text.isascii():
        return []
    text = text[:MAX_CHECKED]
    is_latin = re.search("[A-Za-z]{2}", text) is not None
    words: dict[str, Lookalike] = {}
    for word in dict.fromkeys(_WORD.findall(text)):
        if not word.isascii() and len(words) < MAX_WORDS and (reason := _reason(word, is_latin)):
            words[word] = Lookalike(word, reason)
    return list(words.values())


def _reason(word: str, is_latin: bool) -> Literal["mixed", "foreign", "styled", ""]:
    scripts = {script for char in word if (script := _script(char))}
    if len(scripts) > 1:
        return "mixed"
    folded = unicodedata.normalize("NFKC", word)
    if folded != word and re.search("[A-Za-z0-9]", folded) and any(ord(char) > 0x2000 for char in word):
        return "styled"
    lookalikes = frozenset(confusable_table().latin_lookalikes)
    return "foreign" if is_latin and scripts != {"Latin"} and lookalikes.issuperset(word) else ""


def _script(char: str) -> str:
    first = unicodedata.name(char, "").split(" ")[0].capitalize()
    return first if first in confusable_table().scripts else ""


def has_mixed_direction(text: str) -> bool:
    """Return whether a line mixes right-to-left letters with other characters: it may be displayed in another order."""
    if text.isascii():
        return False
    return any(
        _ORDERED.search(line) and any(unicodedata.bidirectional(char) in ("R", "AL") for char in line)
        for line in text[:MAX_CHECKED].split("\n")
    )
