"""Contrast of what is on a screen: the ratio of WCAG 2, for each text with the colour behind it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from rich.color import Color as RichColor
from rich.terminal_theme import DIMMED_MONOKAI
from textual.app import App
from textual.color import Color

TEXT, GRAPHICS = 4.5, 3.0  # the ratios of WCAG 2.1, 1.4.3 for text and 1.4.11 for borders and signs
LINES: Final = range(0x2500, 0x25A0)  # lines and blocks: borders, scroll bars, meters


class Pair(Struct, frozen=True):
    """A text on the screen, its colours, and their contrast."""

    text: str
    foreground: str
    background: str
    ratio: float


def contrast(first: Color, second: Color) -> float:
    """Return the contrast ratio of WCAG 2 between two opaque colours: from 1 to 21."""
    lighter, darker = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: Color) -> float:
    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4

    return 0.2126 * linear(color.r) + 0.7152 * linear(color.g) + 0.0722 * linear(color.b)


def pairs_on_screen(app: App[Any]) -> Iterator[Pair]:
    """Yield the texts that are drawn now."""
    for strip in app.screen._compositor.render_strips():
        for segment in strip:
            style = segment.style
            if style is None or not segment.text.strip() or style.color is None or style.bgcolor is None:
                continue
            front, back = _color(style.color), _color(style.bgcolor)
            if style.dim:
                front = back.blend(front, 0.5)
            if style.reverse:
                front, back = back, front
            yield Pair(segment.text.strip(), front.hex, back.hex, contrast(front, back))


def _color(color: RichColor) -> Color:
    return Color(*color.get_truecolor(DIMMED_MONOKAI))


def poor_pairs(app: App[Any]) -> list[Pair]:
    """Return the texts whose contrast is too low; lines and blocks may have less of it than letters."""
    return [
        pair
        for pair in pairs_on_screen(app)
        if pair.ratio < TEXT and not all(ord(char) in LINES or char.isspace() for char in pair.text)
    ]
