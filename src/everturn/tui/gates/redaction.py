"""What a person takes out of a text before a model reads it. Pure: every change makes a new one, and can be undone.

What is shown is not what is sent: characters that cannot be seen are written out, and what was taken out is a mark. So
every place on the screen is known by the place in the text that it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from everturn.permissions.explaining import visible

MARK: Final = "[redacted]"
Cut = tuple[int, int]
"""From a place in the text to another."""


class Redaction(Struct, frozen=True):
    """A text, and what is taken out of it: in order, apart from each other."""

    text: str
    cuts: tuple[Cut, ...] = ()
    before: Redaction | None = None

    @property
    def left(self) -> str:
        """What the model will read."""
        return "".join(MARK if is_cut else self.text[start:end] for start, end, is_cut in self._stretches())

    def without(self, start: int, end: int) -> Redaction:
        """Take out what stands between two places."""
        return self._with([(min(start, end), max(start, end))])

    def without_all(self, words: str) -> Redaction:
        """Take out all that reads so, wherever it stands."""
        return self._with(self.places(words))

    def places(self, words: str) -> list[Cut]:
        """Where a text stands, outside of what is taken out already; of two that overlap, both."""
        found: list[Cut] = []
        at = self.text.find(words) if words else -1
        while at >= 0:
            end = at + len(words)
            if not any(cut[0] <= at and end <= cut[1] for cut in self.cuts):
                found.append((at, end))
            at = self.text.find(words, at + 1)
        return found

    def undone(self) -> Redaction:
        """As it was before the last change."""
        return self.before or self

    def _with(self, more: Iterable[Cut]) -> Redaction:
        joined: list[Cut] = []
        for start, end in sorted({*self.cuts, *((a, b) for a, b in more if b > a)}):
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return self if tuple(joined) == self.cuts else Redaction(self.text, tuple(joined), self)

    def _stretches(self) -> list[tuple[int, int, bool]]:
        found: list[tuple[int, int, bool]] = []
        at = 0
        for start, end in self.cuts:
            found += [(at, start, False)] if start > at else []
            found.append((start, end, True))
            at = end
        return found + ([(at, len(self.text), False)] if at < len(self.text) else [])

    def shown(self) -> Sheet:
        """As it is shown."""
        pieces: list[str] = []
        places: list[Cut] = []
        for start, end, is_cut in self._stretches():
            if is_cut:
                pieces.append(MARK)
                places += [(start, end)] * len(MARK)
                continue
            for at in range(start, end):
                piece = self.text[at] if self.text[at] == "\n" else visible(self.text[at], 1)
                pieces.append(piece)
                places += [(at, at + 1)] * len(piece)
        return Sheet("".join(pieces), tuple(places))


class Sheet(Struct, frozen=True):
    """What is shown of a text; for each character of it, the place in the text that it stands for."""

    text: str
    places: tuple[Cut, ...]

    def source(self, start: int, end: int) -> Cut:
        """The stretch of the text that is meant by one of what is shown; half a character is a whole one."""
        chosen = self.places[max(min(start, end), 0) : max(start, end)]
        return (chosen[0][0], chosen[-1][1]) if chosen else (0, 0)
