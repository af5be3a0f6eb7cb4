"""One object in almost-JSON → the same object in strict JSON, token by token, with a note of each mend.

It knows only the object. What may stand around it, and what its numbers come to, is up to `repair.py`.
"""

from __future__ import annotations

import re
from typing import NoReturn

from everturn.core.canonical import clean
from everturn.errors import BadArguments

DEEPEST = 64

# Possessive (`++`, `*+`): what was passed once is never looked at again, so no text takes long.
_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]++)
    |(?P<comment>//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/)
    |(?P<string>"(?:[^"\\]++|\\.)*+"|'(?:[^'\\]++|\\.)*+'|“(?:[^“”\\]++|\\.)*+”)
    |(?P<word>-?[A-Za-z_$][\w$]*+)
    |(?P<number>-?[0-9][\w.+-]*+)
    |(?P<mark>[{}\[\]:,])""",
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_IN_STRING = re.compile(r"""\\u[0-9a-fA-F]{4}|\\.|["\x00-\x1f\ud800-\udfff]""", re.DOTALL)
_JSON_WORDS = frozenset(("true", "false", "null"))
_PYTHON_WORDS = {"True": "true", "False": "false", "None": "null"}
_NO_NUMBERS = frozenset(("nan", "infinity", "inf"))
_NO_KEYS = {*_JSON_WORDS, *_PYTHON_WORDS, "NaN", "Infinity"}  # without quotes it is unclear what these would be


def refuse(why: str) -> NoReturn:
    """Say why arguments cannot be read, and that nothing came of them."""
    # It may quote what no store can keep.
    told = f"the arguments are not one complete JSON object: {clean(why)}"
    raise BadArguments(f"{told}. Nothing was run; send them again, whole")


