"""Event stream decoder: splits the bytes of `application/vnd.amazon.eventstream` (Amazon Bedrock) into events.

A message is framed by lengths and two checksums:

    total length (4)  headers length (4)  CRC-32 of both (4)  headers  payload  CRC-32 of all before (4)

Numbers are big-endian. The headers say what the payload is; an event comes out as JSON, `{"contentBlockDelta": {…}}`, and so
does an exception, so that a wire format reads it like any other. Of the types of header values only strings matter here;
the others are skipped by their size.

What does not begin with a valid frame is no event stream, such as an HTML page: it is skipped, so that the caller can
report that there was no stream. From then on a frame that is damaged ends the stream. A length is believed only with its
checksum, and bounded, so memory stays bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from struct import Struct as Binary
from typing import Final
from zlib import crc32

import msgspec

from everturn.errors import ModelError
from everturn.transport.limits import StreamLimits, too_long_error

CONTENT_TYPE: Final = "application/vnd.amazon.eventstream"
PRELUDE: Final = 12  # bytes of both lengths and their checksum
CHECKSUM: Final = 4
SMALLEST: Final = PRELUDE + CHECKSUM
UNMODELED: Final = "error"  # the event of an error that the service has no shape for

_prelude = Binary(">III")
_checksum = Binary(">I")
_size = Binary(">H")
_SIZES: Final[Mapping[int, int]] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}  # of header values, by type
_BYTES, _STRING = 6, 7


class EventStreamReader:
    """Decodes one stream. Once `error` is set nothing more is read; earlier events are valid."""

    def __init__(self, limits: StreamLimits | None = None) -> None:
        self._limits = limits or StreamLimits()
        self._rest = bytearray()  # an incomplete message; it grows in place, so that tiny reads stay linear
        self._seen = 0
        self._has_begun = False
        self._is_no_stream = False
        self.error: ModelError | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes. Returns the events they complete."""
        if self.error is not None:
            return []
        self._seen += len(data)
        too_long: ModelError | None = None
        if self._seen > self._limits.stream:
            data = data[: self._limits.stream - self._seen]
            too_long = too_long_error("stream", self._limits.stream)
        events = [] if self._is_no_stream else self._read(data)
        self.error = self.error or too_long
        if self.error is not None or self._is_no_stream:
            self._rest.clear()
        return events

    def end(self) -> list[bytes]:
        """A message that is not complete is none."""
        self._rest.clear()
        return []

    def _read(self, data: bytes) -> list[bytes]:
        rest, at = self._rest, 0
        rest += data
        events: list[bytes] = []
        while len(rest) - at >= PRELUDE:
            total, headers, sum_of_lengths = _prelude.unpack_from(rest, at)
            if sum_of_lengths != crc32(rest[at : at + 8]) or total < SMALLEST + headers:
                self._give_up()
                break
            if total > self._limits.event:
                self.error = too_long_error("event", self._limits.event)
                break
            if len(rest) - at < total:
                break
            message = bytes(rest[at : at + total])
            if _checksum.unpack_from(message, total - CHECKSUM)[0] != crc32(message[:-CHECKSUM]):
                self._give_up()
                break
            named = read_headers(message[PRELUDE : PRELUDE + headers])
            if named is None:
                self._give_up()
                break
            self._has_begun = True
            events.append(as_event(named, message[PRELUDE + headers : -CHECKSUM]))
            at += total
        del rest[:at]
        return events

    def _give_up(self) -> None:
        if self._has_begun:
            self.error = ModelError(
                "the model's answer was cut off: an event is damaged", kind="truncated", retryable=True
            )
        else:
            self._is_no_stream = True


def read_headers(data: bytes) -> dict[str, str] | None:
    """The headers with text as their value; None: they are damaged."""
    named: dict[str, str] = {}
    at, end = 0, len(data)
    while at < end:
        start = at + 1
        at = start + data[at] + 1
        if at > end:
            return None
        name, kind = data[start : at - 1], data[at - 1]
        if kind in (_BYTES, _STRING):
            if at + 2 > end:
                return None
            size = _size.unpack_from(data, at)[0]
            at += 2
        elif (size := _SIZES.get(kind, -1)) < 0:
            return None
        if at + size > end:
            return None
        if kind == _STRING:
            named[name.decode("utf-8", "replace")] = data[at : at + size].decode("utf-8", "replace")
        at += size
    return named


def as_event(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A message as JSON: an object with one field, the type of the event or exception."""
    kind = headers.get(":message-type", "event")
    if kind == "error":
        error = {"code": headers.get(":error-code", ""), "message": headers.get(":error-message", "")}
        return msgspec.json.encode({UNMODELED: error})
    name = headers.get(":exception-type" if kind == "exception" else ":event-type", "")
    return b"{%s:%s}" % (msgspec.json.encode(name), payload or b"{}")


__all__ = ["CONTENT_TYPE", "EventStreamReader"]
