"""Styles: style names as CSS with the colours of the current theme. Colour is never the only sign of a meaning."""

from __future__ import annotations

from typing import Final

_STYLES: Final = {
    "dim": "color: $text-muted;",
    "strong": "text-style: bold;",
    "em": "text-style: italic;",
    "s": "text-style: strike;",
    "link": "text-style: underline;",
    "heading": "text-style: bold; color: $text-primary;",
    "h1": "text-style: bold underline;",
    "h2": "text-style: bold;",
    "h3": "text-style: bold;",
    "h4": "text-style: none;",
    "h5": "text-style: none;",
    "h6": "text-style: none;",
    "bullet": "color: $text-primary;",
    "quote-bar": "color: $text-secondary;",
    "code": "color: $text-secondary;",
    "code-bar": "color: $foreground 55%;",
    "code-comment": "color: $text-muted; text-style: italic;",
    "code-keyword": "color: $text-primary;",
    "code-name": "color: $text-accent;",
    "code-string": "color: $text-success;",
    "code-number": "color: $text-warning;",
    "good": "color: $text-success;",
    "bad": "color: $text-error;",
    "warn": "color: $text-warning;",
    "ask": "color: $text-warning;",
    "accent": "color: $text-primary;",
    "badge": "color: $text-secondary;",
    "you": "text-style: bold;",
    "you-sign": "color: $text-primary; text-style: bold;",
    "think": "color: $text-muted; text-style: italic;",
    "notice": "color: $text-secondary;",
    "card-bar": "color: $foreground 55%;",
    "cursor": "background: $foreground 7%;",
    "hint": "background: $panel; color: $text-primary; text-style: bold;",
}
CLASSES: Final = {f"transcript--{name}" for name in _STYLES}
CSS: Final = "\n".join(f".transcript--{name} {{ {look} }}" for name, look in _STYLES.items())
