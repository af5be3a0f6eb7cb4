"""TOML positions: finds the line and column of each key. `tomllib` returns values without positions.

It scans only texts that `tomllib` has parsed before, so it validates nothing: it finds the keys, and skips the rest.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

KeyPath = tuple[str | int, ...]
LineColumn = tuple[int, int]  # line and column, from 1

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


def find_positions(text: str) -> dict[KeyPath, LineColumn]:
    """Return where each key, and each list item, is first named. The position of an item of `[[a]]` is its header's."""
    return _TomlScanner(text).scan()


class _TomlScanner:
    def __init__(self, text: str) -> None:
        self._text, self._at = text.replace("\r\n", "\n"), 0
        self._found: dict[KeyPath, LineColumn] = {}
        self._counts: dict[KeyPath, int] = {}  # items of lists that are written as [[a]]
        self._line, self._start = 1, 0

    def scan(self) -> dict[KeyPath, LineColumn]:
        table: KeyPath = ()
        while True:
            self._skip(_BLANK)
            if self._at >= len(self._text):
                return self._found
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _skip(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        return match[0]

    def _place(self, at: int) -> LineColumn:
        """Return the line and column of an offset; offsets only grow."""
        self._line += self._text.count("\n", self._start, at)
        self._start = at
        return self._line, at - self._text.rfind("\n", 0, at)

    def _note(self, path: KeyPath, place: LineColumn) -> None:
        self._found.setdefault(path, place)

    def _keys(self) -> list[tuple[str, LineColumn]]:
        """Scan a dotted key; return each part with its position."""
        keys: list[tuple[str, LineColumn]] = []
        while True:
            self._skip(_SPACE)
            place = self._place(self._at)
            bare = self._skip(_BARE)
            keys.append((bare or _unquoted(self._skip(_STRING)), place))
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return keys
            self._at += 1

    def _header(self) -> KeyPath:
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
            if path in self._counts:  # further parts belong to its last item
                pieces.append(self._counts[path])
                self._note(tuple(pieces), place)
        self._at += 2 if is_list else 1
        return tuple(pieces)

    def _pair(self, table: KeyPath) -> None:
        for key, place in self._keys():
            table = (*table, key)
            self._note(table, place)
        self._at += 1  # =
        self._value(table)

    def _value(self, path: KeyPath) -> None:
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

    def _items(self, path: KeyPath) -> None:
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

    def _inline(self, path: KeyPath) -> None:
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
