"""Shell parser: a syntax tree of a command line that is reliable, or `UnreadableCommand`.

tree-sitter reads generously, and bash does not. So everything is checked again: which characters occur, and that
between the parts of a node there is nothing but blanks.
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

# Blanks between words. A continuation counts only beside a blank: without one it joins its two sides.
BLANKS = re.compile(rb"(?:\\\n)*[ \t](?:[ \t]|\\\n)*")
# The same with newlines, between statements.
LINES = re.compile(rb"(?:\\\n)*[ \t\n](?:[ \t\n]|\\\n)*")

# Invisible, or similar to a blank, although their Unicode category is neither control nor format.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | frozenset(
    chr(code) for code in (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
)
HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})


class UnreadableCommand(ToolError):
    """A command line of which it is not certain what it would run."""

    code = "denied"


def parse(text: str) -> Node:
    """Parse a command line; it contains nothing that the parser did not understand."""
    check_characters(text)
    source = text.encode()
    if len(source) > MAX_BYTES:
        raise UnreadableCommand(f"this command line is too long to check ({len(source)} bytes, at most {MAX_BYTES})")
    root = _parser().parse(source).root_node
    if root.has_error:
        raise UnreadableCommand(f"this command line cannot be read with certainty{_place(root)}; write it more plainly")
    before, after = source[: root.start_byte], source[root.end_byte :]
    if (before and not LINES.fullmatch(before)) or (after and not LINES.fullmatch(after)):
        raise UnreadableCommand("this command line begins or ends in a way that cannot be read; write it more plainly")
    return root


def check_characters(text: str) -> None:
    """Refuse characters that are invisible, or look like something else."""
    if text.isascii() and text.isprintable():
        return
    for character in text:
        if character in " \n\t":
            continue
        if character in INVISIBLE or unicodedata.category(character) in HIDDEN:
            raise UnreadableCommand(f"the command line contains the character U+{ord(character):04X}; remove it")


def check_gaps(node: Node, source: bytes, allowed: re.Pattern[bytes] | None) -> None:
    """Check that nothing but `allowed` is between the parts of a node; None: they touch."""
    at = node.start_byte
    for child in node.children:
        check_gap(source[at : child.start_byte], allowed)
        at = child.end_byte
    check_gap(source[at : node.end_byte], allowed)


def check_gap(gap: bytes, allowed: re.Pattern[bytes] | None) -> None:
    """Check that the source between two parts is empty, or allowed."""
    if gap and (allowed is None or not allowed.fullmatch(gap)):
        raise UnreadableCommand(
            f"{gap.decode(errors='replace')[:60]!r} stands where it cannot be read; write it more plainly"
        )


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
    """Make a parser: it costs little, and a shared one would need a lock between threads."""
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
