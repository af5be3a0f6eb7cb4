"""A shell command line → everything it would do, each as a subject of its own that rules are matched against.

It runs nothing, and looks nothing up: no variable, no alias, no file. Where it cannot say what would run, it says so
(`Unreadable`) and does not guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from everturn.core.policy import Subject
from everturn.core.shell_expansion import Expansion
from everturn.permissions.blocks import BlockReader
from everturn.permissions.commands import MAX_ITEMS
from everturn.permissions.parsing import Unreadable, parse
from everturn.permissions.words import Word, as_written
from everturn.permissions.wrappers import Argv, Assigned, Power, Script, inner

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["MAX_ITEMS", "Unreadable", "read_command"]

MAX_SCRIPTS = 8  # a script in a script in a script
MAX_NESTING = 60

# What an item that is not a command begins with; a command of that name could pass for one.
SIGNS_OF_ITEMS = frozenset({">", ">>", "<", "<<", "<<<", "function"})
# Nodes that only hold statements and the signs between them.
BLOCKS = frozenset(
    "program list pipeline compound_statement subshell do_group if_statement elif_clause else_clause while_statement "
    "negated_command command_substitution process_substitution".split()
)
# Other shells than bash read these otherwise.
BASH_ONLY = re.compile(r"(?<!\$)\(\(|\$'|\$\"|\[\[|[<>]\(|<<<|&>|>&[^0-9-]|\|&|\bfunction\b|\bcoproc\b")


def read_command(text: str) -> list[Subject]:
    """Read a command line into its commands, redirects, assignments and functions, inner ones included.

    Raises:
        Unreadable: it cannot be said what it would run.
        ConfigError: the parser is not installed.
    """
    items: list[Subject] = []
    _read_script(text, items, 0)
    return items


def _read_script(text: str, items: list[Subject], scripts: int, is_bash: bool = True) -> None:
    if scripts > MAX_SCRIPTS:
        raise Unreadable("these commands are nested too deep to judge; run the inner ones by themselves")
    if not is_bash and BASH_ONLY.search(text):
        raise Unreadable("this script is for bash, and another shell would read it otherwise; use `bash -c`")
    root = parse(text)
    _Reader(text.encode(), items, scripts).visit(root)


class _Reader(BlockReader):
    """Walks one tree; every kind of node has its method, and an unknown one is refused."""

    def __init__(self, source: bytes, items: list[Subject], scripts: int) -> None:
        super().__init__(source, items)
        self._scripts = scripts
        self._nesting = 0
        self._kinds: dict[str, Callable[[Node], None]] = {
            "command": self.command,
            "declaration_command": self.builtin,
            "unset_command": self.builtin,
            "redirected_statement": self.redirected,
            "file_redirect": self.lone_redirect,
            "herestring_redirect": self.lone_redirect,
            "variable_assignment": self.lone_assignment,
            "variable_assignments": self.assignments,
            "function_definition": self.function,
            "for_statement": self.loop,
            "c_style_for_statement": self.counting_for,
            "case_statement": self.case,
            "test_command": self.test,
        }

    def add(self, words: Sequence[Word], text: str = "") -> None:
        """Note something that the command line does."""
        self.keep(_subject(words, text))

    def visit(self, node: Node) -> None:
        """Read a statement."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise Unreadable("this command line is nested too deep to judge; split it")
        if node.type in BLOCKS:
            self.block(node)
        elif node.type in self._kinds:
            self._kinds[node.type](node)
        else:
            raise self.unknown(node)
        self._nesting -= 1

    def run(self, words: Sequence[Word], depth: int = 0) -> None:
        """Note a command, and what it would run in its turn."""
        name = words[0]
        if not name.is_static or not name.text:
            raise Unreadable(f"{name.shown[:60]!r} is only known when it runs; name the command itself")
        if "=" in name.text or name.text in SIGNS_OF_ITEMS or name.text.startswith("!"):
            raise Unreadable(f"{name.text[:60]!r} as the name of a command looks like something else; rename it")
        if depth > MAX_SCRIPTS:
            raise Unreadable("these commands are nested too deep to judge; run the inner ones by themselves")
        self.add(words)
        for found in inner(words):
            match found:
                case Argv(argv):
                    self.run(argv, depth + 1)
                case Assigned(word):
                    self.assign(word)
                case Power(said, text):
                    self.add(said, text)
                case Script(text, is_bash):
                    _read_script(text, self.items, self._scripts + 1, is_bash)


def _subject(words: Sequence[Word], text: str) -> Subject:
    """An item: literal words by their values, and others with a mark and what they could become."""
    is_static = all(word.is_static for word in words)
    return Subject(
        "command",
        text or " ".join(map(as_written, words)),
        tuple(word.text for word in words),
        () if is_static else tuple(None if word.is_static else word.expansion or Expansion() for word in words),
    )
