"""JSON calls: parses a call written as a JSON object, `{"name": …, "arguments": {…}}`, while it streams.

Arguments are emitted in the pieces in which they arrive, once the name is known. The accepted keys are those of the
instructions, and those that models know from other formats.
"""

from __future__ import annotations

from collections.abc import Callable

from everturn.models.prompted.response import ParsedAnswer
from everturn.models.prompted.text_reader import TextParser, TextReader, json_text, json_value, next_char

_ARGUMENTS = frozenset({"arguments", "parameters", "args", "input"})


class JsonCall:
    """A call that is being parsed. It is complete when its object is closed; without a name it cannot run."""

    def __init__(self, answer: ParsedAnswer) -> None:
        self._answer = answer
        self._waiting: list[str] = []  # arguments that arrived before the name
        self._has_arguments = self._is_inside = False
        self.name = self.id = ""
        self.slot = -1

    def read(self, source: TextReader) -> TextParser[bool]:
        """Parse the object at the current position; False if it was cut off, or is no object."""
        whole = yield from read_members(source, self._member)
        if self.slot < 0:
            self._begin()
        if whole and not self._has_arguments:
            self._answer.add_arguments(self.slot, "{}")
        if whole and not self.name:  # it ends here all the same: what follows is not part of it
            self._answer.invalidate([self.slot], "it has no name")
        return whole

    def _begin(self) -> None:
        self.slot = self._answer.begin(self.name, self.id)
        self._answer.add_arguments(self.slot, "".join(self._waiting))

    def _take(self, piece: str) -> None:
        if self.slot < 0 and self.name:
            self._begin()
        if self.slot < 0:
            self._waiting.append(piece)
        else:
            self._answer.add_arguments(self.slot, piece)

    def _member(self, key: str, source: TextReader) -> TextParser[bool]:
        first = yield from next_char(source)
        if key in _ARGUMENTS:
            self._has_arguments = True
            if first in ("{", "["):
                return (yield from json_value(source, self._take))
            text = yield from json_text(source)  # JSON in a string, as in OpenAI's format, or null
            self._take("{}" if text == "null" else text or "")
            return text is not None
        if key == "function" and first == "{" and not self._is_inside:  # also OpenAI's
            self._is_inside = True
            return (yield from read_members(source, self._member))
        text = yield from json_text(source)
        if key in ("name", "function", "tool") and not self.name:
            self.name = text or ""
        elif key == "id":
            self.id = text or ""
        return text is not None


def read_members(source: TextReader, read: Callable[[str, TextReader], TextParser[bool]]) -> TextParser[bool]:
    """Parse an object's members one by one; False if it was cut off, or is no object."""
    source.at += 1  # its brace
    while True:
        char = yield from next_char(source)
        if char == "}":
            source.at += 1
            return True
        if char == ",":
            source.at += 1
            continue
        if char != '"':
            return False
        key = yield from json_text(source)
        if key is None or (yield from next_char(source)) != ":":
            return False
        source.at += 1
        if not (yield from read(key, source)):
            return False
