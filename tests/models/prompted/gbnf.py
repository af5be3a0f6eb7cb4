"""A grammar as llama.cpp reads it → whether a text fits it. Small and slow: it follows every way a rule can go at once."""

from __future__ import annotations

import re
from collections.abc import Callable

_TOKEN = re.compile(r'\s+|"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{\d+(?:,\d*)?\}|[A-Za-z][\w-]*|[()|*+?]')
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_PLAIN = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\", '"': '"', "[": "[", "]": "]"}  # all that llama.cpp knows

Ends = Callable[[str, int], set[int]]
"""Where in a text something may end that begins at a place."""


def _signs(text: str) -> list[str]:
    """The characters of a literal or a class; an escape that llama.cpp does not know is an error, as it is there."""
    signs: list[str] = []
    at = 0
    while at < len(text):
        found = _ESCAPE.match(text, at)
        if found is None:
            signs.append(text[at])
            at += 1
            continue
        code = found[1] or found[2] or found[3]
        signs.append(chr(int(code, 16)) if code else _PLAIN[found[4]])
        at = found.end()
    return signs


class Gbnf:
    """A grammar that was read."""

    def __init__(self, grammar: str) -> None:
        self._rules: dict[str, Ends] = {}
        self._memo: dict[tuple[str, int], set[int]] = {}
        self._tokens: list[str] = []
        for line in grammar.split("\n"):
            name, sign, rule = line.partition(" ::= ")
            assert sign, f"no rule: {line!r}"
            assert re.fullmatch(r"[A-Za-z][A-Za-z0-9-]*", name), name
            assert name not in self._rules, f"two rules called {name}"
            self._tokens = _split(rule)
            self._rules[name] = self._either()
            assert not self._tokens, f"{name}: {self._tokens} is left"

    def fits(self, text: str) -> bool:
        """Whether all of a text is what the grammar allows."""
        self._memo.clear()
        return len(text) in self._named("root")(text, 0)

    def _either(self) -> Ends:
        ways = [self._row()]
        while self._tokens[:1] == ["|"]:
            del self._tokens[0]
            ways.append(self._row())
        return lambda text, at: set[int]().union(*(way(text, at) for way in ways))

    def _row(self) -> Ends:
        parts: list[Ends] = []
        while self._tokens and self._tokens[0] not in ("|", ")"):
            parts.append(self._times(self._one()))

        def ends(text: str, at: int) -> set[int]:
            places = {at}
            for part in parts:
                places = set[int]().union(*(part(text, place) for place in places))
            return places

        return ends

    def _one(self) -> Ends:
        token = self._tokens.pop(0)
        if token == "(":
            inner = self._either()
            assert self._tokens.pop(0) == ")"
            return inner
        if token[0] == '"':
            word = "".join(_signs(token[1:-1]))
            return lambda text, at: {at + len(word)} if text.startswith(word, at) else set()
        if token[0] == "[":
            return _class(token[1:-1])
        assert token[0].isalpha(), token
        return self._named(token)

    def _times(self, part: Ends) -> Ends:
        low, high = 1, 1
        if self._tokens and self._tokens[0] in ("?", "*", "+"):
            low, high = {"?": (0, 1), "*": (0, -1), "+": (1, -1)}[self._tokens.pop(0)]
        elif self._tokens and self._tokens[0][0] == "{":
            first, comma, last = self._tokens.pop(0)[1:-1].partition(",")
            low, high = int(first), int(last) if last else -1 if comma else int(first)

        def ends(text: str, at: int) -> set[int]:
            found = {at} if low == 0 else set[int]()
            fresh, count = {at}, 0
            while fresh and count != high:
                fresh, count = set[int]().union(*(part(text, place) for place in fresh)), count + 1
                if count >= low:
                    fresh -= found if count > low else set()
                    found |= fresh
            return found

        return ends

    def _named(self, name: str) -> Ends:
        def ends(text: str, at: int) -> set[int]:
            key = (name, at)
            if key not in self._memo:
                self._memo[key] = self._rules[name](text, at)
            return self._memo[key]

        return ends


def _class(text: str) -> Ends:
    is_other = text.startswith("^")
    signs = _signs(text.removeprefix("^"))
    ranges: list[tuple[str, str]] = []
    while signs:
        first = signs.pop(0)
        if first != "-" and len(signs) > 1 and signs[0] == "-":
            ranges.append((first, signs[1]))
            del signs[:2]
        else:
            ranges.append((first, first))
    return lambda text, at: (
        {at + 1} if at < len(text) and any(low <= text[at] <= high for low, high in ranges) is not is_other else set()
    )


def _split(rule: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(rule):
        found = _TOKEN.match(rule, at)
        assert found is not None, f"not understood: {rule[at : at + 40]!r}"
        if found[0].strip():
            tokens.append(found[0])
        at = found.end()
    return tokens
