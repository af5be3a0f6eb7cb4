"""Shell words: what the shell makes of the source of a word, as far as that is known without running anything.

It handles quotes, backslashes and brace lists. A word that the shell would expand has no value here: it is marked, so
that it is never taken for its literal source text, and describes what it could become.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from everturn.core.rules.globs import ANY_RUN, Token
from everturn.core.rules.shell_expansion import EXPANSION_MARK, Expansion, ExpansionCount, mark_expansion
from everturn.permissions.shell.parser import UnreadableCommand

MAX_WORDS = 64  # that one word with braces may become
MAX_BRACES = 16


class WordPiece(NamedTuple):
    """A part of a word: literal text, or a hole that is filled at run time."""

    text: str
    is_quoted: bool = False
    hole: ExpansionCount | None = None


class ShellWord(NamedTuple):
    """A word of a command; `text` is its value, or its source with a mark if the shell would expand it."""

    text: str
    is_static: bool
    source: str
    expansion: Expansion | None = None
    pieces: tuple[WordPiece, ...] = ()

    @property
    def shown(self) -> str:
        """The source of a word that is not literal; else its value."""
        return self.text if self.is_static else self.source


def quote_word(word: ShellWord) -> str:
    """A word as it would be written in a command line: quoted where that makes a difference."""
    return shlex.quote(word.text) if word.is_static else word.source


HOLE: Final = WordPiece("", hole="any")


def literal(text: str, source: str | None = None) -> ShellWord:
    """A word whose value is known."""
    if text.startswith(EXPANSION_MARK):
        raise UnreadableCommand(f"no word may begin with {EXPANSION_MARK}, which marks those that a shell would expand")
    return ShellWord(text, True, text if source is None else source, None, (WordPiece(text, is_quoted=True),))


def expanded(source: str, *pieces: WordPiece) -> ShellWord:
    """A word with holes."""
    return _made(pieces, source)


PLAIN = re.compile(r"""(?:[^\s|&;<>()'"`$\\]|\\.)+""", re.DOTALL)
UNQUOTED = re.compile(r"\\(.)|[^\\]+", re.DOTALL)
# Characters that make several words of one, or another word: globs, a home.
GLOB = re.compile(r"[*?\[]")
HOME = re.compile(r"(?:^|[=:])~")
QUOTED = re.compile(r'"(?:[^"`$\\]|\\.)*"', re.DOTALL)
# In double quotes a backslash is literal unless one of these follows it.
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

# `${NAME}`, with an operator and plain text after it at most. Not `${!x}` and `${x@P}`: they evaluate the value of x.
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


def plain(source: str) -> ShellWord:
    """Read a word, or a piece of one, without quotes."""
    if not PLAIN.fullmatch(source) or source.startswith("#"):
        raise UnreadableCommand(f"{source[:60]!r} cannot be read as a word; quote it")
    joined = source.replace("\\\n", "")
    pieces = [WordPiece(match[1] or match[0], match[1] is not None) for match in UNQUOTED.finditer(joined)]
    return _made(pieces, joined)


def raw(source: str) -> ShellWord:
    """Read 'a string'."""
    if len(source) < 2 or source[0] != "'" or source[-1] != "'" or "'" in source[1:-1]:
        raise UnreadableCommand(f"{source[:60]!r} cannot be read as a quoted word")
    return literal(source[1:-1], source)


def quoted(source: str) -> ShellWord | None:
    """Read "a string" in which nothing is expanded; None if something is."""
    if not QUOTED.fullmatch(source):
        return None
    return literal(unquoted(source[1:-1]), source)


def unquoted(text: str) -> str:
    """The text between double quotes, unescaped."""
    return ESCAPED_IN_QUOTES.sub(lambda match: "" if match[1] == "\n" else match[1], text)


def ansi(source: str) -> ShellWord:
    r"""Read $'a string' with escapes such as \n and \x41."""
    if not re.fullmatch(r"\$'(?:[^'\\]|\\.)*'", source, re.DOTALL):
        raise UnreadableCommand(f"{source[:60]!r} cannot be read as a quoted word")
    try:
        return literal(ANSI_ESCAPE.sub(_unescape, source[2:-1]), source)
    except ValueError:
        raise UnreadableCommand(
            f"{source[:60]!r} has an escape that cannot be read; write the characters themselves"
        ) from None


def _unescape(match: re.Match[str]) -> str:
    by_number = match[1] or match[2] or match[3]
    if match[5] is not None:
        if match[5] not in ANSI_LETTERS:
            raise ValueError(match[5])
        return ANSI_LETTERS[match[5]]
    code = int(by_number, 16) if by_number else int(match[4], 8)
    # \x80 and above are bytes, and not characters; a zero ends the word.
    if code == 0 or (code > 127 and not (match[2] or match[3])) or 0xD800 <= code < 0xE000:
        raise ValueError(code)
    return chr(code)


def joined(pieces: list[ShellWord]) -> ShellWord:
    """Join pieces that touch into one word."""
    return _made([part for piece in pieces for part in piece.pieces], "".join(piece.source for piece in pieces))


def assigned(name: str, value: ShellWord) -> ShellWord:
    """NAME=value. The name is literal whatever the value is, and it is always one word."""
    text = f"{name}={value.text}"
    if value.is_static:
        return ShellWord(text, True, text, None, (WordPiece(text, is_quoted=True),))
    return ShellWord(
        text,
        False,
        f"{name}={value.source}",
        Expansion((f"{name}=", ANY_RUN), "one"),
        (WordPiece(f"{name}=", hole="one"),),
    )


def _made(pieces: Sequence[WordPiece], source: str) -> ShellWord:
    """A word made of pieces, with its braces unexpanded."""
    if has_braces(pieces):
        return ShellWord(mark_expansion(source), False, source, Expansion(), tuple(pieces))
    tokens: list[Token] = []
    count = 0  # index into COUNTS
    is_certain = True
    before = ""
    for piece in pieces:
        piece_tokens, widened = _tokens(piece, before)
        if not is_certain:
            piece_tokens = [ANY_RUN]
        for token in piece_tokens:
            if isinstance(token, str) and tokens and isinstance(tokens[-1], str):
                tokens[-1] += token
            elif not (token == ANY_RUN and tokens[-1:] == [ANY_RUN]):
                tokens.append(token)
        count = max(count, COUNTS.index(widened))
        # A bracket expression matches anything, so nothing after the first one is certain.
        is_certain = is_certain and (piece.is_quoted or "[" not in piece.text)
        before = piece.text[-1:]
    if not count:
        return literal("".join(piece.text for piece in pieces), source)._replace(pieces=tuple(pieces))
    how = COUNTS[count]
    assert how is not None
    return ShellWord(mark_expansion(source), False, source, Expansion(tuple(tokens) or (ANY_RUN,), how), tuple(pieces))


COUNTS: Final[tuple[ExpansionCount | None, ...]] = (None, "one", "some", "any")


def _tokens(piece: WordPiece, before: str) -> tuple[list[Token], ExpansionCount | None]:
    """What a piece becomes, and how many words it makes: unquoted text may be a glob, or a home."""
    if piece.hole:
        return ([piece.text, ANY_RUN] if piece.text else [ANY_RUN]), piece.hole
    if piece.is_quoted:
        return ([piece.text] if piece.text else []), None
    is_glob = GLOB.search(piece.text) is not None
    if HOME.search(piece.text) and (before in ("", "=", ":") or not piece.text.startswith("~")):
        return [ANY_RUN], "some" if is_glob else "one"
    if not is_glob:
        return [piece.text], None
    tokens: list[Token] = []
    for part in re.split(r"([*?]|\[.*)", piece.text, flags=re.DOTALL):
        tokens += [ANY_RUN] if part[:1] in ("*", "?", "[") else [part] if part else []
    return tokens, "some"


# Braces ------------------------------------------------------------------------------------------------------------


def has_braces(pieces: Sequence[WordPiece]) -> bool:
    """Whether bash might expand it to several words; it leaves an empty pair, or a lone brace, alone."""
    text = "".join("Q" if piece.is_quoted or piece.hole else piece.text for piece in pieces)
    return "{" in text.replace("{}", "") and text not in ("{", "}")


def expand_braces(word: ShellWord) -> list[ShellWord]:
    """The words that bash makes of a word with braces, where that is certain; else the word itself, with an unknown
    value.

    Braces come first in bash, and the later expansions read their result as if it had been written: `$X{a,b}` is `$Xa
    $Xb`. So a word with holes is not expanded.
    """
    if not has_braces(word.pieces) or any(piece.hole for piece in word.pieces):
        return [word]
    signs = [(sign, piece.is_quoted) for piece in word.pieces for sign in piece.text or ("",)]
    if signs.count(("{", False)) > MAX_BRACES:
        return [word]
    expansions = _spread(signs)
    if expansions is None:
        return [word]
    words: list[ShellWord] = []
    for each in expansions:
        pieces = [WordPiece(sign, is_quoted) for sign, is_quoted in each]
        if pieces:  # an empty result without quotes is no word
            words.append(_plain(pieces))
    return words


def _plain(pieces: Sequence[WordPiece]) -> ShellWord:
    """A word whose braces have been expanded: the remaining ones are literal."""
    kept = [piece._replace(is_quoted=True) if piece.text in ("{", "}") else piece for piece in pieces]
    merged: list[WordPiece] = []
    for piece in kept:
        if merged and merged[-1].is_quoted == piece.is_quoted:
            merged[-1] = piece._replace(text=merged[-1].text + piece.text)
        else:
            merged.append(piece)
    source = "".join(shlex.quote(piece.text) if piece.is_quoted else piece.text for piece in merged)
    return _made(merged, source)


Signs = list[tuple[str, bool]]


def _spread(signs: Signs) -> list[Signs] | None:
    """All expansions of a word with braces; None where it is not certain what bash would make of it."""
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
            expansions = _spread(signs[left + 1 : right])
            if expansions is None:
                return None
            parts += expansions
    elif "{" in text or ".." in text or "," in text:
        return None
    else:
        parts = [signs[start : end + 1]]
    if len(parts) * len(rest) > MAX_WORDS:
        return None
    return [[*signs[:start], *part, *after] for part in parts for after in rest]


def _matching(signs: Signs, start: int) -> tuple[int | None, list[int]]:
    """Where a brace is closed, and the commas between its parts."""
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
