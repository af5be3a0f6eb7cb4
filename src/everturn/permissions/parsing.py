"""The text of a command line → a syntax tree that can be relied on, or `Unreadable`.

tree-sitter reads generously, and bash does not. So nothing is believed that is not checked again: which characters
occur, and that between the parts of a node there is nothing but blanks.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING

from everturn.errors import ConfigError, ToolError

if TYPE_CHECKING:
    from tree_sitter import Language, Node, Parser

MAX_BYTES = 8 * 1024
NOT_INSTALLED = "to judge shell commands, install everturn[shell]"

# Blanks between words. A continuation counts only beside a blank: without one it joins what stands left and right of it.
BLANKS = re.compile(rb"(?:\\\n)*[ \t](?:[ \t]|\\\n)*")
# The same with newlines, between statements.
LINES = re.compile(rb"(?:\\\n)*[ \t\n](?:[ \t\n]|\\\n)*")

# They are not seen, or look like a blank, and are neither control nor format characters by their category.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | frozenset(
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
)
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


class Unreadable(ToolError):
    """A command line of which it cannot be said what it would run."""

    code = "denied"


def parse(text: str) -> Node:
    """Make a tree of a command line, with nothing in it that the parser did not understand."""
    check_characters(text)
    source = text.encode()
    if len(source) > MAX_BYTES:
        raise Unreadable(f"this command line is too long to judge ({len(source)} bytes, at most {MAX_BYTES})")
    root = _parser().parse(source).root_node
    if root.has_error:
        raise Unreadable(f"this command line cannot be read with certainty{_place(root)}; write it more plainly")
    before, after = source[: root.start_byte], source[root.end_byte :]
    if (before and not LINES.fullmatch(before)) or (after and not LINES.fullmatch(after)):
        raise Unreadable("this command line begins or ends in a way that cannot be read; write it more plainly")
    return root


def check_characters(text: str) -> None:
    """Refuse characters that are not seen, or that are seen as something else."""
    if text.isascii() and text.isprintable():
        return
    for character in text:
        if character in " \n\t":
            continue
        if character in INVISIBLE or unicodedata.category(character) in HIDDEN:
            raise Unreadable(f"the command line holds the character U+{ord(character):04X}; write it without")


def check_gaps(node: Node, source: bytes, allowed: re.Pattern[bytes] | None) -> None:
    """See that nothing but `allowed` stands between the parts of a node; None: they touch."""
    at = node.start_byte
    for child in node.children:
        check_gap(source[at : child.start_byte], allowed)
        at = child.end_byte
    check_gap(source[at : node.end_byte], allowed)


def check_gap(gap: bytes, allowed: re.Pattern[bytes] | None) -> None:
    """See that a piece of source between two parts is empty, or what may stand there."""
    if gap and (allowed is None or not allowed.fullmatch(gap)):
        raise Unreadable(f"{gap.decode(errors='replace')[:60]!r} stands where it cannot be read; write it more plainly")


def _place(root: Node) -> str:
    node = root
    while not (node.is_error or node.is_missing):
        inner = next((child for child in node.children if child.has_error or child.is_missing), None)
        if inner is None:
            return ""
        node = inner
    shown = (node.text or b"").decode(errors="replace")[:40]
    return f" near {shown!r}" if shown else ""


def _parser() -> Parser:
    """Make a parser: it costs little, and one that is shared would have to be guarded between threads."""
    try:
        from tree_sitter import Parser
    except ImportError as missing:
        raise ConfigError(NOT_INSTALLED) from missing
    return Parser(_language())


@cache
def _language() -> Language:
    try:
        import tree_sitter
        import tree_sitter_bash
    except ImportError as missing:
        raise ConfigError(NOT_INSTALLED) from missing
    return tree_sitter.Language(tree_sitter_bash.language())
