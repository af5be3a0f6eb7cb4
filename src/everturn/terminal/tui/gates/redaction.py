"""Redaction of a result: the cuts that a person makes before a model reads it. Pure: every change is a new value, and
can be undone.

The text on the screen differs from the text that is sent: invisible characters are escaped, and a cut is a mark. So
each character on the screen is mapped to its range in the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from everturn.permissions.explain import escape_invisible

MARK: Final = "[redacted]"
Cut = tuple[int, int]
"""Start and end of a range of the text."""


class Redaction(Struct, frozen=True):
    """A text and the ranges cut from it, in order and not overlapping."""

    text: str
    cuts: tuple[Cut, ...] = ()
    before: Redaction | None = None

    @property
    def remaining(self) -> str:
        """The text that the model will read."""
        return "".join(MARK if is_cut else self.text[start:end] for start, end, is_cut in self._stretches())

    def cut_range(self, start: int, end: int) -> Redaction:
        """Cut a range."""
        return self._with([(min(start, end), max(start, end))])

    def cut_all(self, secret: str) -> Redaction:
        """Cut every occurrence of a text."""
        return self._with(self.find_all(secret))

    def find_all(self, secret: str) -> list[Cut]:
        """Return the occurrences of a text outside of existing cuts; overlapping ones, too."""
        ranges: list[Cut] = []
        start = self.text.find(secret) if secret else -1
        while start >= 0:
            end = start + len(secret)
            if not any(cut[0] <= start and end <= cut[1] for cut in self.cuts):
                ranges.append((start, end))
            start = self.text.find(secret, start + 1)
        return ranges

    def previous(self) -> Redaction:
        """Return the redaction before the last change."""
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
        ranges: list[tuple[int, int, bool]] = []
        position = 0
        for start, end in self.cuts:
            ranges += [(position, start, False)] if start > position else []
            ranges.append((start, end, True))
            position = end
        return ranges + ([(position, len(self.text), False)] if position < len(self.text) else [])

    def for_screen(self) -> RedactedText:
        """Return the text for the screen."""
        pieces: list[str] = []
        places: list[Cut] = []
        for start, end, is_cut in self._stretches():
            if is_cut:
                pieces.append(MARK)
                places += [(start, end)] * len(MARK)
                continue
            for index in range(start, end):
                piece = self.text[index] if self.text[index] == "\n" else escape_invisible(self.text[index], 1)
                pieces.append(piece)
                places += [(index, index + 1)] * len(piece)
        return RedactedText("".join(pieces), tuple(places))


class RedactedText(Struct, frozen=True):
    """The text on the screen, and for each of its characters the range of the source text that it stands for."""

    text: str
    places: tuple[Cut, ...]

    def source(self, start: int, end: int) -> Cut:
        """Return the source range of a range on the screen; a partly selected escape counts as a whole character."""
        chosen = self.places[max(min(start, end), 0) : max(start, end)]
        return (chosen[0][0], chosen[-1][1]) if chosen else (0, 0)
