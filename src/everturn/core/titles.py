"""Session titles: the first message of a session, shortened to one line. Pure.

The title is an event of the log (`TitleSet`), written in the same append as the first `TurnStarted`. Before that append
there is only the admitted command, and whoever lists sessions derives the same title from it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from everturn.core.parts import FilePart, Part, TextPart

TITLE_LENGTH: Final = 60  # characters, with the ellipsis
ELLIPSIS: Final = "…"
JOINERS: Final = "\u200c\u200d"  # invisible, and letters of some scripts are joined or parted by them


def title_of(parts: Iterable[Part] | None) -> str:
    """The title that a message gives its session: its text, or the names of its files. Empty if it has neither."""
    parts = tuple(parts or ())
    text = _one_line(" ".join(part.text for part in parts if isinstance(part, TextPart)))
    if not text:
        files = (part for part in parts if isinstance(part, FilePart))
        text = ", ".join(filter(None, (_one_line(part.name) or _one_line(part.media_type) for part in files)))
    return shorten(text)


def shorten(text: str, length: int = TITLE_LENGTH) -> str:
    """A text of at most so many characters, cut after a whole word where there is one, with an ellipsis if it was cut."""
    if len(text) <= length:
        return text
    room = length - len(ELLIPSIS)
    at = room
    # A language that is written without spaces, and a word that would leave less than half, are cut inside.
    space = text.rfind(" ", room // 2, room + 1)
    if space >= 0:
        at = space
    else:
        while at > 1 and _is_joined(text, at):
            at -= 1
    return text[:at].rstrip(" ,;:.-–—(\"'") + ELLIPSIS


def _is_joined(text: str, at: int) -> bool:
    """Whether a cut here would part a character from the marks that belong to it."""
    return unicodedata.category(text[at]) in ("Mn", "Me", "Mc", "Cf", "Sk") or text[at - 1] == "\u200d"


def _one_line(text: str) -> str:
    # Every client prints this: nothing in it moves a cursor, or reverses a line.
    return " ".join("".join(char for char in text if char.isprintable() or char.isspace() or char in JOINERS).split())
