"""Code, diffs and exact text → lines."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
from pygments.token import Comment, Error, Keyword, Literal, Name, Number, Operator, String, Token
from pygments.util import ClassNotFound

from everturn.terminal.exact import seen
from everturn.tui.drawing.ink import GUTTER, Line, Run, fold, lead, margin, split

MOST_CHARS: Final = 4_000  # of code whose words are coloured at once
MOST_LINE: Final = 500  # characters of a line of it: some lexers take their time with longer ones
MOST_COMPARED: Final = 400  # lines of either text that are compared; longer ones are shown as replaced
MOST_LINES: Final = 1_000  # of an exact text
MOST_EXACT: Final = 60_000  # characters of it

_STYLES: Final[dict[Any, str]] = {
    Comment: "code-comment",
    Keyword: "code-keyword",
    Operator.Word: "code-keyword",
    Name.Function: "code-name",
    Name.Class: "code-name",
    Name.Tag: "code-name",
    Name.Attribute: "code-name",
    Name.Builtin: "code-name",
    Name.Decorator: "code-name",
    String: "code-string",
    Literal: "code-string",
    Number: "code-number",
    Error: "",
    Token: "",
}
# Those that are written most. A model names the language: of an unknown one, pygments would look through all that is
# installed, and some of the rest can be made to think for minutes.
LANGUAGES: Final = frozenset(
    "bash c c# c++ cfg clojure cmake console cpp csharp css dart diff docker dockerfile elixir elm erlang fish go graphql "
    "golang haskell hcl hs html http ini java javascript js json json5 jsonc jsx julia kotlin less lua make makefile "
    "mysql nginx nix objective-c ocaml patch perl php pl postgres postgresql powershell proto protobuf ps1 py pycon "
    "python python3 r rb rs ruby rust scala scss sh shell sql sqlite swift terraform tf toml ts tsx typescript vue "
    "wasm xml yaml yml zig zsh".split()
)
_DIFF: Final = re.compile(r"--- .*\n\+\+\+ .*(\n|$)|@@ -\d+")
_SIGNS: Final = {"+": "good", "-": "bad", "@": "accent"}


@lru_cache(256)
def _style(kind: Any) -> str:
    while kind is not None and kind not in _STYLES:
        kind = kind.parent
    return _STYLES.get(kind, "")


@lru_cache(len(LANGUAGES))
def _lexer(language: str) -> Lexer | None:
    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def coloured(text: str, language: str) -> list[list[Run]]:
    """The lines of some code, with names of styles for its words."""
    lines = split(text)
    lexer = _lexer(language.lower()) if language.lower() in LANGUAGES else None
    if lexer is None or len(text) > MOST_CHARS or any(len(line) > MOST_LINE for line in lines):
        return [[(line, "")] for line in lines]
    found: list[list[Run]] = [[]]
    for kind, piece in lexer.get_tokens("\n".join(lines)):
        first, *more = piece.split("\n")
        found[-1].append((first, _style(kind)))
        found.extend([(line, _style(kind))] for line in more)
    return found


def code(text: str, language: str, width: int) -> list[Line]:
    """Code: a bar at its side, and every blank where it was."""
    bar: Run = ("▏ ", "code-bar")
    return [
        line
        for runs in coloured(text, language)
        for line in lead(fold([(piece, f"code {style}".strip()) for piece, style in runs], width - 2), bar, bar)
    ]


def is_diff(text: str) -> bool:
    """Whether a text is a unified diff."""
    return _DIFF.match(text) is not None


def diff(text: str, width: int) -> list[Line]:
    """A unified diff, every line with its sign; nothing is left out of it."""
    lines: list[Line] = []
    for line in split(text.removesuffix("\n"))[:MOST_LINES]:
        style = "dim" if line.startswith(("--- ", "+++ ")) else _SIGNS.get(line[:1], "")
        lines += lead(fold([(seen(line), style)], width - 2), ("", ""), ("  ", ""))
    return lines


def changes(before: str, after: str, width: int) -> list[Line]:
    """What becomes of a text, line by line."""
    old, new = split(before), split(after)
    if max(len(old), len(new)) > MOST_COMPARED:
        return diff("\n".join([*(f"-{line}" for line in old), *(f"+{line}" for line in new)]), width)
    rows = [row for row in difflib.ndiff(old, new, charjunk=None) if not row.startswith("?")]
    return diff("\n".join(row[0] + " " + row[2:] for row in rows), width)


def exact(text: str, width: int, style: str = "", most: int = MOST_LINES) -> Iterator[Line]:
    """A text in which every character can be seen; very much of it is cut, and that is said."""
    lines = split(text[:MOST_EXACT])
    drawn = 0
    for line in lines:
        for piece in fold([(seen(line), style)], width):
            if drawn >= most:
                break
            drawn += 1
            yield piece
    left = max(len(lines) - most, 0)
    if len(text) > MOST_EXACT or left or drawn >= most:
        yield (("… ", "dim"), (f"({len(text):,})", "dim"))


def boxed(lines: Iterator[Line] | list[Line], depth: int = 0, style: str = "card-bar") -> list[Line]:
    """Lines in a card: behind its bar, which stands in our columns."""
    return [(margin("│", style), (" " * depth, ""), *line) for line in lines]


def room(width: int, depth: int = 0) -> int:
    """The columns of a text in a card."""
    return width - GUTTER - depth
