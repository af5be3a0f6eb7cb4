"""JSON repair: rewrites one object in almost-JSON as strict JSON, token by token, with a note of each repair.

It handles only the object. `arguments` handles the text around it and the range of its numbers.
"""

from __future__ import annotations

import re
from typing import NoReturn

from everturn.core.canonical_json import replace_surrogates
from everturn.errors import BadArguments

MAX_NESTING = 64

# Possessive quantifiers (`++`, `*+`) never backtrack, so matching is linear for every text.
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
_NO_KEYS = {*_JSON_WORDS, *_PYTHON_WORDS, "NaN", "Infinity"}  # ambiguous without quotes


def refuse_arguments(why: str) -> NoReturn:
    """Raise an error that says why arguments cannot be parsed, and that nothing was run."""
    # It may quote characters that no store can encode.
    message = f"the arguments are not one complete JSON object: {replace_surrogates(why)}"
    raise BadArguments(f"{message}. Nothing was run. Send the complete arguments again")


class JsonRepairer:
    """A one-pass tokenizer and rewriter without backtracking."""

    def __init__(self, text: str, notes: dict[str, None]) -> None:
        self.text = text
        self.at = 0
        self._start = 0  # of the last token
        self._notes = notes  # a dict for its order: each repair is named once
        self._quotes: set[str] = set()

    def rewrite(self) -> str:
        """The object as strict JSON; text after it is refused.

        Raises:
            BadArguments: the text is ambiguous or invalid.
        """
        kind, piece = self.next()
        if piece != "{":
            _refuse_start(kind, piece)
        out: list[str] = []
        self._object(out, 1)
        if rest := self.text[self.at :].strip():
            _refuse_rest(rest)
        if "“" in self._quotes and len(self._quotes) > 1:
            refuse_arguments("some strings are in “ ” and others are not; write all of them in straight double quotes")
        return "".join(out)

    def next(self) -> tuple[str, str]:
        """The kind and text of the next token, after spaces and comments."""
        while match := _TOKEN.match(self.text, self.at):
            self._start, self.at = self.at, match.end()
            kind, piece = match.lastgroup or "", match[0]
            if kind == "comment":
                self._note("comment")
            elif kind != "space":
                return kind, piece
            elif piece.strip(" \t\r\n"):
                self._note("odd spaces")
        self._refuse_here()

    def string(self, piece: str) -> str:
        """Rewrite a string in any quotes as a valid JSON string."""
        quote = piece[0]
        self._quotes.add(quote)
        if quote != '"':
            self._note("single quotes" if quote == "'" else "smart quotes")

        def escape(match: re.Match[str]) -> str:
            return self._escape(match[0], quote)

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
                refuse_arguments(f"{shown} in a string is no escape; a backslash is written \\\\")
            return piece
        if piece == '"':
            if quote == "“":
                refuse_arguments("a string in “ ” has a straight quote in it, so it is unclear where it ends")
            return '\\"'
        if piece >= "\ud800":
            refuse_arguments("a string has half of a character in it (a lone surrogate)")
        self._note("raw control character in a string")
        return f"\\u{ord(piece):04x}"

    def _object(self, out: list[str], depth: int) -> None:
        """Rewrite an object, from after `{` to after its `}`."""
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
        """Rewrite a list, from after `[` to after its `]`."""
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
            if depth >= MAX_NESTING:
                refuse_arguments(f"they are nested more than {MAX_NESTING} deep")
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
        """The token after a comma, or the closer; a trailing comma before the closer is dropped."""
        kind, piece = self.next()
        if piece == closer:
            return kind, piece
        if piece in ("}", "]"):
            refuse_arguments(f"there is a {piece} where a {closer} should be")
        if piece != ",":
            self._refuse_token(f"{_short(piece)} follows a value; a comma is missing, or a quote is not escaped")
        kind, piece = self.next()
        if piece == closer:
            self._note("trailing comma")
        return kind, piece

    def _note(self, repair: str) -> None:
        self._notes[repair] = None

    def _refuse_token(self, why: str) -> NoReturn:
        """Refuse the last token; at the very end of the text, refuse it as truncated."""
        if self.at >= len(self.text) and self.text[self._start] not in "{}[]\"'”":
            refuse_arguments("they end before the object does; they were cut off")
        refuse_arguments(why)

    def _refuse_here(self) -> NoReturn:
        """Refuse text without a valid token: the text ends, or a string or comment in it does not."""
        rest = self.text[self.at :]
        if not rest or rest == "-":
            refuse_arguments("they end before the object does; they were cut off")
        if rest[0] in "\"'“":
            refuse_arguments("they end in the middle of a string; they were cut off, or a quote is missing")
        if rest.startswith("/*") or rest == "/":
            refuse_arguments("they end in the middle of a comment; they were cut off")
        refuse_arguments(f"{_short(rest.split(maxsplit=1)[0])} is not JSON")


def _short(piece: str) -> str:
    return piece if len(piece) <= 40 else piece[:39] + "…"


def _refuse_start(kind: str, piece: str) -> NoReturn:
    if piece == "[":
        refuse_arguments("they are a list; an object begins with { and names each argument")
    if kind == "mark":
        refuse_arguments(f"they begin with {piece} and not with {{")
    refuse_arguments("there is text in front of the object, or no object at all; send only the object")


def _refuse_rest(rest: str) -> NoReturn:
    if rest.lstrip(", \t\r\n").startswith("{"):
        refuse_arguments("there are two objects; make one call for each")
    if rest[0] in "}]":
        refuse_arguments(f"there is a {rest[0]} too many")
    refuse_arguments("there is text behind the object; send only the object")
