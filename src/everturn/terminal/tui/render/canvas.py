"""Canvas: the width, time and texts that a block is drawn with."""

from __future__ import annotations

from msgspec import Struct

from everturn.terminal.tui.texts.chat import EN, ChatTexts

METER_WIDTH = 8  # columns of a bar


class Canvas(Struct, frozen=True):
    """What a block needs to be drawn."""

    width: int
    is_open: bool = False
    now: float = 0.0
    texts: ChatTexts = EN


def draw_meter(share: float) -> str:
    """Return a bar that is filled by this share."""
    full = max(0, min(METER_WIDTH, round(share * METER_WIDTH)))
    return "▰" * full + "▱" * (METER_WIDTH - full)


def format_seconds(time: float, digits: int = 1) -> str:
    """Format a duration."""
    if time < 10:
        return f"{time:.{digits}f} s"
    if time < 120:
        return f"{time:.0f} s"
    minutes = int(time // 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"
