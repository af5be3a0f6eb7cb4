"""SSE decoder: splits bytes into the data of server-sent events, however the bytes are chunked.

Only LF, CR and CRLF end a line: a JSON text may contain U+2028 and U+0085, at which other readers split. Of an event only
the data is read, because every format we use repeats the event type in it. An event that is too long is an error, so
memory stays bounded.
"""

from __future__ import annotations

import re

from everturn.errors import ModelError
from everturn.transport.limits import StreamLimits, too_long_error

_BOM = b"\xef\xbb\xbf"
_BLANKS = re.compile(rb"\n{3,}")
_DATA = re.compile(rb"^data(?:: ?(.*))?$", re.MULTILINE)


class SseReader:
    """Decodes one stream. Once `error` is set nothing more is read; earlier events are valid."""

    def __init__(self, limits: StreamLimits | None = None) -> None:
        self._limits = limits or StreamLimits()
        self._rest = bytearray()  # an incomplete event; it grows in place, so that tiny reads stay linear
        self._line = 0  # the length of its last line
        self._seen = 0
        self._held = b""  # a CR at the end of a read, which may be half of a CRLF
        self._has_begun = False
        self.error: ModelError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes. Returns the data of the events they complete."""
        if self.error is not None:
            return []
        self._seen += len(data)
        if self._seen > self._limits.stream:
            data = data[: self._limits.stream - self._seen]
            self.error = too_long_error("stream", self._limits.stream)
        if self._held or b"\r" in data:
            data = self._held + data
            self._held = b"\r" if data.endswith(b"\r") else b""
            data = data[: len(data) - len(self._held)].replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = data.rfind(b"\n")
        self._line = self._line + len(data) if end < 0 else len(data) - end - 1
        rest = self._rest
        if not rest:
            data = data.lstrip(b"\n")  # between events a line end means nothing
        else:
            at = len(rest) - 1  # an event ends with two line ends, and the first may have come before
            rest += data
            if rest.find(b"\n\n", at) < 0:
                self._check(len(rest))
                return []
            data = bytes(rest)
            rest.clear()
        if b"\n\n\n" in data:
            data = _BLANKS.sub(b"\n\n", data)
        *events, left = data.split(b"\n\n")
        rest += left
        payloads = self._data(events)
        self._check(len(left))
        return payloads

    def end(self) -> list[bytes]:
        """The data of a last event without a terminator: some servers close right after it."""
        if self.error is not None or not self._rest:
            return []
        last = bytes(self._rest)
        self._rest.clear()
        return self._data([last])

    def _data(self, events: list[bytes]) -> list[bytes]:
        payloads: list[bytes] = []
        longest = min(self._limits.line, self._limits.event)
        for event in events:
            if len(event) > longest and (error := self._measure(event)) is not None:
                self.error = error
                self._rest.clear()
                self._line = 0
                break
            if not self._has_begun:
                self._has_begun = True
                event = event.removeprefix(_BOM)
            if event.startswith(b"data: ") and b"\n" not in event:
                data = event[6:]
            else:
                data = b"\n".join(_DATA.findall(event))
            if data:
                payloads.append(data)
        return payloads

    def _measure(self, event: bytes | bytearray) -> ModelError | None:
        """The error of an event that is too long, if it is: the same as if it had come byte by byte."""
        limits, start = self._limits, 0
        while len(event) - start > limits.line and start + limits.line <= limits.event:
            end = event.rfind(b"\n", start, start + limits.line + 1)
            if end < 0:
                return too_long_error("line", limits.line)
            start = end + 1
        return too_long_error("event", limits.event) if len(event) > limits.event else None

    def _check(self, size: int) -> None:
        """Check the incomplete event: it must not grow without limit."""
        limits = self._limits
        # The last line end of an event does not count.
        if self.error is not None or self._line > limits.line or size > limits.event + 1:
            self.error = self._measure(self._rest) or self.error
            self._rest.clear()
