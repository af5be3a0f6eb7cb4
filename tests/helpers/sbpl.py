"""A reader of Seatbelt profiles: what a profile allows, as far as the rules of the language are known.

Of the rules that match, the last decides. `(deny default)` does not cover `process-info*`, `nvram*` and
`file-map-executable`. What it does not know it refuses, as the compiler of macOS does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

OPERATIONS = frozenset(
    (
        *("default", "file-read*", "file-read-data", "file-read-metadata", "file-write*", "file-write-data"),
        *("file-write-unlink", "file-link", "file-clone", "file-map-executable", "network*", "network-outbound"),
        *("process-exec", "process-fork", "process-info*", "signal", "sysctl-read", "mach-lookup", "ipc-posix-sem"),
        *("nvram*",),
    )
)
FILTERS = frozenset("literal subpath target remote sysctl-name sysctl-name-prefix global-name".split())
NOT_IN_DEFAULT = ("process-info", "nvram", "file-map-executable")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\"}


class Text(str):
    """A string of the profile, in contrast to a symbol."""

    __slots__ = ()


class Rule(NamedTuple):
    """One rule."""

    allows: bool
    operations: list[str]
    filters: list[list[str]]

    def matches(self, operation: str, kind: str, value: str) -> bool:
        """Whether it decides about this operation on this path, name or address."""
        known = any(
            operation == name or (name.endswith("*") and operation.startswith(name[:-1])) for name in self.operations
        )
        return known and (not self.filters or any(_fits(words, kind, value) for words in self.filters))


class Profile:
    """A profile that was read."""

    def __init__(self, text: str) -> None:
        self.rules: list[Rule] = []
        self.default = True
        first, *forms = read(text)
        assert first == ["version", "1"], first
        for form in forms:
            action, *rest = form
            operations = [word for word in rest if isinstance(word, str)]
            filters = [word for word in rest if isinstance(word, list)]
            if action not in ("allow", "deny") or not operations or not set(operations) <= OPERATIONS:
                raise ValueError(f"unbound variable: {form}")
            if any(words[0] not in FILTERS or len(words) < 2 for words in filters):
                raise ValueError(f"unknown filter: {form}")
            if operations == ["default"]:
                self.default = action == "allow"
            else:
                self.rules.append(Rule(action == "allow", operations, filters))

    def allows(self, operation: str, value: str = "", kind: str = "path") -> bool:
        """Whether an operation is allowed; `value` is a path, or what `kind` says."""
        decided = [rule.allows for rule in self.rules if rule.matches(operation, kind, value)]
        return decided[-1] if decided else self.default or operation.startswith(NOT_IN_DEFAULT)

    def paths(self) -> list[str]:
        """All paths in it."""
        return [words[1] for rule in self.rules for words in rule.filters if words[0] in ("literal", "subpath")]


def _fits(words: list[str], kind: str, value: str) -> bool:
    if kind != "path":
        return words[0] == kind and words[-1] == value
    if words[0] == "literal":
        return value == words[1]
    return words[0] == "subpath" and (value == words[1] or value.startswith(words[1].rstrip("/") + "/"))


def read(text: str) -> list[Any]:
    """The forms of a text: lists of symbols, strings and lists."""
    stack: list[list[Any]] = [[]]
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "(":
            stack.append([])
        elif char == ")":
            form = stack.pop()
            stack[-1].append(form)
        elif char == ";":
            at = (text + "\n").index("\n", at)
        elif char == '"':
            literal = ""
            while text[at] != '"':  # a string without an end is an IndexError
                if text[at] == "\\":
                    at += 1
                    literal += ESCAPES[text[at]]
                else:
                    literal += text[at]
                at += 1
            at += 1
            stack[-1].append(Text(literal))
        elif not char.isspace():
            start = at - 1
            while at < len(text) and not text[at].isspace() and text[at] not in '()";':
                at += 1
            stack[-1].append(text[start:at])
    (forms,) = stack
    return forms
