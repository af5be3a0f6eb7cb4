"""A TOML text → where in it each key stands. `tomllib` says what a text means, and nothing of where it says so.

It reads only what `tomllib` has read before, so it refuses nothing: it has to find the keys, and skip the rest.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

Path = tuple[str | int, ...]
Place = tuple[int, int]  # line and column, from 1

_BLANK: Final = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE: Final = re.compile(r"[ \t]*")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRING: Final = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'",
    re.DOTALL,
)
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")


def positions(text: str) -> dict[Path, Place]:
    """Where each key, and each item of a list, is first named. An item of `[[a]]` is where its header is."""
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text, self._at = text.replace("\r\n", "\n"), 0
        self._found: dict[Path, Place] = {}
        self._counts: dict[Path, int] = {}  # of lists that are written as [[a]]
        self._line, self._start = 1, 0

    def scan(self) -> dict[Path, Place]:
        table: Path = ()
        while True:
            self._skip(_BLANK)
            if self._at >= len(self._text):
                return self._found
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            return ""
        self._at = found.end()
        return found[0]

    def _place(self, at: int) -> Place:
        """The line and column of an offset; offsets only ever grow."""
        self._line += self._text.count("\n", self._start, at)
        self._start = at
        return self._line, at - self._text.rfind("\n", 0, at)

    def _note(self, path: Path, place: Place) -> None:
        self._found.setdefault(path, place)

    def _keys(self) -> list[tuple[str, Place]]:
        """A dotted key, each piece with its place."""
        keys: list[tuple[str, Place]] = []
        while True:
            self._skip(_SPACE)
            place = self._place(self._at)
            bare = self._skip(_BARE)
            keys.append((bare or _unquoted(self._skip(_STRING)), place))
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _header(self) -> Path:
        is_list = self._text.startswith("[[", self._at)
        self._at += 2 if is_list else 1
        pieces: list[str | int] = []
        keys = self._keys()
        for number, (key, place) in enumerate(keys):
            pieces.append(key)
            path = tuple(pieces)
            self._note(path, place)
            if is_list and number == len(keys) - 1:
                self._counts[path] = self._counts.get(path, -1) + 1
            if path in self._counts:  # further pieces are of its last item
                pieces.append(self._counts[path])
                self._note(tuple(pieces), place)
        self._at += 2 if is_list else 1
        return tuple(pieces)

    def _pair(self, table: Path) -> None:
        for key, place in self._keys():
            table = (*table, key)
            self._note(table, place)
        self._at += 1  # =
        self._value(table)

    def _value(self, path: Path) -> None:
        self._skip(_SPACE)
        opened = self._text[self._at]
        if opened == "[":
            self._items(path)
        elif opened == "{":
            self._inline(path)
        elif opened in "\"'":
            self._skip(_STRING)
        else:
            self._skip(_SCALAR)

    def _items(self, path: Path) -> None:
        self._at += 1
        count = 0
        while True:
            self._skip(_BLANK)
            if self._text[self._at] == "]":
                self._at += 1
                return
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._note((*path, count), self._place(self._at))
            self._value((*path, count))
            count += 1

    def _inline(self, path: Path) -> None:
        self._at += 1
        while True:
            self._skip(_BLANK)
            if self._text[self._at] == "}":
                self._at += 1
                return
            if self._text[self._at] == ",":
                self._at += 1
                continue
            self._pair(path)


def _unquoted(key: str) -> str:
    return str(tomllib.loads(f"key = {key}")["key"])
