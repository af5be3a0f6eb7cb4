"""Command line reader: reads a shell command line into everything it would do, each as a subject that rules match.

It runs nothing, and looks nothing up: no variable, no alias, no file. Where it is not certain what would run, it raises
`UnreadableCommand` and does not guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from everturn.core.rules.policy import Subject
from everturn.core.rules.shell_expansion import Expansion
from everturn.permissions.shell.parser import UnreadableCommand, parse
from everturn.permissions.shell.simple_commands import MAX_ITEMS
from everturn.permissions.shell.statements import BlockReader
from everturn.permissions.shell.word_expansion import ShellWord, quote_word
from everturn.permissions.shell.wrappers import Assignment, Capability, NestedCommand, NestedScript, nested_items

if TYPE_CHECKING:
    from tree_sitter import Node

__all__ = ["MAX_ITEMS", "UnreadableCommand", "read_command"]

MAX_SCRIPTS = 8  # nested scripts
MAX_NESTING = 60

# First words of subjects that are not commands; a command of that name could pass for one.
SIGNS_OF_ITEMS = frozenset({">", ">>", "<", "<<", "<<<", "function"})
# Nodes that only contain statements and the operators between them.
BLOCKS = frozenset(
    "program list pipeline compound_statement subshell do_group if_statement elif_clause else_clause while_statement "
    "negated_command command_substitution process_substitution".split()
)
# Other shells than bash read these differently.
BASH_ONLY = re.compile(r"(?<!\$)\(\(|\$'|\$\"|\[\[|[<>]\(|<<<|&>|>&[^0-9-]|\|&|\bfunction\b|\bcoproc\b")


def read_command(text: str) -> list[Subject]:
    """Read a command line into its commands, redirects, assignments and functions, nested ones included.

    Raises:
        UnreadableCommand: it is not certain what it would run.
        ConfigError: the parser is not installed.
    """
    items: list[Subject] = []
    _read_script(text, items, 0)
    return items


def _read_script(text: str, items: list[Subject], scripts: int, is_bash: bool = True) -> None:
    if scripts > MAX_SCRIPTS:
        raise UnreadableCommand("these commands are nested too deeply to check; run the inner ones by themselves")
    if not is_bash and BASH_ONLY.search(text):
        raise UnreadableCommand("this script is for bash, and another shell would read it differently; use `bash -c`")
    root = parse(text)
    _CommandLineReader(text.encode(), items, scripts).visit(root)


class _CommandLineReader(BlockReader):
    """Walks one syntax tree; every kind of node has its method, and an unknown one is refused."""

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

    def add(self, words: Sequence[ShellWord], text: str = "") -> None:
        """Add a subject."""
        self.add_subject(_subject(words, text))

    def visit(self, node: Node) -> None:
        """Read a statement."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise UnreadableCommand("this command line is nested too deeply to check; split it")
        if node.type in BLOCKS:
            self.block(node)
        elif node.type in self._kinds:
            self._kinds[node.type](node)
        else:
            raise self.unknown(node)
        self._nesting -= 1

    def run(self, words: Sequence[ShellWord], depth: int = 0) -> None:
        """Add a command, and what it would run itself."""
        name = words[0]
        if not name.is_static or not name.text:
            raise UnreadableCommand(f"{name.shown[:60]!r} is known only when it runs; name the command itself")
        if "=" in name.text or name.text in SIGNS_OF_ITEMS or name.text.startswith("!"):
            raise UnreadableCommand(f"{name.text[:60]!r} as the name of a command looks like other syntax; rename it")
        if depth > MAX_SCRIPTS:
            raise UnreadableCommand("these commands are nested too deeply to check; run the inner ones by themselves")
        self.add(words)
        for nested in nested_items(words):
            match nested:
                case NestedCommand(argv):
                    self.run(argv, depth + 1)
                case Assignment(word):
                    self.assign(word)
                case Capability(capability_words, text):
                    option_of = tuple(word.text for word in words) if all(word.is_static for word in words) else ()
                    self.add_subject(_subject(capability_words, text, option_of))
                case NestedScript(text, is_bash):
                    _read_script(text, self.items, self._scripts + 1, is_bash)


def _subject(words: Sequence[ShellWord], text: str, option_of: tuple[str, ...] = ()) -> Subject:
    """A subject: literal words by their values, and others with a mark and what they could become."""
    is_static = all(word.is_static for word in words)
    return Subject(
        "command",
        text or " ".join(map(quote_word, words)),
        tuple(word.text for word in words),
        () if is_static else tuple(None if word.is_static else word.expansion or Expansion() for word in words),
        option_of,
    )
