"""Simple commands: reads commands, assignments and redirects from their nodes."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from everturn.core.rules.policy import Subject
from everturn.permissions.shell import word_expansion
from everturn.permissions.shell.parser import BLANKS, UnreadableCommand, check_gap
from everturn.permissions.shell.word_expansion import ShellWord
from everturn.permissions.shell.word_nodes import LITERALS, REDIRECTS, WordReader
from everturn.permissions.shell.wrappers import RESERVED

if TYPE_CHECKING:
    from tree_sitter import Node

# In `python - <<E` tree-sitter-bash 0.25 drops the dash, and leaves a gap in the tree.
LOST_DASH = re.compile(rb"[ \t]+-[ \t]+")


MAX_ITEMS = 64


class CommandReader(WordReader):
    """Reads a simple command, with its assignments and redirects."""

    def __init__(self, source: bytes, items: list[Subject]) -> None:
        super().__init__(source)
        self.items = items

    def add_subject(self, item: Subject) -> None:
        """Add a subject to those of the line."""
        if len(self.items) >= MAX_ITEMS:
            raise UnreadableCommand(f"this command line does more than {MAX_ITEMS} things; split it")
        self.items.append(item)

    @abstractmethod
    def run(self, words: Sequence[ShellWord]) -> None:
        """Add a command, and what it would run itself."""

    def command(self, node: Node, more: Sequence[ShellWord] = ()) -> None:
        words: list[ShellWord] = []
        for child in self._apart(node):
            if child.type == "variable_assignment" and not words:
                self.assign(self.assignment(child))
            elif child.type == "command_name" and not words and len(child.children) == 1:
                words.append(self._name(child.children[0]))
            elif child.type in LITERALS and words:
                words += self.words(child)
            elif child.type in REDIRECTS:
                if self.redirect(child):
                    raise UnreadableCommand(f"{self.text(child)!r} cannot be read with certainty; put redirects last")
            else:
                raise self.unknown(child)
        if words:
            self.run([*words, *more])
        elif more:
            raise self.unknown(node)

    def _apart(self, node: Node) -> Sequence[Node]:
        """Return the parts of a node, after checking that blanks separate them."""
        at = node.start_byte
        for child in node.children:
            gap = self.source[at : child.start_byte]
            if not (child.type == "heredoc_redirect" and LOST_DASH.fullmatch(gap)):
                check_gap(gap, BLANKS)
            # `log>x` is clear; in `2>x` and `{a}>x` what precedes the operator belongs to it.
            is_clear = child.type in REDIRECTS and re.match(rb"[A-Za-z'\")}]", self.source[at - 1 : at])
            if at == child.start_byte != node.start_byte and (
                not is_clear or child.children[0].type == "file_descriptor" or self.source[at - 1 : at] == b"}"
            ):
                raise self.unknown(node)
            at = child.end_byte
        check_gap(self.source[at : node.end_byte], BLANKS)
        return node.children

    def _name(self, node: Node) -> ShellWord:
        if node.type not in LITERALS:
            raise self.unknown(node)
        word = self.word(node)
        if word.source in RESERVED or word_expansion.ASSIGNMENT.match(word.source):
            raise self.unknown(node)
        return word

    def builtin(self, node: Node) -> None:
        """`export`, `declare`, `unset` and the like, which have nodes of their own."""
        first, *others = self._apart(node)
        words = [word_expansion.literal(self.text(first))]
        for child in others:
            if child.type == "variable_assignment":
                words.append(self.assignment(child))
            elif child.type in LITERALS or child.type == "variable_name":
                words.append(self.word(child))
            else:
                raise self.unknown(child)
        self.run(words)

    def redirected(self, node: Node) -> None:
        children = self._apart(node)
        body = [child for child in children if child.type not in REDIRECTS]
        if len(body) > 1:
            raise self.unknown(node)
        # Words may follow a redirect, so it is read first; but it is added after its command.
        start = len(self.items)
        more: list[ShellWord] = []
        at = node.start_byte
        for child in children:
            if LOST_DASH.fullmatch(self.source[at : child.start_byte]):
                more.append(word_expansion.literal("-"))
            if child.type in REDIRECTS:
                more += self.redirect(child)
            at = child.end_byte
        redirects = self.items[start:]
        del self.items[start:]
        if body and body[0].type == "command":
            self.command(body[0], more)
        elif more:
            raise self.unknown(node)
        elif body:
            self.visit(body[0])
        for item in redirects:
            self.add_subject(item)

    def lone_redirect(self, node: Node) -> None:
        if self.redirect(node):
            raise self.unknown(node)

    def lone_assignment(self, node: Node) -> None:
        self.assign(self.assignment(node))

    def assignments(self, node: Node) -> None:
        for child in self._apart(node):
            if child.type != "variable_assignment":
                raise self.unknown(child)
            self.lone_assignment(child)
