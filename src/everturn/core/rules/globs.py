r"""Globs: compiles a pattern into a function that matches a text in linear time.

In plain text `*` is any run of characters and `?` is one. In a path both stay within one segment, and `**` crosses:
`a/**/b` matches `a/b` too. A backslash in front of `*`, `?` or a backslash makes it an ordinary character.

It uses no regular expressions: the texts come from a model, which must not be able to make matching slow.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Final, cast

TextMatcher = Callable[[str], bool]
Token = str | int  # a piece of literal text, or one of these three

ANY_CHARACTER: Final = 1  # ?
ANY_RUN: Final = 2  # *
ANY_PATH: Final = 3  # **

CACHED_TRANSITIONS = (
    256  # per pattern; a text can have any number of distinct characters, and they are not all worth caching
)


def fold_text(text: str) -> str:
    """Normalise a text so that look-alikes are equal: NFKC and case folding."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def parse_glob(pattern: str) -> list[Token]:
    """Split a pattern into literal text and wildcards."""
    tokens: list[Token] = []
    literal: list[str] = []
    at, end = 0, len(pattern)
    while at < end:
        char = pattern[at]
        at += 1
        if char == "\\" and at < end and pattern[at] in "*?\\":
            literal.append(pattern[at])
            at += 1
        elif char in "*?":
            if literal:
                tokens.append("".join(literal))
                literal.clear()
            start = at
            while char == "*" and at < end and pattern[at] == "*":
                at += 1
            tokens.append(ANY_CHARACTER if char == "?" else ANY_RUN if at == start else ANY_PATH)
        else:
            literal.append(char)
    if literal:
        tokens.append("".join(literal))
    return tokens


def fold_tokens(tokens: Sequence[Token]) -> list[Token]:
    """The same pattern for folded text. Folding the pattern itself could make wildcards out of look-alikes of them."""
    return [fold_text(token) if isinstance(token, str) else token for token in tokens]


