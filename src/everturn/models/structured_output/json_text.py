"""JSON in a streamed text: passes on the one JSON object that a model was asked for, and not what stands around it.

Models that nobody holds to a schema put JSON into code fences, and a sentence before it. Where the type is no object, the
object is a wrapper with one key, and only the value of that key is passed on.
"""

from __future__ import annotations

import re
from typing import Literal

WRAPPER_KEY = "result"  # the one key of an object that holds a list, a number, a union, …

_BEGIN = re.compile(r'\{\s*(?:["}]|\Z)')  # an object, or what may become one
_MARKS = re.compile(r'["\\{}\[\]]')
_SCALAR_END = re.compile(r"[\s,}\]]")
_State = Literal["seek", "open", "value", "over"]


class JsonTextFilter:
    """Passes on the first JSON object of a text, or the value of its one key `key`.

    A text without an object is passed on at its end, as it is.
    """

    def __init__(self, key: str = "") -> None:
        self._tokens = ("{", f'"{key}"', ":") if key else ()
        self._state: _State = "seek"
        self._held = ""
        self._depth, self._in_string, self._is_escaped, self._is_scalar = 0, False, False, False

    @property
    def has_begun(self) -> bool:
        """Whether an object was found."""
        return self._state in ("value", "over")

    def feed(self, text: str) -> str:
        """Take a piece of the text, and return what is to be passed on."""
        if self._state == "seek":
            text = self._seek(self._held + text)
        if self._state == "open":
            text = self._open(text if not self._held else self._held + text)
        return self._value(text) if self._state == "value" else ""

    def end(self) -> str:
        """Return what was held back of a text that has no object."""
        held, self._held = ("" if self.has_begun else self._held), ""
        self._state = "over"
        return held

    def _seek(self, text: str) -> str:
        found = _BEGIN.search(text)
        if found is None or (found.end() == len(text) and found[0][-1] not in '"}'):
            self._held = text
            return ""
        self._held = ""
        self._state = "open" if self._tokens else "value"
        return text[found.start() :]

    def _open(self, text: str) -> str:
        """Take the wrapper off. An object that is none is passed on whole."""
        at = 0
        for token in self._tokens:
            at += len(text[at:]) - len(text[at:].lstrip())
            if not text.startswith(token, at):
                if token.startswith(text[at:]):  # the rest is still to come
                    self._held = text
                    return ""
                self._state, self._held = "value", ""
                return text
            at += len(token)
        rest = text[at:].lstrip()
        if not rest:
            self._held = text
            return ""
        self._state, self._held, self._is_scalar = "value", "", rest[0] not in '{["'
        return rest

    def _value(self, text: str) -> str:
        """Pass a value on until it ends."""
        if self._is_scalar:
            end = _SCALAR_END.search(text)
            if end is None:
                return text
            self._state = "over"
            return text[: end.start()]
        at = 0
        while at < len(text):
            if self._is_escaped:
                self._is_escaped = False
                at += 1
                continue
            mark = _MARKS.search(text, at)
            if mark is None:
                return text
            at = mark.end()
            if self._ends(mark[0]):
                self._state = "over"
                return text[:at]
        return text

    def _ends(self, mark: str) -> bool:
        if self._in_string:
            self._is_escaped = mark == "\\"
            self._in_string = mark != '"'
            return mark == '"' and not self._depth
        match mark:
            case '"':
                self._in_string = True
            case "{" | "[":
                self._depth += 1
            case "}" | "]":
                self._depth -= 1
                return self._depth <= 0
            case _:
                pass
        return False
