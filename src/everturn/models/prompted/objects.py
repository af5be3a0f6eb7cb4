"""A call written as a JSON object → a call, as it comes: `{"name": …, "arguments": {…}}`.

Arguments go out in the pieces in which they come, once the name is known. The keys are what models are told to write,
and what they have learned elsewhere to write instead.
"""

from __future__ import annotations

from collections.abc import Callable

from everturn.models.prompted.answer import Heard
from everturn.models.prompted.source import Reading, Source, json_text, json_value, next_sign

_ARGUMENTS = frozenset({"arguments", "parameters", "args", "input"})


class Call:
    """A call that is being read. It is whole when its object has been closed and it has a name."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._waiting: list[str] = []  # arguments that came before the name
        self._has_arguments = self._is_inside = False
        self.name = self.id = ""
        self.slot = -1

    def read(self, source: Source) -> Reading[bool]:
        """Read the object that begins here; False if it was cut off, or is none."""
        whole = yield from members(source, self._member)
        if self.slot < 0:
            self._begin()
        if whole and not self._has_arguments:
            self._heard.grow(self.slot, "{}")
        return whole and bool(self.name)

    def _begin(self) -> None:
        self.slot = self._heard.begin(self.name, self.id)
        self._heard.grow(self.slot, "".join(self._waiting))

    def _take(self, piece: str) -> None:
        if self.slot < 0 and self.name:
            self._begin()
        if self.slot < 0:
            self._waiting.append(piece)
        else:
            self._heard.grow(self.slot, piece)

    def _member(self, key: str, source: Source) -> Reading[bool]:
        first = yield from next_sign(source)
        if key in _ARGUMENTS:
            self._has_arguments = True
            if first in ("{", "["):
                return (yield from json_value(source, self._take))
            text = yield from json_text(source)  # JSON in a string, as one vendor's format has it, or none at all
            self._take("{}" if text == "null" else text or "")
            return text is not None
        if key == "function" and first == "{" and not self._is_inside:  # the same one's
            self._is_inside = True
            return (yield from members(source, self._member))
        text = yield from json_text(source)
        if key in ("name", "function", "tool") and not self.name:
            self.name = text or ""
        elif key == "id":
            self.id = text or ""
        return text is not None


def members(source: Source, read: Callable[[str, Source], Reading[bool]]) -> Reading[bool]:
    """Read an object's members one by one; False if it was cut off, or is none."""
    source.at += 1  # its brace
    while True:
        sign = yield from next_sign(source)
        if sign == "}":
            source.at += 1
            return True
        if sign == ",":
            source.at += 1
            continue
        if sign != '"':
            return False
        key = yield from json_text(source)
        if key is None or (yield from next_sign(source)) != ":":
            return False
        source.at += 1
        if not (yield from read(key, source)):
            return False
