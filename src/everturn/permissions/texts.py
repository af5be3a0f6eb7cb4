"""A script of awk or sed → whether it could run a command or write a file."""

from __future__ import annotations

import re
from typing import Final

# What runs a command by its name, and what loads or calls something under a name of its own.
AWK: Final = re.compile(r"system[\s\\]*\(|@[\s\\]*[A-Za-z_]\w*[\s\\]*[(\"]")

# Between two delimiters. Some seds end a pattern at one in brackets and some do not, so there it may stand escaped only.
_PATTERN = r"(?:(?!\1)[^\\\n\[]|\\.|\[\^?\]?(?:\\\1|(?!\1)[^\]\n])*\])*"
_BODY = r"(?:(?!\1)[^\\\n]|\\.)*"
_ADDRESS = r"/(?:[^/\\\n\[]|\\.|\[\^?\]?(?:\\/|[^/\]\n])*\])*/[IM]*"
# Commands that neither run nor write, and what may stand around them. `a`, `i` and `c` take the rest of their line.
SED: Final = re.compile(
    rf"[\s;{{}}!,$~+]|\d+|{_ADDRESS}|#[^\n]*|:[ ]*[\w.-]*|[btT][ ]*[\w.-]*(?=[\s;}}]|$)|[aic][^\n]*|[rR][^\n]*"
    rf"|s([^\w\s\\]){_PATTERN}\1{_BODY}\1[gpiImM0-9]*|[pPdDqQhHgGxnNlFz=]",
    re.DOTALL,
)
_TRANSLATION: Final = re.compile(rf"y([^\w\s\\]){_BODY}\1{_BODY}\1", re.DOTALL)


def has_power_in_awk(text: str) -> bool:
    """Whether a program of awk could run a command or write a file."""
    # Behind `print`, a `>` or `|` may send what is printed to a file or a command; before it they compare and choose.
    printed = text.find("print")
    if printed >= 0 and (">" in text[printed:] or "|" in text[printed:]):
        return True
    return AWK.search(text) is not None or ("|" in text and "getline" in text)


def has_power_in_sed(text: str) -> bool:
    """Whether a script of sed could; anything that is not understood could."""
    at = 0
    while at < len(text):
        found = SED.match(text, at) or _TRANSLATION.match(text, at)
        if found is None:
            return True
        at = found.end()
    return False
