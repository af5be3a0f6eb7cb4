"""What something is drawn on: a width, a time, a language."""

from __future__ import annotations

from msgspec import Struct

from everturn.tui.words.talk import EN, TalkWords


class Paper(Struct, frozen=True):
    """What a block is told when it is drawn."""

    width: int
    is_open: bool = False
    now: float = 0.0
    words: TalkWords = EN


def seconds(time: float, digits: int = 1) -> str:
    """How long something took."""
    if time < 10:
        return f"{time:.{digits}f} s"
    if time < 120:
        return f"{time:.0f} s"
    minutes = int(time // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
