r"""Globs: from a pattern to a function that says yes or no to a text, in time that grows with the text and no faster.

In plain text `*` is any run of characters and `?` is one. In a path both stay within one segment, and `**` crosses:
`a/**/b` fits `a/b` too. A backslash in front of `*`, `?` or a backslash makes it an ordinary character.

No regular expressions: what a model writes is matched here, and it must not be able to make that slow.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Final, cast

Fits = Callable[[str], bool]
Token = str | int  # a piece of literal text, or one of these three

ONE: Final = 1  # ?
RUN: Final = 2  # *
DEEP: Final = 3  # **

REMEMBERED_MOVES = 256  # per pattern; a text can bring any number of characters, and they are not all worth keeping


def fold(text: str) -> str:
    """The form in which look-alikes are equal: compatible characters made one, and case gone."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def tokens_of(pattern: str) -> list[Token]:
    """Read a pattern as pieces of literal text and wildcards."""
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
            begun = at
            while char == "*" and at < end and pattern[at] == "*":
                at += 1
            tokens.append(ONE if char == "?" else RUN if at == begun else DEEP)
        else:
            literal.append(char)
    if literal:
        tokens.append("".join(literal))
    return tokens


def fold_tokens(tokens: Sequence[Token]) -> list[Token]:
    """The same pattern for folded text. Folding the pattern itself could make wildcards out of look-alikes of them."""
    return [fold(token) if isinstance(token, str) else token for token in tokens]


def escape(text: str) -> str:
    """The pattern that fits this text and no other."""
    return text.replace("\\", "\\\\").replace("*", "\\*").replace("?", "\\?")


# ------------------------------------------------------------------------------------------------------- plain text


def text_glob(tokens: Sequence[Token]) -> Fits:
    """A matcher of whole texts, lines and all."""
    if not any(isinstance(token, int) for token in tokens):
        return "".join(cast("Sequence[str]", tokens)).__eq__
    if ONE in tokens:
        return _spaced_glob(_singles(tokens))
    return _pieces_glob(tokens)


def _pieces_glob(tokens: Sequence[Token]) -> Fits:
    """Only runs between the pieces: each piece is best taken where it first occurs, so nothing is tried twice."""
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
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True

    return fits


def _singles(tokens: Sequence[Token]) -> list[Token]:
    """The same tokens, each literal character one of its own, and stars beside each other one."""
    singles: list[Token] = []
    for token in tokens:
        singles.extend(token if isinstance(token, str) else [token])
    return singles


def _spaced_glob(singles: list[Token]) -> Fits:
    """With `?`: go back to the last star only. An earlier one could not help: it had the shortest run already."""
    size = len(singles)

    def fits(text: str) -> bool:
        at = place = 0
        star, resume = -1, 0
        while at < len(text):
            token = singles[place] if place < size else ""
            if token in (RUN, DEEP):
                star, resume = place, at
                place += 1
            elif token == ONE or token == text[at]:
                at, place = at + 1, place + 1
            elif star >= 0:
                resume += 1
                at, place = resume, star + 1
            else:
                return False
        return all(token in (RUN, DEEP) for token in singles[place:])

    return fits


# ------------------------------------------------------------------------------------------------------------ paths


def path_glob(tokens: Sequence[Token]) -> Fits:
    """A matcher of paths with `/` between their segments."""
    wild = [token for token in tokens if isinstance(token, int)]
    if not wild:
        return "".join(cast("Sequence[str]", tokens)).__eq__
    first = tokens[0]
    if wild == [DEEP] and tokens[-1] == DEEP:
        head = first if isinstance(first, str) else ""
        return lambda text: text.startswith(head)
    last = tokens[-1]
    head = first if isinstance(first, str) else ""
    tail = (
        last.removeprefix("/") if isinstance(last, str) else ""
    )  # the slash goes with a `**/` that stands for nothing
    machine: list[_PathMachine] = []  # made when it is first needed: most patterns never get beyond their ends

    def fits(text: str) -> bool:
        if not text.endswith(tail) or not text.startswith(head):
            return False
        if not machine:
            machine.append(_PathMachine(tokens))
        return machine[0].fits(text)

    return fits


class _PathMachine:
    """All the places in a pattern at which a text may stand, as the bits of one number, moved on by each character.

    Every character costs the same, whatever the pattern: moves are looked up once they have been made.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        steps, skips = _path_steps(tokens)
        self.literals: dict[str, int] = {}
        self.ones = self.runs = self.deeps = self.skips = 0
        for place, step in enumerate(steps):
            if isinstance(step, str):
                self.literals[step] = self.literals.get(step, 0) | 1 << place
            elif step == ONE:
                self.ones |= 1 << place
            elif step == RUN:
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
            found = moves.get((state, char))
            if found is None:
                if len(moves) >= REMEMBERED_MOVES:
                    moves.clear()
                found = moves[state, char] = self._move(state, char)
            if not found:
                return False
            state = found
        return state & self.accepting != 0

    def _move(self, state: int, char: str) -> int:
        """Where one character leads: on from what it fits, and nowhere from a star that it fits."""
        on = state & self.literals.get(char, 0)
        if char == "/":
            return self._rest(on << 1, state & self.deeps)
        return self._rest((on | state & self.ones) << 1, state & (self.runs | self.deeps))

    def _rest(self, reached: int, kept: int) -> int:
        """Add the places that need no character: behind a star, and behind a whole `**/` that has just been reached."""
        state = reached | (reached & self.skips) << 2 | kept
        return state | (state & (self.runs | self.deeps)) << 1


def _path_steps(tokens: Sequence[Token]) -> tuple[list[Token], list[int]]:
    """One step for each character of a path pattern, and where a `**/` begins that may stand for nothing at all."""
    singles = _singles(tokens)
    steps: list[Token] = []
    skips: list[int] = []
    at, end = 0, len(singles)
    while at < end:
        token = singles[at]
        begins = at == 0 or singles[at - 1] == "/"
        before_slash = at + 1 < end and singles[at + 1] == "/"
        if token == DEEP and begins and before_slash:
            if not skips or skips[-1] != len(steps) - 2:  # `**/**/` is `**/`
                skips.append(len(steps))
                steps += [DEEP, "/"]
            at += 2
            continue
        if token == RUN and begins and (before_slash or at + 1 == end):
            steps.append(ONE)  # a segment is never empty
        steps.append(token)
        at += 1
    return steps, skips
