"""Compound statements: reads the statements in lists, loops, conditions and functions from their nodes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from everturn.permissions.shell import word_expansion
from everturn.permissions.shell.parser import BLANKS, LINES, UnreadableCommand, check_gap, check_gaps
from everturn.permissions.shell.simple_commands import CommandReader
from everturn.permissions.shell.word_expansion import ShellWord
from everturn.permissions.shell.word_nodes import LITERALS

if TYPE_CHECKING:
    from tree_sitter import Node

SIGNS = frozenset("; & && || | |& ! { } ( ) $( <( >( ` if then elif else fi while until do done".split())
CASE_SIGNS = SIGNS | frozenset(";; ;& ;;&".split())
CLOSING = frozenset(") } fi done".split())
CLAUSES = frozenset({"do_group", "elif_clause", "else_clause"})
EXPRESSIONS = frozenset({"binary_expression", "unary_expression", "parenthesized_expression"})
TESTS = frozenset("= == != =~ !".split())
LONG_TESTS = TESTS | frozenset("&& || ( ) < >".split())


class BlockReader(CommandReader):
    """Reads nodes that contain other statements."""

    def block(self, node: Node) -> None:
        text = self.text(node).lstrip()
        if node.type == "compound_statement" and text.startswith("(("):
            return self.arithmetic(text[2:])
        if text.startswith(("((", "$((")) and node.type in ("subshell", "command_substitution"):
            raise UnreadableCommand("'((' may be arithmetic or two subshells; put a space between the parentheses")
        if node.type == "command_substitution" and text.startswith("`") and re.search(r"[`\\#]|<<", text[1:-1]):
            raise UnreadableCommand("backticks around backslashes, comments or backticks cannot be read; write $(…)")
        return self._row(node.children, node.start_byte, node.end_byte)

    def _row(self, children: Sequence[Node], at: int, end: int, signs: frozenset[str] = SIGNS) -> None:
        """Read statements; between any two of them there is an operator or a line break."""
        is_apart = True
        for child in children:
            gap = self.source[at : child.start_byte]
            check_gap(gap, LINES)
            is_apart = is_apart or b"\n" in gap.replace(b"\\\n", b"")
            if child.type == "comment":
                self._comment(child)
            elif child.is_named:
                if not is_apart and child.type not in CLAUSES:
                    raise self.unknown(child)
                self.visit(child)
                is_apart = False
            else:
                self._sign(child, is_apart, signs)
                is_apart = child.type.strip() not in CLOSING
            at = child.end_byte
        check_gap(self.source[at:end], LINES)

    def _sign(self, node: Node, is_apart: bool, signs: frozenset[str]) -> None:
        sign = self.text(node).strip()
        if sign not in signs:
            raise self.unknown(node)
        after = self.source[node.end_byte : node.end_byte + 1]
        if (sign == "{" and after not in (b" ", b"\t", b"\n")) or (sign == "}" and not is_apart):
            raise UnreadableCommand("a group is written `{ command; }`, with a space and a semicolon")

    def _comment(self, node: Node) -> None:
        before = self.source[: node.start_byte][-1:]
        if before not in (b"", b" ", b"\t", b"\n", b";", b"&", b"|", b"(", b")") or "\n" in self.text(node):
            raise self.unknown(node)

    def function(self, node: Node) -> None:
        check_gaps(node, self.source, LINES)
        name = next(child for child in node.children if child.type == "word")
        self.add((word_expansion.literal("function"), self.word(name)))
        for child in node.children:
            if child.is_named and child != name:
                self.visit(child)
            elif child != name and child.type not in ("function", "(", ")"):
                raise self.unknown(child)

    def loop(self, node: Node) -> None:
        check_gaps(node, self.source, LINES)
        _, name, *others = node.children
        values = [child for child in others if child.type in LITERALS]
        for word in [word for value in values for word in self.words(value)]:
            self.assign(word_expansion.assigned(self.text(name), word))
        if name.type != "variable_name":
            raise self.unknown(name)
        if not values:
            self.assign(word_expansion.assigned(self.text(name), word_expansion.expanded('"$@"', word_expansion.HOLE)))
        for child in others:
            if child.type in ("do_group", "compound_statement"):
                self.visit(child)
            elif child.type == "comment":
                self._comment(child)
            elif child.type not in ("in", ";", "&") and child not in values:
                raise self.unknown(child)

    def counting_for(self, node: Node) -> None:
        kinds = [child.type for child in node.children]
        if kinds[:2] != ["for", "(("] or "))" not in kinds:
            raise self.unknown(node)
        opened, closed = node.children[1], node.children[kinds.index("))")]
        for part in self.source[opened.end_byte : closed.start_byte].decode().split(";"):
            self.arithmetic(part + "))")
        self._row(node.children[kinds.index("))") + 1 :], closed.end_byte, node.end_byte)

    def case(self, node: Node) -> None:
        check_gaps(node, self.source, LINES)
        for child in node.children:
            if child.type == "case_item":
                self._case_item(child)
            elif child.type in LITERALS:
                self.word(child)
            elif child.type == "comment":
                self._comment(child)
            elif child.type not in ("case", "in", "esac", ";"):
                raise self.unknown(child)

    def _case_item(self, node: Node) -> None:
        kinds = [child.type for child in node.children]
        if ")" not in kinds:
            raise self.unknown(node)
        end = kinds.index(")")
        at = node.start_byte
        for child in node.children[: end + 1]:
            check_gap(self.source[at : child.start_byte], BLANKS)
            self._pattern(child)
            at = child.end_byte
        self._row(node.children[end + 1 :], at, node.end_byte, CASE_SIGNS)

    def _pattern(self, node: Node) -> None:
        if node.type in LITERALS:
            self.word(node)
        elif node.type in ("extglob_pattern", "regex", "test_operator"):
            if not word_expansion.PATTERN.fullmatch(self.text(node)) or node.children:
                raise self.unknown(node)
        elif node.type not in ("(", "|", ")"):
            raise self.unknown(node)

    def test(self, node: Node) -> None:
        first, *others = node.children
        is_long = first.type == "[["
        if first.type not in ("[", "[[") or others[-1].type not in ("]", "]]"):
            raise self.unknown(node)
        words = [word_expansion.literal(first.type)]
        at = first.end_byte
        for part in _leaves(others[:-1]):
            gap = self.source[at : part.start_byte]
            check_gap(gap, LINES if is_long else BLANKS)
            if not gap and not (is_long and b"(" in self.source[at - 1 : at] + self.source[part.start_byte : at + 1]):
                raise self.unknown(node)
            words.append(self._test_word(part, is_long))
            at = part.end_byte
        check_gap(self.source[at : others[-1].start_byte], LINES if is_long else BLANKS)
        if at == others[-1].start_byte:
            raise self.unknown(node)
        self.run([*words, word_expansion.literal(others[-1].type, "")])

    def _test_word(self, node: Node, is_long: bool) -> ShellWord:
        if node.type in LITERALS:
            return self.word(node)
        if node.is_named:
            self._pattern(node)
        elif node.type not in (LONG_TESTS if is_long else TESTS):
            raise self.unknown(node)
        return word_expansion.literal(self.text(node))


def _leaves(nodes: Sequence[Node]) -> list[Node]:
    """Take expressions apart, down to their words and signs."""
    leaves: list[Node] = []
    ahead = list(reversed(nodes))
    while ahead:
        node = ahead.pop()
        if node.type in EXPRESSIONS:
            ahead.extend(reversed(node.children))
        else:
            leaves.append(node)
    return leaves
