"""A text → words in it that may look like others, and whether it is read in two directions. Pure."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

from msgspec import Struct

SCRIPTS: Final = (
    "LATIN",
    "CYRILLIC",
    "GREEK",
    "ARMENIAN",
    "CHEROKEE",
    "COPTIC",
    "LISU",
    "HEBREW",
    "ARABIC",
    "GEORGIAN",
)
# Letters of other alphabets that are drawn like those of ours.
TWINS: Final = frozenset("асеорхуіјѕһԁԛԝӏкмтвнгАВЕЅІЈКМНОРСТУХԌԚԜᴀοανικρυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧօոսհցՕᎪᏴᏟᎠᎬᎻᏦᏞᎷᏢᎡᏚᎢᏙᏔᏃ")
MOST: Final = 8  # words that are named
LONGEST: Final = 100_000  # characters that are looked at
_WORD: Final = re.compile(r"[^\W_]+|[\u2460-\u24ff]+")
_ORDERED: Final = re.compile(r"[A-Za-z0-9$&|;<>/\\]")


class Lookalike(Struct, frozen=True):
    """A word that may look like another: of several alphabets, of one that looks like ours, or in disguise."""

    word: str
    why: Literal["mixed", "foreign", "styled"]


def lookalikes(text: str) -> list[Lookalike]:
    """Such words, each once; a text of ASCII has none."""
    if text.isascii():
        return []
    text = text[:LONGEST]
    is_latin = re.search("[A-Za-z]{2}", text) is not None
    found: dict[str, Lookalike] = {}
    for word in dict.fromkeys(_WORD.findall(text)):
        if not word.isascii() and len(found) < MOST and (why := _why(word, is_latin)):
            found[word] = Lookalike(word, why)
    return list(found.values())


def _why(word: str, is_latin: bool) -> Literal["mixed", "foreign", "styled", ""]:
    scripts = {script for char in word if (script := _script(char))}
    if len(scripts) > 1:
        return "mixed"
    folded = unicodedata.normalize("NFKC", word)
    if folded != word and re.search("[A-Za-z0-9]", folded) and any(ord(char) > 0x2000 for char in word):
        return "styled"
    return "foreign" if is_latin and scripts != {"LATIN"} and TWINS.issuperset(word) else ""


def _script(char: str) -> str:
    first = unicodedata.name(char, "").split(" ")[0]
    return first if first in SCRIPTS else ""


def is_mixed_way(text: str) -> bool:
    """Whether letters that run from right to left stand beside what does not: it may be shown in another order."""
    if text.isascii():
        return False
    return any(
        _ORDERED.search(line) and any(unicodedata.bidirectional(char) in ("R", "AL") for char in line)
        for line in text[:LONGEST].split("\n")
    )
