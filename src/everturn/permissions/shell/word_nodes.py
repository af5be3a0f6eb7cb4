"""Word nodes: reads the words of a command from the syntax tree, and passes the commands inside of them on.

Every byte of a word belongs to a known piece; a remaining byte makes it unreadable.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from everturn.permissions.shell import word_expansion
from everturn.permissions.shell.parser import BLANKS, LINES, UnreadableCommand, check_gap, check_gaps
from everturn.permissions.shell.word_expansion import ShellWord, WordPiece

if TYPE_CHECKING:
    from tree_sitter import Node

LEAVES = {
    "word": word_expansion.plain,
    "number": word_expansion.plain,
    "variable_name": word_expansion.plain,
    "raw_string": word_expansion.raw,
    "ansi_c_string": word_expansion.ansi,
}
SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
LITERALS = SUBSTITUTIONS | frozenset(
    "word number raw_string string ansi_c_string concatenation simple_expansion expansion arithmetic_expansion "
    "brace_expression".split()
)
RANGE = re.compile(r"\{-?[0-9]{1,9}\.\.-?[0-9]{1,9}\}")
LISTS = re.compile(r"^\s*\$(?:@|\{.*@)", re.DOTALL)  # even in quotes they expand to any number of words
REDIRECTS = frozenset({"file_redirect", "herestring_redirect", "heredoc_redirect"})
# Whatever the operator, a redirect writes, appends or reads.
OPERATORS = {">": ">", ">|": ">", "&>": ">", ">&": ">", ">>": ">>", "&>>": ">>", "<": "<", "<&": "<"}
# Prompts are expanded when they are shown, PS4 by `set -x`; the others give names another meaning.
EVALUATED = re.compile(r"PS[0-4]\b|PROMPT_COMMAND\b|BASH_(?:ALIASES|CMDS)\b")
DESCRIPTOR = re.compile(r"[0-9]+-?|-")


class WordReader(ABC):
    """Reads words and redirects; the commands inside are visited by the subclass that reads statements."""

    def __init__(self, source: bytes) -> None:
        self.source = source

    @abstractmethod
    def visit(self, node: Node) -> None:
        """Read a statement."""

    @abstractmethod
    def add(self, words: Sequence[ShellWord], text: str = "") -> None:
        """Add a subject."""

    def text(self, node: Node) -> str:
        """The source text of a node."""
        return self.source[node.start_byte : node.end_byte].decode()

    def unknown(self, node: Node) -> UnreadableCommand:
        """The error for a node that cannot be read."""
        return UnreadableCommand(f"{self.text(node)[:60]!r} cannot be read with certainty; write it more plainly")

    # ------------------------------------------------------------------------------------------------------ words

    def word(self, node: Node) -> ShellWord:
        """Read one word of any kind."""
        kind = node.type
        if kind in LEAVES:
            if node.children:
                raise self.unknown(node)
            return LEAVES[kind](self.text(node))
        if kind == "string":
            return self._string(node)
        if kind == "concatenation":
            check_gaps(node, self.source, None)
            return word_expansion.joined([self.word(child) for child in node.children])
        self._expanded(node)
        text = self.text(node).lstrip()
        return word_expansion.expanded(text, _hole(node.type, text))

    def words(self, node: Node) -> list[ShellWord]:
        """Read an argument: one word, or several where bash expands braces."""
        return word_expansion.expand_braces(self.word(node))

    def _expanded(self, node: Node) -> None:
        """Read what an expansion runs or assigns."""
        # In a string, the parser counts the blanks before an expansion as part of it.
        text = self.text(node).lstrip()
        if node.type in SUBSTITUTIONS:
            self.visit(node)
        elif node.type == "arithmetic_expansion" and text.startswith("$(("):
            self.arithmetic(text[3:])
        elif node.type == "expansion" and word_expansion.EXPANSION.fullmatch(text):
            if assigned := word_expansion.ASSIGNING.fullmatch(text):
                is_plain = re.fullmatch(r"[\w./-]*", assigned[2], re.ASCII)
                text = assigned[2]
                value = word_expansion.literal(text) if is_plain else word_expansion.expanded(text, word_expansion.HOLE)
                self.assign(word_expansion.assigned(assigned[1], value))
        elif node.type == "array":
            self._array(node)
        elif node.type == "brace_expression" and RANGE.fullmatch(text):
            pass  # a sequence of numbers
        elif not (node.type == "simple_expansion" and word_expansion.VARIABLE.fullmatch(text)):
            raise self.unknown(node)

    def _string(self, node: Node) -> ShellWord:
        text = self.text(node)
        if static := word_expansion.quoted(text):
            return static
        if not (text.startswith('"') and text.endswith('"')):
            raise self.unknown(node)
        self._literal_and_expanded(
            node, node.children[1:-1], node.start_byte + 1, node.end_byte - 1, word_expansion.IN_STRING
        )
        return word_expansion.expanded(text, *self._pieces(node))

    def _pieces(self, node: Node) -> Iterator[WordPiece]:
        """The pieces of a string with expansions; they are not split, except for a list such as "$@"."""
        at = node.start_byte + 1
        for child in node.children[1:-1]:
            if child.type == "string_content" or (not child.is_named and self.text(child).strip() == "$"):
                continue
            # In a string, the parser counts the blanks before an expansion as part of it.
            blanks = len(self.text(child)) - len(self.text(child).lstrip())
            yield WordPiece(
                word_expansion.unquoted(self.source[at : child.start_byte + blanks].decode()), is_quoted=True
            )
            yield WordPiece("", hole="any" if LISTS.search(self.text(child)) else "one")
            at = child.end_byte
        yield WordPiece(word_expansion.unquoted(self.source[at : node.end_byte - 1].decode()), is_quoted=True)

    def _literal_and_expanded(
        self, node: Node, children: Sequence[Node], at: int, end: int, literal: re.Pattern[bytes]
    ) -> None:
        """Read text with expansions in it; everything else has to be plain text."""
        for child in children:
            if child.type in ("string_content", "heredoc_content"):
                continue  # checked with what surrounds it
            check_gap(self.source[at : child.start_byte], literal)
            if not child.is_named and self.text(child).strip() == "$":
                self._lone_dollar(child)
            else:
                self._expanded(child)
            at = child.end_byte
        check_gap(self.source[at:end], literal)

    def _lone_dollar(self, node: Node) -> None:
        if self.source[node.end_byte : node.end_byte + 1] not in (
            b'"',
            b" ",
            b"\t",
            b"\n",
            b".",
            b",",
            b"/",
            b"|",
            b")",
        ):
            raise self.unknown(node)

    def _array(self, node: Node) -> None:
        check_gaps(node, self.source, LINES)
        for child in node.children[1:-1]:
            if child.type not in LITERALS:
                raise self.unknown(child)
            self.word(child)

    def arithmetic(self, text: str) -> None:
        """Read an expression up to its `))`. With names in it, it evaluates their values, as `let` does."""
        body = text[:-2]
        if not text.endswith("))") or not word_expansion.ARITHMETIC.fullmatch(body) or not _is_balanced(body):
            raise UnreadableCommand(f"(({text[:60]} cannot be read with certainty; write it more plainly")
        if word_expansion.NAMED.search(body):
            self.add((word_expansion.literal("let"), word_expansion.literal(body.strip())))

    def assign(self, word: ShellWord) -> None:
        """Add an assignment, NAME=value."""
        name, _, value = word.text.partition("=")
        if EVALUATED.match(name) and ("$" in value or "`" in value or "[" in name or not word.is_static):
            raise UnreadableCommand(f"the shell evaluates the value of {name} as code; do not set it")
        self.add((word,), word.shown)

    def assignment(self, node: Node) -> ShellWord:
        """Read NAME=value, as one word."""
        check_gaps(node, self.source, None)
        target, sign, *values = node.children
        name = self.text(target)
        if not re.fullmatch(r"[A-Za-z_]\w*(?:\[[0-9]+\])?", name, re.ASCII) or len(values) > 1:
            raise self.unknown(node)
        value = self.word(values[0]) if values else word_expansion.literal("")
        if sign.type == "+=":
            value = word_expansion.expanded(f"${{{name}}}{value.source}", word_expansion.HOLE)
        return word_expansion.assigned(name, value)

    # -------------------------------------------------------------------------------------------------- redirects

    def redirect(self, node: Node) -> list[ShellWord]:
        """Add a redirect; returns the words after it, which are the command's (`echo >&2 this`)."""
        if node.type == "heredoc_redirect":
            self._heredoc(node)
            return []
        children = list(node.children)
        check_gaps(node, self.source, BLANKS)
        if children[0].type == "file_descriptor":
            if children.pop(0).end_byte != children[0].start_byte:
                raise self.unknown(node)
        operator, at = children[0].type, children[0].end_byte
        is_closing = operator in (">&-", "<&-")
        if any(child.type not in LITERALS for child in children[1:]) or (len(children) == 1 and not is_closing):
            raise self.unknown(node)
        for child in children[1:] if is_closing else children[2:]:
            if child.start_byte in (at, children[1].end_byte if not is_closing else at):
                raise self.unknown(node)
        words = [self.word(child) for child in children[1:]]
        if is_closing:
            return words
        self._note_redirect(node, operator, words[0])
        return words[1:]

    def _note_redirect(self, node: Node, operator: str, target: ShellWord) -> None:
        if operator in (">&", "<&") and target.is_static and DESCRIPTOR.fullmatch(target.text):
            return
        sign = "<<<" if node.type == "herestring_redirect" and operator == "<<<" else OPERATORS.get(operator)
        if sign is None:
            raise self.unknown(node)
        self.add((word_expansion.literal(sign), target), f"{sign} {target.shown}")

    def _heredoc(self, node: Node) -> None:
        parts = {child.type: child for child in node.children}
        if not {"heredoc_start", "heredoc_body", "heredoc_end"} <= parts.keys():
            raise self.unknown(node)
        start, body, end = parts["heredoc_start"], parts["heredoc_body"], parts["heredoc_end"]
        delimiter = _delimiter(self.text(start))
        self._check_heredoc(node, start, body, end, delimiter.text)
        self.add((word_expansion.literal("<<"), delimiter), f"<< {delimiter.text}")
        if delimiter.source == delimiter.text:
            self._literal_and_expanded(body, body.children, body.start_byte, body.end_byte, word_expansion.IN_HEREDOC)
        # The rest of the line is between the delimiter and the text.
        rest = node.children[node.children.index(start) + 1 : node.children.index(body)]
        check_gaps(node, self.source, LINES)
        for child in rest:
            if child.type in REDIRECTS and child.type != "heredoc_redirect":
                if self.redirect(child):
                    raise self.unknown(child)
            elif child.is_named:
                self.visit(child)
            elif child.type not in ("&&", "||", "|", "|&", ";", "&"):
                raise self.unknown(child)

    def _check_heredoc(self, node: Node, start: Node, body: Node, end: Node, delimiter: str) -> None:
        """Check that the text begins on the next line and ends where bash ends it: at the first line with the
        delimiter.
        """
        line = self.source[start.end_byte : body.start_byte]
        lines = self.source[body.start_byte : end.end_byte].decode().split("\n")
        if any(child.type == "<<-" for child in node.children):
            lines = [each.lstrip("\t") for each in lines]
        is_whole = self.source[end.end_byte : end.end_byte + 1] in (b"", b"\n")
        is_one_line = line.count(b"\n") == 1 and line.endswith(b"\n") and b"<<" not in line
        if not is_whole or not is_one_line or delimiter not in lines or lines.index(delimiter) != len(lines) - 1:
            raise UnreadableCommand(
                "where this here-document ends cannot be read with certainty; write it more plainly"
            )


def _delimiter(source: str) -> ShellWord:
    """Read the word after `<<`."""
    if re.fullmatch(r"\w+", source, re.ASCII):
        return word_expansion.literal(source)
    if inner := re.fullmatch(r"""'(\w+)'|"(\w+)"|\\(\w+)""", source, re.ASCII):
        return word_expansion.literal(inner[1] or inner[2] or inner[3], source)
    raise UnreadableCommand(f"{source!r} cannot be read as the end of a here-document; use a plain word")


def _hole(kind: str, text: str) -> WordPiece:
    """The piece that represents an expansion without quotes."""
    if kind == "process_substitution":
        return WordPiece("/", hole="one")  # the name of a pipe
    return word_expansion.HOLE


def _is_balanced(text: str) -> bool:
    depth = 0
    for sign in text:
        depth += (sign == "(") - (sign == ")")
        if depth < 0:
            return False
    return depth == 0
