"""Event stream frames of AWS: writes messages of `application/vnd.amazon.eventstream`."""

from __future__ import annotations

from collections.abc import Mapping
from struct import pack
from zlib import crc32

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A message with these headers, which are texts."""
    named = b"".join(_header(name, value) for name, value in headers.items())
    lengths = pack(">II", 16 + len(named) + len(payload), len(named))
    message = lengths + pack(">I", crc32(lengths)) + named + payload
    return message + pack(">I", crc32(message))


def _header(name: str, value: str) -> bytes:
    key, text = name.encode(), value.encode()
    return bytes([len(key)]) + key + pack(">BH", _STRING, len(text)) + text


def event_frame(name: str, payload: bytes) -> bytes:
    """An event."""
    return frame(
        {":event-type": name, ":content-type": "application/json", ":message-type": "event"},
        payload,
    )


def exception_frame(name: str, payload: bytes) -> bytes:
    """An exception, which ends a stream."""
    return frame(
        {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"},
        payload,
    )
