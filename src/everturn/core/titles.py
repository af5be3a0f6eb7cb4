"""Session titles and labels: the first message of a session, shortened to one line, or what a person gives it.

The title is an event of the log (`TitleSet`), written in the same append as the first `TurnStarted`. Before that append
there is only the admitted command, and lists of sessions derive the same title from it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from typing import Final

from everturn.core.parts import FilePart, Part, TextPart
from everturn.errors import ConfigError

TITLE_LENGTH: Final = 60  # characters of a title that is derived or generated, with the ellipsis
MAX_TITLE: Final = 200  # characters of a title that a person gives
MAX_LABELS: Final = 20  # of a session
MAX_LABEL: Final = 50  # characters
ELLIPSIS: Final = "…"
DECORATION: Final = "\"'\u201c\u201d\u2018\u2019«»「」*#_` "  # that a model puts around a title
JOINERS: Final = "\u200c\u200d"  # invisible characters that join or separate letters in some scripts


def derive_title(parts: Iterable[Part] | None) -> str:
    """The title that a message gives its session: its text, or the names of its files. Empty if it has neither."""
    parts = tuple(parts or ())
    text = _one_line(" ".join(part.text for part in parts if isinstance(part, TextPart)))
    if not text:
        files = (part for part in parts if isinstance(part, FilePart))
        text = ", ".join(filter(None, (_one_line(part.name) or _one_line(part.media_type) for part in files)))
    return shorten_title(text)


def clean_title(text: str) -> str:
    """The title in an answer of a model: its first line, without quotes and a final stop. Empty if there is none."""
    lines = [line for line in map(_one_line, text.splitlines()) if line]
    return shorten_title(lines[0].strip(DECORATION).rstrip(".。 ")) if lines else ""


def check_title(text: str) -> str:
    """A title that a person gives, on one line.

    Raises:
        ConfigError: it is empty or too long.
    """
    title = _one_line(text)
    if not title:
        raise ConfigError("a title has at least one visible character")
    if len(title) > MAX_TITLE:
        raise ConfigError(f"a title has at most {MAX_TITLE} characters; this one has {len(title)}")
    return title


def check_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """The labels of a session, each on one line and once, in the order in which they were given.

    Raises:
        ConfigError: a label is empty or too long, or there are too many.
    """
    checked = tuple(dict.fromkeys(_one_line(label) for label in labels))
    if "" in checked:
        raise ConfigError("a label has at least one visible character")
    if any(len(label) > MAX_LABEL for label in checked):
        raise ConfigError(f"a label has at most {MAX_LABEL} characters")
    if len(checked) > MAX_LABELS:
        raise ConfigError(f"a session has at most {MAX_LABELS} labels; these are {len(checked)}")
    return checked


def shorten_title(text: str, length: int = TITLE_LENGTH) -> str:
    """Shorten a text to `length` characters: cut after a whole word if possible, with an ellipsis."""
    if len(text) <= length:
        return text
    available = length - len(ELLIPSIS)
    at = available
    # Text without spaces is cut inside a word, as is a word whose removal would leave less than half.
    space = text.rfind(" ", available // 2, available + 1)
    if space >= 0:
        at = space
    else:
        while at > 1 and _is_joined(text, at):
            at -= 1
    return text[:at].rstrip(" ,;:.-–—(\"'") + ELLIPSIS


def _is_joined(text: str, at: int) -> bool:
    """Whether a cut here would separate a character from its combining marks."""
    return unicodedata.category(text[at]) in ("Mn", "Me", "Mc", "Cf", "Sk") or text[at - 1] == "\u200d"


def _one_line(text: str) -> str:
    # Every client prints this: nothing in it moves a cursor, or reverses a line.
    return " ".join("".join(char for char in text if char.isprintable() or char.isspace() or char in JOINERS).split())
