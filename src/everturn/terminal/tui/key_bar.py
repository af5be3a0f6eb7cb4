"""Key hints: the keys that work at the moment, as a line that can be clicked."""

from __future__ import annotations

import re

from textual.binding import Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.style import Style
from textual.widgets import Static

from everturn.terminal.tui.host import get_app, get_host
from everturn.terminal.tui.texts.app import get_app_texts

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


_KEYS = {"Enter": "enter", "Esc": "escape"}
_PRESSED = re.compile(r"Ctrl\+[A-Z]|[a-zA-Z]")
_HINT = re.compile(r"(?P<key>[^\s\uff1a:]+)(?P<does>.*?)(?: · |$)")


def format_key(key: str) -> str:
    """Return a key as people write it: `ctrl+n` is `Ctrl+N`."""
    if len(key) == 1:
        return key  # c and C are two keys
    pieces = key.split("+")
    return "+".join(NAMES.get(piece, piece.upper() if len(piece) == 1 else piece.capitalize()) for piece in pieces)


def own_bindings(kind: type[DOMNode]) -> list[Binding]:
    """Return the bindings that a class itself declares."""
    return [binding for binding in kind.__dict__.get("BINDINGS", ()) if isinstance(binding, Binding)]


def _piece(key: str, name: str, action: str, gap: str = " ") -> Content:
    """Return a key and its description, clickable."""
    piece = Content.assemble((key, "bold $primary"), f"{gap}{name}" if name else "")
    return piece.stylize(Style.from_meta({"@click": action})) if action else piece


class KeyHintBar(Static):
    """The most useful keys at the moment, as many as fit."""

    DEFAULT_CSS = """
    KeyHintBar { height: 1; padding: 0 1; color: $text-muted; }
    """

    def __init__(self) -> None:
        super().__init__(id="keys", markup=False)
        self.auto_links = False  # the hints have their own colours
        self._first: list[tuple[str, str, str]] = []

    def on_mount(self) -> None:
        """Draw the keys."""
        self.draw()

    def on_resize(self) -> None:
        """Draw the keys for the new width."""
        self.draw()

    def put(self, first: list[tuple[str, str, str]]) -> None:
        """Show these before all others: each a key, its description, and the action of a click."""
        if first != self._first:
            self._first = first
            self.draw()

    def draw(self) -> None:
        """Draw as many keys as fit."""
        descriptions = get_app_texts(get_host(self).language).keys
        bindings = [binding for binding in own_bindings(type(get_app(self))) if binding.show]
        usual = [
            (format_key(binding.key), descriptions.get(binding.action, binding.description), f"app.{binding.action}")
            for binding in bindings
        ]
        line, room = Content(), self.content_size.width
        for key, name, action in [*self._first, *usual]:
            piece = _piece(key, name, action)
            if line.cell_length + piece.cell_length + 2 > room:
                break
            line = Content("  ").join([line, piece]) if line else piece
        self.update(line)


class KeyHints(Static):
    """A sentence of keys, such as `Enter opens · Esc closes`: each key stays with its text, and can be clicked."""

    DEFAULT_CSS = """
    KeyHints { width: 1fr; }  /* never as wide as its text: that is broken to fit the width */
    """

    def __init__(self, text: str, id: str | None = None) -> None:
        super().__init__(id=id, classes="keys", markup=False)
        self.auto_links = False
        self._text, self._shown = text, Content()

    def on_mount(self) -> None:
        """Draw the keys."""
        self._flow()

    def on_resize(self) -> None:
        """Draw the keys for the new width."""
        self._flow()

    def set_text(self, text: str) -> None:
        """Show other keys, or the keys in another language."""
        if text != self._text:
            self._text = text
            self._flow()

    def _flow(self) -> None:
        content, used, room = Content(), 0, self.content_size.width or 60
        for match in _HINT.finditer(self._text):
            key = _KEYS.get(match["key"], match["key"].lower() if _PRESSED.fullmatch(match["key"]) else "")
            piece = _piece(match["key"], match["does"], f"app.simulate_key({key!r})" if key else "", "")
            gap = "" if not used else "\n" if used + 3 + piece.cell_length > room else " · "
            used = piece.cell_length + (used + 3 if gap == " · " else 0)
            content = Content.assemble(content, gap, piece)
        if content != self._shown:
            self._shown = content
            self.update(content)
