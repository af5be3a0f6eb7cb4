"""The source of a word → what the shell makes of it, as far as that can be said without running anything.

Knows quotes, backslashes and lists in braces. What the shell would expand has no value here: such a word is marked, so
that it is never taken for the literal text that it is written as, and says what it could become.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from everturn.core.globs import RUN, Token
from everturn.core.shell_expansion import MARK, Count, Expansion, marked
from everturn.permissions.parsing import Unreadable

MAX_WORDS = 64  # that one word with braces may become
MAX_BRACES = 16


class Piece(NamedTuple):
    """A part of a word: literal text, or a hole that is filled when it runs."""

    text: str
    is_quoted: bool = False
    hole: Count | None = None


class Word(NamedTuple):
    """A word of a command; `text` is its value, or its source with a mark if the shell would expand it."""

    text: str
    is_static: bool
    source: str
    expansion: Expansion | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def shown(self) -> str:
        """A word that is not literal, as it is written; else its value."""
        return self.text if self.is_static else self.source


def as_written(word: Word) -> str:
    """A word as it would be written in a line: quoted where that makes a difference."""
    return shlex.quote(word.text) if word.is_static else word.source


HOLE: Final = Piece("", hole="any")


def literal(text: str, source: str | None = None) -> Word:
    """A word of which the value is known."""
    if text.startswith(MARK):
        raise Unreadable(f"no word may begin with {MARK}, which marks those that a shell would expand")
    return Word(text, True, text if source is None else source, None, (Piece(text, is_quoted=True),))


def expanded(source: str, *pieces: Piece) -> Word:
    """A word with holes."""
    return _made(pieces, source)


PLAIN = re.compile(r"""(?:[^\s|&;<>()'"`$\\]|\\.)+""", re.DOTALL)
UNQUOTED = re.compile(r"\\(.)|[^\\]+", re.DOTALL)
# What makes of one word several, or another: file names, a home.
GLOB = re.compile(r"[*?\[]")
HOME = re.compile(r"(?:^|[=:])~")
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
    r"""|(?::?[-+?=]|%%?|##?|//?[#%]?|\^\^?|,,?)(?:[^$`'"\\{}<>()\[\]]|\$[A-Za-z_]\w*+)*+)?\}""",
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
    pieces = [Piece(found[1] or found[0], found[1] is not None) for found in UNQUOTED.finditer(joined)]
    return _made(pieces, joined)


def raw(source: str) -> Word:
    """Read 'a string'."""
    if len(source) < 2 or source[0] != "'" or source[-1] != "'" or "'" in source[1:-1]:
        raise Unreadable(f"{source[:60]!r} cannot be read as a quoted word")
    return literal(source[1:-1], source)


def quoted(source: str) -> Word | None:
    """Read "a string" in which nothing is expanded; None if something is."""
    if not QUOTED.fullmatch(source):
        return None
    return literal(unquoted(source[1:-1]), source)


def unquoted(text: str) -> str:
    """The text between double quotes, without the backslashes that have done their work."""
    return ESCAPED_IN_QUOTES.sub(lambda found: "" if found[1] == "\n" else found[1], text)


def ansi(source: str) -> Word:
    r"""Read $'a string' with escapes such as \n and \x41."""
    if not re.fullmatch(r"\$'(?:[^'\\]|\\.)*'", source, re.DOTALL):
        raise Unreadable(f"{source[:60]!r} cannot be read as a quoted word")
    try:
        return literal(ANSI_ESCAPE.sub(_unescape, source[2:-1]), source)
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
    return _made([part for piece in pieces for part in piece.pieces], "".join(piece.source for piece in pieces))


def assigned(name: str, value: Word) -> Word:
    """NAME=value. The name is literal whatever the value is, and it is always one word."""
    text = f"{name}={value.text}"
    if value.is_static:
        return Word(text, True, text, None, (Piece(text, is_quoted=True),))
    return Word(
        text, False, f"{name}={value.source}", Expansion((f"{name}=", RUN), "one"), (Piece(f"{name}=", hole="one"),)
    )


def _made(pieces: Sequence[Piece], source: str) -> Word:
    """A word of pieces, with braces in it left as they are."""
    if has_braces(pieces):
        return Word(marked(source), False, source, Expansion(), tuple(pieces))
    tokens: list[Token] = []
    count = 0  # the place in COUNTS
    is_certain = True
    before = ""
    for piece in pieces:
        found, widened = _tokens(piece, before)
        if not is_certain:
            found = [RUN]
        for token in found:
            if isinstance(token, str) and tokens and isinstance(tokens[-1], str):
                tokens[-1] += token
            elif not (token == RUN and tokens[-1:] == [RUN]):
                tokens.append(token)
        count = max(count, COUNTS.index(widened))
        # Within brackets anything may stand, so behind the first nothing is certain.
        is_certain = is_certain and (piece.is_quoted or "[" not in piece.text)
        before = piece.text[-1:]
    if not count:
        return literal("".join(piece.text for piece in pieces), source)._replace(pieces=tuple(pieces))
    how = COUNTS[count]
    assert how is not None
    return Word(marked(source), False, source, Expansion(tuple(tokens) or (RUN,), how), tuple(pieces))


COUNTS: Final[tuple[Count | None, ...]] = (None, "one", "some", "any")


def _tokens(piece: Piece, before: str) -> tuple[list[Token], Count | None]:
    """What a piece becomes, and how many words it makes: unquoted text stands for file names, or a home."""
    if piece.hole:
        return ([piece.text, RUN] if piece.text else [RUN]), piece.hole
    if piece.is_quoted:
        return ([piece.text] if piece.text else []), None
    is_glob = GLOB.search(piece.text) is not None
    if HOME.search(piece.text) and (before in ("", "=", ":") or not piece.text.startswith("~")):
        return [RUN], "some" if is_glob else "one"
    if not is_glob:
        return [piece.text], None
    found: list[Token] = []
    for part in re.split(r"([*?]|\[.*)", piece.text, flags=re.DOTALL):
        found += [RUN] if part[:1] in ("*", "?", "[") else [part] if part else []
    return found, "some"


# Braces ------------------------------------------------------------------------------------------------------------


def has_braces(pieces: Sequence[Piece]) -> bool:
    """Whether bash might make several words of it; a pair with nothing in it, or a lone sign, it leaves alone."""
    text = "".join("Q" if piece.is_quoted or piece.hole else piece.text for piece in pieces)
    return "{" in text.replace("{}", "") and text not in ("{", "}")


def spread(word: Word) -> list[Word]:
    """The words that bash makes of one with braces, where that is plain; else the word itself, of which nothing is known.

    Braces come first in bash, and what follows reads their result as if it had been written: `$X{a,b}` is `$Xa $Xb`. So
    there is no hole in a word that is spread.
    """
    if not has_braces(word.pieces) or any(piece.hole for piece in word.pieces):
        return [word]
    signs = [(sign, piece.is_quoted) for piece in word.pieces for sign in piece.text or ("",)]
    if signs.count(("{", False)) > MAX_BRACES:
        return [word]
    made = _spread(signs)
    if made is None:
        return [word]
    words: list[Word] = []
    for each in made:
        pieces = [Piece(sign, is_quoted) for sign, is_quoted in each]
        if pieces:  # nothing at all, without quotes, is no word
            words.append(_plain(pieces))
    return words


def _plain(pieces: Sequence[Piece]) -> Word:
    """A word whose braces have been spread: those that are left stand for themselves."""
    kept = [piece._replace(is_quoted=True) if piece.text in ("{", "}") else piece for piece in pieces]
    merged: list[Piece] = []
    for piece in kept:
        if merged and merged[-1].is_quoted == piece.is_quoted:
            merged[-1] = piece._replace(text=merged[-1].text + piece.text)
        else:
            merged.append(piece)
    source = "".join(shlex.quote(piece.text) if piece.is_quoted else piece.text for piece in merged)
    return _made(merged, source)


Signs = list[tuple[str, bool]]


def _spread(signs: Signs) -> list[Signs] | None:
    """All that a word with braces becomes; None where it is not plain what bash would make of it."""
    start = next((at for at, sign in enumerate(signs) if sign == ("{", False)), None)
    if start is None:
        return None if ("}", False) in signs else [signs]
    end, commas = _matching(signs, start)
    if end is None:
        return None
    inside = signs[start + 1 : end]
    text = "".join(sign if not is_quoted else "Q" for sign, is_quoted in inside)
    rest = _spread(signs[end + 1 :])
    if rest is None:
        return None
    if commas:
        edges = [start, *commas, end]
        parts: list[Signs] = []
        for left, right in pairwise(edges):
            found = _spread(signs[left + 1 : right])
            if found is None:
                return None
            parts += found
    elif "{" in text or ".." in text or "," in text:
        return None
    else:
        parts = [signs[start : end + 1]]
    if len(parts) * len(rest) > MAX_WORDS:
        return None
    return [[*signs[:start], *part, *after] for part in parts for after in rest]


def _matching(signs: Signs, start: int) -> tuple[int | None, list[int]]:
    """Where a brace is closed, and where the commas are between its parts."""
    depth, commas = 0, list[int]()
    for at in range(start, len(signs)):
        sign, is_quoted = signs[at]
        if is_quoted:
            continue
        if sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return at, commas
        elif sign == "," and depth == 1:
            commas.append(at)
    return None, commas
