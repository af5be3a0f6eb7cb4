"""The keys that hold at the moment → a line of them, which can be clicked."""

from __future__ import annotations

import re

from textual.binding import Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.style import Style
from textual.widgets import Static

from everturn.tui.base import app_of, host
from everturn.tui.words.app import words

NAMES = {
    "escape": "Esc",
    "enter": "Enter",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "question_mark": "?",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "space": "Space",
}


_KEYS = {"Enter": "enter", "回车": "enter", "Esc": "escape"}
_PRESSED = re.compile(r"Ctrl\+[A-Z]|[a-zA-Z]")
_HINT = re.compile(r"(?P<key>回车|[^\s\uff1a:]+)(?P<does>.*?)(?: · |$)")


def spelt(key: str) -> str:
    """A key as people write it: `ctrl+n` is `Ctrl+N`."""
    if len(key) == 1:
        return key  # c and C are two keys
    pieces = key.split("+")
    return "+".join(NAMES.get(piece, piece.upper() if len(piece) == 1 else piece.capitalize()) for piece in pieces)


def bindings_of(kind: type[DOMNode]) -> list[Binding]:
    """The keys of a class, as they are written there."""
    return [one for one in kind.__dict__.get("BINDINGS", ()) if isinstance(one, Binding)]


def _piece(key: str, name: str, action: str, gap: str = " ") -> Content:
    """A key and what it does, to be clicked."""
    piece = Content.assemble((key, "bold $primary"), f"{gap}{name}" if name else "")
    return piece.stylize(Style.from_meta({"@click": action})) if action else piece


class KeysLine(Static):
    """The keys that are worth knowing at the moment, as many as there is room for."""

    DEFAULT_CSS = """
    KeysLine { height: 1; padding: 0 1; color: $text-muted; }
    """

    def __init__(self) -> None:
        super().__init__(id="keys", markup=False)
        self.auto_links = False  # it has its own colours
        self._first: list[tuple[str, str, str]] = []

    def on_mount(self) -> None:
        """Draw it."""
        self.draw()

    def on_resize(self) -> None:
        """Draw it anew."""
        self.draw()

    def put(self, first: list[tuple[str, str, str]]) -> None:
        """Show these before all others: keys, what they do, and the action of a click."""
        if first != self._first:
            self._first = first
            self.draw()

    def draw(self) -> None:
        """As many as fit."""
        said = words(host(self).language).keys
        shown = [one for one in bindings_of(type(app_of(self))) if one.show]
        usual = [(spelt(one.key), said.get(one.action, one.description), f"app.{one.action}") for one in shown]
        line, room = Content(), self.content_size.width
        for key, name, action in [*self._first, *usual]:
            piece = _piece(key, name, action)
            if line.cell_length + piece.cell_length + 2 > room:
                break
            line = Content("  ").join([line, piece]) if line else piece
        self.update(line)


class Hints(Static):
    """A sentence of keys, as `Enter opens · Esc closes`: each stays on one line, and can be clicked."""

    DEFAULT_CSS = """
    Hints { width: 1fr; }  /* never as wide as its text: that is broken to fit the width */
    """

    def __init__(self, text: str, id: str | None = None) -> None:
        super().__init__(id=id, classes="keys", markup=False)
        self.auto_links = False
        self._text, self._shown = text, Content()

    def on_mount(self) -> None:
        """Draw it."""
        self._flow()

    def on_resize(self) -> None:
        """Draw it anew."""
        self._flow()

    def say(self, text: str) -> None:
        """Other keys, or another language."""
        self._text = text
        self._flow()

    def _flow(self) -> None:
        content, used, room = Content(), 0, self.content_size.width or 60
        for found in _HINT.finditer(self._text):
            key = _KEYS.get(found["key"], found["key"].lower() if _PRESSED.fullmatch(found["key"]) else "")
            piece = _piece(found["key"], found["does"], f"app.simulate_key({key!r})" if key else "", "")
            gap = "" if not used else "\n" if used + 3 + piece.cell_length > room else " · "
            used = piece.cell_length + (used + 3 if gap == " · " else 0)
            content = Content.assemble(content, gap, piece)
        if content != self._shown:
            self._shown = content
            self.update(content)
