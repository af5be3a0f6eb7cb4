"""Awk and sed scripts: whether one could run a command or write a file.

The text comes from a model, so no backtracking regular expression reads it: each function here walks forward, in linear
time. A script that is not understood counts as one that could do anything.
"""

from __future__ import annotations

import re
from typing import Final

# Calls that run a command, and those that load or call something by name.
AWK: Final = re.compile(r"system[\s\\]*+\(|@[\s\\]*+[A-Za-z_]\w*+[\s\\]*+[(\"]")

_NO_COMMAND: Final = frozenset(";{}!,$~+")  # may stand around commands
_PLAIN: Final = frozenset("pPdDqQhHgGxnNlFz=")  # commands that neither run nor write
_TO_END_OF_LINE: Final = frozenset("#aicrR")
_FLAGS: Final = frozenset("gpiImM0123456789")  # of `s`; not `e` and `w`
_NO_DELIMITER: Final = frozenset("[]^_\\")  # with these, what is in brackets could be read in two ways
_CLASSES: Final = (":", ".", "=")  # [[:alpha:]]
_NOT_UNDERSTOOD: Final = -1


def has_awk_capability(text: str) -> bool:
    """Whether an awk program could run a command or write a file."""
    # After `print`, a `>` or `|` may send the output to a file or a command; before it they are operators.
    printed = text.find("print")
    if printed >= 0 and (">" in text[printed:] or "|" in text[printed:]):
        return True
    return AWK.search(text) is not None or ("|" in text and "getline" in text)


def has_sed_capability(text: str) -> bool:
    """Whether a sed script could; anything that is not understood could."""
    at = 0
    while 0 <= at < len(text):
        at = _after_item(text, at)
    return at == _NOT_UNDERSTOOD


def _after_item(text: str, at: int) -> int:
    """The end of the address, command or sign that begins at `at`; -1 if it is not known to be harmless."""
    char = text[at]
    if char.isspace() or char in _NO_COMMAND or char.isdecimal() or char in _PLAIN:
        return at + 1
    if char in _TO_END_OF_LINE:
        end = text.find("\n", at)
        return len(text) if end < 0 else end
    if char == "/":
        end = _after_pattern(text, at + 1, "/")
        return end if end < 0 else _skip(text, end, "IM")
    if char == ":" or char in "btT":
        return _after_label(text, at)
    if char in "sy":
        return _after_substitution(text, at)
    return _NOT_UNDERSTOOD


def _after_label(text: str, at: int) -> int:
    end = _skip(text, at + 1, " ")
    while end < len(text) and (text[end].isalnum() or text[end] in "_.-"):
        end += 1
    is_ended = text[at] == ":" or end == len(text) or text[end].isspace() or text[end] in ";}"
    return end if is_ended else _NOT_UNDERSTOOD


def _after_substitution(text: str, at: int) -> int:
    """`s` and `y`, with two texts between delimiters."""
    delimiter = text[at + 1 : at + 2]
    if not delimiter or delimiter.isalnum() or delimiter.isspace() or delimiter in _NO_DELIMITER:
        return _NOT_UNDERSTOOD
    is_pattern = text[at] == "s"
    end = _after_pattern(text, at + 2, delimiter) if is_pattern else _after_body(text, at + 2, delimiter)
    if end >= 0:
        end = _after_body(text, end, delimiter)
    return _skip(text, end, _FLAGS) if is_pattern and end >= 0 else end


def _after_body(text: str, at: int, delimiter: str) -> int:
    while at < len(text) and text[at] != "\n":
        if text[at] == delimiter:
            return at + 1
        at += 2 if text[at] == "\\" else 1
    return _NOT_UNDERSTOOD


def _after_pattern(text: str, at: int, delimiter: str) -> int:
    while 0 <= at < len(text) and text[at] != "\n":
        if text[at] == delimiter:
            return at + 1
        if text[at] == "[":
            at = _after_brackets(text, at, delimiter)
        else:
            at += 2 if text[at] == "\\" else 1
    return _NOT_UNDERSTOOD


def _after_brackets(text: str, at: int, delimiter: str) -> int:
    """`[^]a-z[:digit:]]`. Some seds end a pattern at a delimiter in brackets and some do not: it must be escaped."""
    at += 2 if text[at + 1 : at + 2] == "^" else 1
    at += text[at : at + 1] == "]"
    while at < len(text) and text[at] not in ("\n", delimiter):
        if text[at] == "]":
            return at + 1
        if text[at] == "[" and text[at + 1 : at + 2] in _CLASSES:
            end = text.find(f"{text[at + 1]}]", at + 2)
            if end < 0 or delimiter in text[at:end] or "\n" in text[at:end]:
                return _NOT_UNDERSTOOD
            at = end + 2
        else:
            at += 2 if text[at] == "\\" and text[at + 1 : at + 2] == delimiter else 1
    return _NOT_UNDERSTOOD


def _skip(text: str, at: int, signs: str | frozenset[str]) -> int:
    while at < len(text) and text[at] in signs:
        at += 1
    return at