class Rewriter:
    """Goes through a text once, from left to right, and never back."""

    def __init__(self, text: str, notes: dict[str, None]) -> None:
        self.text = text
        self.at = 0
        self._start = 0  # of the last token
        self._notes = notes  # a dict for its order: each mend is named once
        self._quotes: set[str] = set()

    def rewrite(self) -> str:
        """The object as strict JSON; whatever follows it is refused.

        Raises:
            BadArguments: there is no one way to read it.
        """
        kind, piece = self.next()
        if piece != "{":
            _refuse_start(kind, piece)
        out: list[str] = []
        self._object(out, 1)
        if rest := self.text[self.at :].strip():
            _refuse_rest(rest)
        if "“" in self._quotes and len(self._quotes) > 1:
            refuse("some strings are in “ ” and others are not; write all of them in straight double quotes")
        return "".join(out)

    def next(self) -> tuple[str, str]:
        """The kind and the text of the next token, past spaces and comments."""
        while found := _TOKEN.match(self.text, self.at):
            self._start, self.at = self.at, found.end()
            kind, piece = found.lastgroup or "", found[0]
            if kind == "comment":
                self._note("comment")
            elif kind != "space":
                return kind, piece
            elif piece.strip(" \t\r\n"):
                self._note("odd spaces")
        self._refuse_here()

    def string(self, piece: str) -> str:
        """A string in any quotes as one in straight double quotes, with everything escaped that must be."""
        quote = piece[0]
        self._quotes.add(quote)
        if quote != '"':
            self._note("single quotes" if quote == "'" else "smart quotes")

        def escape(found: re.Match[str]) -> str:
            return self._escape(found[0], quote)

        return f'"{_IN_STRING.sub(escape, piece[1:-1])}"'

    def _escape(self, piece: str, quote: str) -> str:
        if len(piece) == 6:
            return piece  # \u and four digits
        if piece == "\\'":
            self._note("escaped single quote")
            return "'"
        if piece[0] == "\\":
            # In single quotes `\/` is one character to JavaScript and two to Python.
            if piece[1] not in ('"\\bfnrt' if quote == "'" else '"\\/bfnrt'):
                shown = piece if piece.isprintable() else "\\"
                refuse(f"{shown} in a string is no escape; a backslash is written \\\\")
            return piece
        if piece == '"':
            if quote == "“":
                refuse("a string in “ ” has a straight quote in it, so it is unclear where it ends")
            return '\\"'
        if piece >= "\ud800":
            refuse("a string has half of a character in it (a lone surrogate)")
        self._note("raw control character in a string")
        return f"\\u{ord(piece):04x}"

    def _object(self, out: list[str], depth: int) -> None:
        """From behind `{` to behind its `}`."""
        out.append("{")
        kind, piece = self.next()
        is_first = True
        while piece != "}":
            if not is_first:
                out.append(",")
            out.append(self._key(kind, piece))
            self._colon()
            out.append(":")
            self._value(out, *self.next(), depth)
            kind, piece = self._after_value("}")
            is_first = False
        out.append("}")

    def _list(self, out: list[str], depth: int) -> None:
        """From behind `[` to behind its `]`."""
        out.append("[")
        kind, piece = self.next()
        is_first = True
        while piece != "]":
            if not is_first:
                out.append(",")
            self._value(out, kind, piece, depth)
            kind, piece = self._after_value("]")
            is_first = False
        out.append("]")

    def _key(self, kind: str, piece: str) -> str:
        if kind == "string":
            return self.string(piece)
        if kind == "word" and piece not in _NO_KEYS and piece.isascii() and piece[0] != "-":
            self._note("key without quotes")
            return f'"{piece}"'
        self._refuse_token(f"{_short(piece)} stands where a key in double quotes should")

    def _colon(self) -> None:
        _, piece = self.next()
        if piece != ":":
            self._refuse_token(f"{_short(piece)} stands where the colon after a key should")

    def _value(self, out: list[str], kind: str, piece: str, depth: int) -> None:
        if piece in ("{", "["):
            if depth >= DEEPEST:
                refuse(f"they are nested more than {DEEPEST} deep")
            (self._object if piece == "{" else self._list)(out, depth + 1)
        elif kind == "string":
            out.append(self.string(piece))
        elif kind == "number":
            if _NUMBER.fullmatch(piece) is None:
                self._refuse_token(f"{_short(piece)} is not a number as JSON writes it")
            out.append(piece)
        elif piece in _JSON_WORDS:
            out.append(piece)
        elif piece in _PYTHON_WORDS:
            self._note("Python's " + piece)
            out.append(_PYTHON_WORDS[piece])
        elif piece.lstrip("-").lower() in _NO_NUMBERS:
            self._refuse_token(f"JSON has no {_short(piece)}; leave it out, or use a number or null")
        elif kind == "word":
            self._refuse_token(f"{_short(piece)} has no quotes; a text needs double quotes")
        else:
            self._refuse_token(f"{_short(piece)} stands where a value should")

    def _after_value(self, closer: str) -> tuple[str, str]:
        """The token behind a comma, or the closer; a comma in front of the closer is one too many."""
        kind, piece = self.next()
        if piece == closer:
            return kind, piece
        if piece in ("}", "]"):
            refuse(f"there is a {piece} where a {closer} should be")
        if piece != ",":
            self._refuse_token(f"{_short(piece)} follows a value; a comma is missing, or a quote is not escaped")
        kind, piece = self.next()
        if piece == closer:
            self._note("trailing comma")
        return kind, piece

    def _note(self, mend: str) -> None:
        self._notes[mend] = None

    def _refuse_token(self, why: str) -> NoReturn:
        """Refuse the last token, unless it is the very end of the text: then there may have been more of it."""
        if self.at >= len(self.text) and self.text[self._start] not in "{}[]\"'”":
            refuse("they end before the object does; they were cut off")
        refuse(why)

    def _refuse_here(self) -> NoReturn:
        """There is no token here: the text ends, or something in it does not."""
        rest = self.text[self.at :]
        if not rest or rest == "-":
            refuse("they end before the object does; they were cut off")
        if rest[0] in "\"'“":
            refuse("they end in the middle of a string; they were cut off, or a quote is missing")
        if rest.startswith("/*") or rest == "/":
            refuse("they end in the middle of a comment; they were cut off")
        refuse(f"{_short(rest.split(maxsplit=1)[0])} is not JSON")


def _short(piece: str) -> str:
    return piece if len(piece) <= 40 else piece[:39] + "…"


def _refuse_start(kind: str, piece: str) -> NoReturn:
    if piece == "[":
        refuse("they are a list; an object begins with { and names each argument")
    if kind == "mark":
        refuse(f"they begin with {piece} and not with {{")
    refuse("there is text in front of the object, or no object at all; send only the object")


def _refuse_rest(rest: str) -> NoReturn:
    if rest.lstrip(", \t\r\n").startswith("{"):
        refuse("there are two objects; make one call for each")
    if rest[0] in "}]":
        refuse(f"there is a {rest[0]} too many")
    refuse("there is text behind the object; send only the object")
