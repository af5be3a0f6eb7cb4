"""Code, diffs and exact text, as styled lines."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from pygments.token import Comment, Error, Keyword, Literal, Name, Number, Operator, String, Token

from everturn.terminal.text.visible_text import escape_invisible
from everturn.terminal.tui.render.text import GUTTER, Line, Run, gutter_run, prefix_lines, split_lines, wrap_anywhere

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_HIGHLIGHTED: Final = 4_000  # characters of code that are highlighted at once
MAX_HIGHLIGHTED_LINE: Final = 500  # characters of a line of code: some lexers are slow on longer ones
MAX_COMPARED: Final = 400  # lines of either text that are compared; a longer text is shown as replaced
MAX_EXACT_LINES: Final = 1_000  # lines of an exact text
MAX_EXACT_CHARS: Final = 60_000  # characters of an exact text

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
# The most common ones. The model names the language: for an unknown one, pygments would search everything that is
# installed, and some other lexers can be made to run for minutes.
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
    from pygments.lexers import get_lexer_by_name  # pyright: ignore[reportUnknownVariableType]
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def highlight(text: str, language: str) -> list[list[Run]]:
    """Return the lines of code, with style names for its tokens."""
    lines = split_lines(text)
    lexer = _lexer(language.lower()) if language.lower() in LANGUAGES else None
    if lexer is None or len(text) > MAX_HIGHLIGHTED or any(len(line) > MAX_HIGHLIGHTED_LINE for line in lines):
        return [[(line, "")] for line in lines]
    highlighted: list[list[Run]] = [[]]
    for kind, piece in lexer.get_tokens("\n".join(lines)):
        first, *more = piece.split("\n")
        highlighted[-1].append((first, _style(kind)))
        highlighted.extend([(line, _style(kind))] for line in more)
    return highlighted


def draw_code(text: str, language: str, width: int) -> list[Line]:
    """Return code with a bar at its side, and all whitespace kept."""
    bar: Run = ("▏ ", "code-bar")
    return [
        line
        for runs in highlight(text, language)
        for line in prefix_lines(
            wrap_anywhere([(piece, f"code {style}".strip()) for piece, style in runs], width - 2), bar, bar
        )
    ]


def is_diff(text: str) -> bool:
    """Whether a text is a unified diff."""
    return _DIFF.match(text) is not None


def draw_diff(text: str, width: int) -> list[Line]:
    """Return a unified diff, every line with its sign; nothing is left out of it."""
    lines: list[Line] = []
    for line in split_lines(text.removesuffix("\n"))[:MAX_EXACT_LINES]:
        style = "dim" if line.startswith(("--- ", "+++ ")) else _SIGNS.get(line[:1], "")
        lines += prefix_lines(wrap_anywhere([(escape_invisible(line), style)], width - 2), ("", ""), ("  ", ""))
    return lines


def draw_changes(before: str, after: str, width: int) -> list[Line]:
    """Return the changes from one text to another, line by line."""
    old, new = split_lines(before), split_lines(after)
    if max(len(old), len(new)) > MAX_COMPARED:
        return draw_diff("\n".join([*(f"-{line}" for line in old), *(f"+{line}" for line in new)]), width)
    rows = [row for row in difflib.ndiff(old, new, charjunk=None) if not row.startswith("?")]
    return draw_diff("\n".join(row[0] + " " + row[2:] for row in rows), width)


def draw_exact(text: str, width: int, style: str = "", max_lines: int = MAX_EXACT_LINES) -> Iterator[Line]:
    """Yield a text in which every character is visible; a very long text is cut, with a mark that says so."""
    lines = split_lines(text[:MAX_EXACT_CHARS])
    drawn = 0
    for line in lines:
        for piece in wrap_anywhere([(escape_invisible(line), style)], width):
            if drawn >= max_lines:
                break
            drawn += 1
            yield piece
    lines_left = max(len(lines) - max_lines, 0)
    if len(text) > MAX_EXACT_CHARS or lines_left or drawn >= max_lines:
        yield (("… ", "dim"), (f"({len(text):,})", "dim"))


def add_card_bar(lines: Iterator[Line] | list[Line], depth: int = 0, style: str = "card-bar") -> list[Line]:
    """Return lines in a card: behind its bar, which is in our own columns."""
    return [(gutter_run("│", style), (" " * depth, ""), *line) for line in lines]


def card_text_width(width: int, depth: int = 0) -> int:
    """Return the columns of a text in a card."""
    return width - GUTTER - depth
