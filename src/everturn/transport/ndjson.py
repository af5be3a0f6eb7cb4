"""Bytes → the lines of newline-delimited JSON, whatever the bytes and however they are split.

Only LF ends a line: a JSON text may hold U+2028 and U+0085, which other readers break at. The CR of a CRLF, and blanks
at both ends, belong to nobody. What is too big is an error, never memory; a line is an event, so the lower limit counts.

A stream begins with the first line that begins like an object. What comes before, such as a web page, is passed over,
so that whoever reads can say that there was no stream; from then on every line counts.
"""

from __future__ import annotations

from everturn.errors import ModelError
from everturn.transport.limits import Limits, too_long

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"


class NdjsonReader:
    """Reads one stream. Once `error` is set nothing more is read; what came before it is good."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits = limits or Limits()
        self._longest = min(limits.line, limits.event)  # between two line ends, a CR counted in
        self._rest = bytearray()  # a line that has not ended; grows in place, so that tiny reads stay linear
        self._seen = 0
        self._is_first = True  # the next line is; it may begin with a mark
        self._has_begun = False
        self.error: ModelError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes in, and give the lines they complete."""
        if self.error is not None:
            return []
        self._seen += len(data)
        if self._seen > self._limits.stream:
            data = data[: self._limits.stream - self._seen]
            self.error = too_long("stream", self._limits.stream)
        *lines, left = data.split(b"\n")
        rest = self._rest
        if lines and rest:
            rest += lines[0]
            lines[0] = bytes(rest)
            rest.clear()
        rest += left
        found = self._read(lines)
        if len(rest) > self._longest:
            self._give_up()
        elif self.error is not None:
            rest.clear()
        return found

    def end(self) -> list[bytes]:
        """A last line that nobody ended: some servers close right after it."""
        if self.error is not None or not self._rest:
            return []
        last = bytes(self._rest)
        self._rest.clear()
        return self._read([last])

    def _read(self, lines: list[bytes]) -> list[bytes]:
        found: list[bytes] = []
        for line in lines:
            if len(line) > self._longest:
                self._give_up()
                break
            if self._is_first:
                self._is_first = False
                line = line.removeprefix(_BOM)
            line = line.strip(_BLANKS)
            if line and (self._has_begun or line.startswith(b"{")):
                self._has_begun = True
                found.append(line)
        return found

    def _give_up(self) -> None:
        """A line too long comes before the end of a stream too long, so it is what is said."""
        what = "line" if self._limits.line <= self._limits.event else "event"
        self.error = too_long(what, self._longest)
        self._rest.clear()