def escape_glob(text: str) -> str:
    """The pattern that matches this text and no other."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("?", "\\?")


# ------------------------------------------------------------------------------------------------------- plain text


def compile_text_glob(tokens: Sequence[Token]) -> TextMatcher:
    """A matcher of whole texts, newlines included."""
    if not any(isinstance(token, int) for token in tokens):
        return "".join(cast("Sequence[str]", tokens)).__eq__
    if ANY_CHARACTER in tokens:
        return _spaced_glob(_singles(tokens))
    return _pieces_glob(tokens)


def _pieces_glob(tokens: Sequence[Token]) -> TextMatcher:
    """A matcher of literal pieces with `*` between them: taking each piece where it first occurs needs no backtracking."""
    head = tokens[0] if isinstance(tokens[0], str) else ""
    tail = tokens[-1] if isinstance(tokens[-1], str) else ""
    middle = [token for token in tokens[1:-1] if isinstance(token, str)]
    if not middle and not tail:
        return lambda text: text.startswith(head)
    if len(middle) == 1 and not head and not tail:
        return lambda text: middle[0] in text
    shortest = len(head) + len(tail)

    def fits(text: str) -> bool:
        if len(text) < shortest or not text.startswith(head) or not text.endswith(tail):
            return False
        at, end = len(head), len(text) - len(tail)
        for piece in middle:
            index = text.find(piece, at, end)
            if index < 0:
                return False
            at = index + len(piece)
        return True

    return fits


def _singles(tokens: Sequence[Token]) -> list[Token]:
    """The same tokens, with literal text split into single characters."""
    singles: list[Token] = []
    for token in tokens:
        singles.extend(token if isinstance(token, str) else [token])
    return singles


def _spaced_glob(singles: list[Token]) -> TextMatcher:
    """A matcher with `?`: it backtracks to the last star only.

    An earlier star could not help: its run is the shortest.
    """
    size = len(singles)

    def fits(text: str) -> bool:
        at = place = 0
        star, resume = -1, 0
        while at < len(text):
            token = singles[place] if place < size else ""
            if token in (ANY_RUN, ANY_PATH):
                star, resume = place, at
                place += 1
            elif token == ANY_CHARACTER or token == text[at]:
                at, place = at + 1, place + 1
            elif star >= 0:
                resume += 1
                at, place = resume, star + 1
            else:
                return False
        return all(token in (ANY_RUN, ANY_PATH) for token in singles[place:])

    return fits


# ------------------------------------------------------------------------------------------------------------ paths


def compile_path_glob(tokens: Sequence[Token]) -> TextMatcher:
    """A matcher of paths with `/` between their segments."""
    wild = [token for token in tokens if isinstance(token, int)]
    if not wild:
        return "".join(cast("Sequence[str]", tokens)).__eq__
    first = tokens[0]
    if wild == [ANY_PATH] and tokens[-1] == ANY_PATH:
        head = first if isinstance(first, str) else ""
        return lambda text: text.startswith(head)
    last = tokens[-1]
    head = first if isinstance(first, str) else ""
    tail = last.removeprefix("/") if isinstance(last, str) else ""  # the slash goes with a `**/` that matches nothing
    machine: list[_GlobAutomaton] = []  # built on first use: most texts already differ from the head or tail

    def fits(text: str) -> bool:
        if not text.endswith(tail) or not text.startswith(head):
            return False
        if not machine:
            machine.append(_GlobAutomaton(tokens))
        return machine[0].fits(text)

    return fits


class _GlobAutomaton:
    """An NFA over a path pattern: the set of active positions is the bits of one number, advanced by each character.

    Every character costs the same, whatever the pattern: transitions are cached.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        steps, skips = _path_steps(tokens)
        self.literals: dict[str, int] = {}
        self.ones = self.runs = self.deeps = self.skips = 0
        for place, step in enumerate(steps):
            if isinstance(step, str):
                self.literals[step] = self.literals.get(step, 0) | 1 << place
            elif step == ANY_CHARACTER:
                self.ones |= 1 << place
            elif step == ANY_RUN:
                self.runs |= 1 << place
            else:
                self.deeps |= 1 << place
        for place in skips:
            self.skips |= 1 << place
        self.accepting = 1 << len(steps)
        self.begin = self._rest(1, 0)
        self.moves: dict[tuple[int, str], int] = {}

    def fits(self, text: str) -> bool:
        state, moves = self.begin, self.moves
        for char in text:
            target = moves.get((state, char))
            if target is None:
                if len(moves) >= CACHED_TRANSITIONS:
                    moves.clear()
                target = moves[state, char] = self._move(state, char)
            if not target:
                return False
            state = target
        return state & self.accepting != 0

    def _move(self, state: int, char: str) -> int:
        """The state after one character: a matched position advances, a matching star stays."""
        on = state & self.literals.get(char, 0)
        if char == "/":
            return self._rest(on << 1, state & self.deeps)
        return self._rest((on | state & self.ones) << 1, state & (self.runs | self.deeps))

    def _rest(self, reached: int, kept: int) -> int:
        """Add the positions that need no character: after a star, and after a whole `**/` that has just been reached."""
        state = reached | (reached & self.skips) << 2 | kept
        return state | (state & (self.runs | self.deeps)) << 1


def _path_steps(tokens: Sequence[Token]) -> tuple[list[Token], list[int]]:
    """One step for each character of a path pattern, and the positions of each `**/`, which may match nothing."""
    singles = _singles(tokens)
    steps: list[Token] = []
    skips: list[int] = []
    at, end = 0, len(singles)
    while at < end:
        token = singles[at]
        begins = at == 0 or singles[at - 1] == "/"
        before_slash = at + 1 < end and singles[at + 1] == "/"
        if token == ANY_PATH and begins and before_slash:
            if not skips or skips[-1] != len(steps) - 2:  # `**/**/` is `**/`
                skips.append(len(steps))
                steps += [ANY_PATH, "/"]
            at += 2
            continue
        if token == ANY_RUN and begins and (before_slash or at + 1 == end):
            steps.append(ANY_CHARACTER)  # a segment is never empty
        steps.append(token)
        at += 1
    return steps, skips
