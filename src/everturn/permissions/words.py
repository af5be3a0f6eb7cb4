"""The source of a word → what the shell makes of it, as far as that can be said without running anything.

Knows quotes and backslashes. What the shell would expand has no value here: it stays as it is written.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from everturn.permissions.parsing import Unreadable


class Word(NamedTuple):
    """A word of a command; `text` is its value, or its source if the shell would expand it."""

    text: str
    is_static: bool
    source: str


PLAIN = re.compile(r"""(?:[^\s|&;<>()'"`$\\]|\\.)+""", re.DOTALL)
# What makes of one word several, or another: globs, braces, a home.
EXPANDS = re.compile(r"[*?\[{]|(?:^|[=:])~")
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
QUOTED = re.compile(r'"(?:[^"`$\\]|\\.)*"', re.DOTALL)
# In double quotes a backslash stands for itself unless one of these follows it.
ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\\n])')
# Literal text between the expansions of a string, and of a here-document.
IN_STRING = re.compile(rb'(?:[^"`$\\]|\\.)*', re.DOTALL)
IN_HEREDOC = re.compile(rb"(?:[^`$\\]|\\[^\n]|\$(?=[ \t\n.,]))*", re.DOTALL)

ANSI_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
ANSI_LETTERS = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
} | {sign: sign for sign in "\\'\"?"}

# `${NAME}`, with an operator and plain text behind it at most. Not `${!x}` and `${x@P}`: they evaluate what x holds.
EXPANSION = re.compile(
    r"\$\{#?(?:[A-Za-z_]\w*|[0-9]+|[@*#?$-])(?:\[(?:[0-9]+|@|\*)\])?"
    r"(?::[ 0-9][0-9: -]*"
    r"""|(?::?[-+?=]|%%?|##?|//?[#%]?|\^\^?|,,?)(?:[^$`'"\\{}<>()\[\]]|\$[A-Za-z_]\w*)*)?\}""",
    re.ASCII,
)
ASSIGNING = re.compile(r"\$\{([A-Za-z_]\w*)(?:\[[^\]]*\])?:?=(.*)\}", re.DOTALL | re.ASCII)
VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])", re.ASCII)
ARITHMETIC = re.compile(r"(?:[\w\s+*/%<>=!&|^~?:,()-]|\$(?=\w))*", re.ASCII)
NAMED = re.compile(r"[A-Za-z_]")
PATTERN = re.compile(r"""(?:[^\s|&;<>()'"`$\\]|\\[^\n])+\$?""")
ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\[[^\]]*\])?\+?=", re.ASCII)
IDENTIFIER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def plain(source: str) -> Word:
    """Read a word, or a piece of one, without quotes."""
    if not PLAIN.fullmatch(source) or source.startswith("#"):
        raise Unreadable(f"{source[:60]!r} cannot be read as a word; quote it")
    joined = source.replace("\\\n", "")
    # What is escaped expands no more; the letter in its place keeps the others where they are.
    if EXPANDS.search(ESCAPED.sub("x", joined)) and source not in ("{", "}"):
        return Word(joined, False, joined)
    return Word(ESCAPED.sub(r"\1", joined), True, joined)


def raw(source: str) -> Word:
    """Read 'a string'."""
    if len(source) < 2 or source[0] != "'" or source[-1] != "'" or "'" in source[1:-1]:
        raise Unreadable(f"{source[:60]!r} cannot be read as a quoted word")
    return Word(source[1:-1], True, source)


def quoted(source: str) -> Word | None:
    """Read "a string" in which nothing is expanded; None if something is."""
    if not QUOTED.fullmatch(source):
        return None
    return Word(ESCAPED_IN_QUOTES.sub(lambda found: "" if found[1] == "\n" else found[1], source[1:-1]), True, source)


def ansi(source: str) -> Word:
    r"""Read $'a string' with escapes such as \n and \x41."""
    if not re.fullmatch(r"\$'(?:[^'\\]|\\.)*'", source, re.DOTALL):
        raise Unreadable(f"{source[:60]!r} cannot be read as a quoted word")
    try:
        return Word(ANSI_ESCAPE.sub(_unescape, source[2:-1]), True, source)
    except ValueError:
        raise Unreadable(
            f"{source[:60]!r} has an escape that cannot be read; write the characters themselves"
        ) from None


def _unescape(found: re.Match[str]) -> str:
    by_number = found[1] or found[2] or found[3]
    if found[5] is not None:
        if found[5] not in ANSI_LETTERS:
            raise ValueError(found[5])
        return ANSI_LETTERS[found[5]]
    code = int(by_number, 16) if by_number else int(found[4], 8)
    # \x80 and above are bytes, and not characters; a zero ends the word.
    if code == 0 or (code > 127 and not (found[2] or found[3])) or 0xD800 <= code < 0xE000:
        raise ValueError(code)
    return chr(code)


def joined(pieces: list[Word]) -> Word:
    """Make one word of pieces that touch."""
    source = "".join(piece.source for piece in pieces)
    # The parser takes braces apart, so they are seen only in the whole; an empty pair is left alone by bash too.
    has_braces = any(piece.source == "{" for piece in pieces) and "{" in source.replace("{}", "")
    is_static = all(piece.is_static for piece in pieces) and not has_braces
    return Word("".join(piece.text for piece in pieces) if is_static else source, is_static, source)
