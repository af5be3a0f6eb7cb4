"""Server-sent events: encodes log entries and deltas for a subscriber, and tracks the subscriber's position."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, cast

import msgspec

from everturn.api import InboxItem, StreamDelta, StreamItem
from everturn.core.deltas import CallProgress, Cursor, Delta, TurnItem, TurnReader
from everturn.core.events import Entry, Event, LogEvent, Terminal
from everturn.core.projections.session_reader import SessionCursor, SessionReader
from everturn.protocols import Encoder

EndReason = Literal["", "over", "drain", "slow", "revoked", "unshared", "erased", "lost"]
EventRedaction = Callable[[Event], Event]

HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # a proxy that buffers would deliver the stream in lumps
}
KEEP_ALIVE: Final = b": keep-alive\n\n"

_encode = msgspec.json.Encoder().encode


def encode_message(item: StreamItem | InboxItem, cursor: str = "") -> bytes:
    """One event of a stream. Without a cursor the client keeps its last one."""
    data = _encode(item)
    return b"id: %b\ndata: %b\n\n" % (cursor.encode(), data) if cursor else b"data: %b\n\n" % data


def encode_end(why: EndReason) -> bytes:
    """The last event of a stream, with the reason. It has no cursor, so a client that reconnects resumes where it was."""
    return encode_message(StreamItem(end=why))


class Subscriber:
    """A position in a session or in one of its turns, and how later events are redacted and encoded.

    Several streams at the same position share one `Subscriber`.
    """

    def __init__(
        self,
        reader: SessionReader | TurnReader,
        turn: str = "",
        redact: EventRedaction | None = None,
        encoder: Encoder | None = None,
    ) -> None:
        self.reader, self.turn, self._redact, self._encoder = reader, turn, redact, encoder
        self.is_over = False  # no more events can follow

    @property
    def is_shared(self) -> bool:
        """Whether other streams at the same position get the same bytes."""
        return self._encoder is None

    @property
    def is_redacted(self) -> bool:
        """Whether results under review are redacted."""
        return self._redact is not None

    @property
    def cursor(self) -> SessionCursor | Cursor:
        """The cursor of this subscriber."""
        return self.reader.cursor

    def encode(self, item: Entry | Delta | CallProgress) -> bytes:
        """Encode an entry, a delta or a progress report for this subscriber; b"" if it is not shown."""
        if isinstance(item, Entry):
            if self.turn and getattr(item.event, "turn", "") != self.turn:
                return b""
            if isinstance(item.event, Terminal) and self.turn:
                data = b"".join([self._write(shown, item.seq) for shown in self.reader.entry(item)])
                self.is_over = True
                return data
            return b"".join([self._write(shown, item.seq) for shown in self.reader.entry(item)])
        if self.turn and item.turn != self.turn:
            return b""
        if isinstance(item, CallProgress):
            return self._write(item, 0)
        piece = self.reader.delta(item)
        return b"" if piece is None else self._write(piece, 0)

    def _write(self, shown: TurnItem, seq: int) -> bytes:
        if self.is_over:  # the encoder is done
            return b""
        if self._redact is not None and isinstance(shown, Event):
            shown = self._redact(shown)
        if self._encoder is not None:
            data = self._encoder.feed(shown)
            self.is_over = self._encoder.is_done
            return data
        if isinstance(shown, Delta):
            item = StreamItem(delta=cast("StreamDelta", shown))
        elif isinstance(shown, CallProgress):
            item = StreamItem(progress=shown)
        else:
            item = StreamItem(seq=seq, event=cast("LogEvent", shown))
        return encode_message(item, str(self.reader.cursor))
