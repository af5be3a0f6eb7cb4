"""What a reader is shown → bytes of an event stream. `Sight` is what one reader, or all who are at one place, see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, cast

import msgspec

from everturn.api import InboxItem, Item, StreamDelta
from everturn.core.deltas import CallProgress, Cursor, Delta, Reader, Shown
from everturn.core.events import Entry, Event, LogEvent, Terminal
from everturn.core.following import SessionCursor, SessionReader
from everturn.protocols import Encoder

Why = Literal["", "over", "drain", "slow", "revoked", "erased", "lost"]
Veil = Callable[[Event], Event]

HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # a proxy that collects what it passes on would make a stream of lumps
}
KEEP_ALIVE: Final = b": keep-alive\n\n"

_encode = msgspec.json.Encoder().encode


def message(item: Item | InboxItem, cursor: str = "") -> bytes:
    """One message. Without a cursor whoever reads stays where they are."""
    data = _encode(item)
    return b"id: %b\ndata: %b\n\n" % (cursor.encode(), data) if cursor else b"data: %b\n\n" % data


def ending(why: Why) -> bytes:
    """The last message of a stream. It has no cursor: whoever comes back goes on where they were."""
    return message(Item(end=why))


class Sight:
    """A place in a session, or in one of its turns, and how that which comes behind it is written."""

    def __init__(
        self, reader: SessionReader | Reader, turn: str = "", veil: Veil | None = None, encoder: Encoder | None = None
    ) -> None:
        self.reader, self.turn, self._veil, self._encoder = reader, turn, veil, encoder
        self.is_over = False  # nothing more can come

    @property
    def is_shared(self) -> bool:
        """Whether others at the same place are shown the same bytes."""
        return self._encoder is None

    @property
    def is_veiled(self) -> bool:
        """Whether results that wait for a review are kept from this one."""
        return self._veil is not None

    @property
    def place(self) -> SessionCursor | Cursor:
        """Where it is."""
        return self.reader.cursor

    def take(self, item: Entry | Delta | CallProgress) -> bytes:
        """What is shown of an entry, a delta, or what a tool says of itself: often nothing."""
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

    def _write(self, shown: Shown, seq: int) -> bytes:
        if self.is_over:  # the encoder has said all it has to say
            return b""
        if self._veil is not None and isinstance(shown, Event):
            shown = self._veil(shown)
        if self._encoder is not None:
            data = self._encoder.feed(shown)
            self.is_over = self._encoder.is_done
            return data
        if isinstance(shown, Delta):
            item = Item(delta=cast("StreamDelta", shown))
        elif isinstance(shown, CallProgress):
            item = Item(progress=shown)
        else:
            item = Item(seq=seq, event=cast("LogEvent", shown))
        return message(item, str(self.reader.cursor))
