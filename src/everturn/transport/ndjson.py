"""NDJSON decoder: splits bytes into lines of JSON, however the bytes are chunked.

Only LF ends a line: a JSON text may contain U+2028 and U+0085, at which other readers split. The CR of a CRLF, and blanks
at both ends, are removed. A line that is too long is an error, so memory stays bounded; a line is an event, so the lower
limit counts.

A stream begins with the first line that begins like an object. What comes before, such as an HTML page, is skipped, so
that the caller can report that there was no stream; from then on every line counts.
"""

from __future__ import annotations

from everturn.errors import ModelError
from everturn.transport.limits import StreamLimits, too_long_error

_BOM = b"\xef\xbb\xbf"
_BLANKS = b" \t\r"


class NdjsonReader:
    """Decodes one stream. Once `error` is set nothing more is read; earlier lines are valid."""

    def __init__(self, limits: StreamLimits | None = None) -> None:
        self._limits = limits = limits or StreamLimits()
        self._longest = min(limits.line, limits.event)  # between two line ends, including a CR
        self._rest = bytearray()  # an incomplete line; it grows in place, so that tiny reads stay linear
        self._seen = 0
        self._is_first = True  # the next line is the first, and may begin with a byte order mark
        self._has_begun = False
        self.error: ModelError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes. Returns the lines they complete."""
        if self.error is not None:
            return []
        self._seen += len(data)
        if self._seen > self._limits.stream:
            data = data[: self._limits.stream - self._seen]
            self.error = too_long_error("stream", self._limits.stream)
        *lines, left = data.split(b"\n")
        rest = self._rest
        if lines and rest:
            rest += lines[0]
            lines[0] = bytes(rest)
            rest.clear()
        rest += left
        events = self._read(lines)
        if len(rest) > self._longest:
            self._give_up()
        elif self.error is not None:
            rest.clear()
        return events

    def end(self) -> list[bytes]:
        """The last line without a line end: some servers close right after it."""
        if self.error is not None or not self._rest:
            return []
        last = bytes(self._rest)
        self._rest.clear()
        return self._read([last])

    def _read(self, lines: list[bytes]) -> list[bytes]:
        events: list[bytes] = []
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
                events.append(line)
        return events

    def _give_up(self) -> None:
        """Report the line that is too long: it comes before the end of a stream that is too long."""
        field = "line" if self._limits.line <= self._limits.event else "event"
        self.error = too_long_error(field, self._longest)
        self._rest.clear()
