"""Subscribers of a session broadcast: streams at the same position with the same redaction share their encoded bytes."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.core.deltas import CallProgress, Delta
from everturn.core.events import Entry
from everturn.server.streams.response import EventStreamResponse
from everturn.server.streams.sse import EndReason, Subscriber

Shown = Entry | Delta | CallProgress


class _SharedView:
    """The streams that share one position and one redaction."""

    __slots__ = ("streams", "subscriber")

    def __init__(self, subscriber: Subscriber) -> None:
        self.subscriber = subscriber
        self.streams: dict[EventStreamResponse, None] = {}


class Subscribers:
    """The streams of a session, grouped by what they are shown."""

    def __init__(self) -> None:
        self._views: dict[tuple[str, bool], _SharedView] = {}  # (turn or "", whether results are redacted)
        self._separate: dict[EventStreamResponse, Subscriber] = {}  # ahead, behind, or in another protocol

    def add(self, stream: EventStreamResponse, subscriber: Subscriber) -> None:
        """Add a stream to the group at its position, or on its own."""
        if not subscriber.is_shared:
            self._separate[stream] = subscriber
            return
        key = (subscriber.turn, subscriber.is_redacted)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = _SharedView(subscriber)
        if view.subscriber is subscriber or view.subscriber.cursor == subscriber.cursor:
            view.streams[stream] = None
        else:
            self._separate[stream] = subscriber

    def remove(self, stream: EventStreamResponse) -> None:
        """Remove a stream that has closed."""
        self._separate.pop(stream, None)
        for key, view in list(self._views.items()):
            if stream in view.streams:
                del view.streams[stream]
                if not view.streams:
                    del self._views[key]

    def all(self) -> list[tuple[EventStreamResponse, str]]:
        """All streams, each with the turn that it follows ("" for the whole session)."""
        shared = [(stream, turn) for (turn, _), view in self._views.items() for stream in view.streams]
        return shared + [(stream, subscriber.turn) for stream, subscriber in self._separate.items()]

    def end(self, why: EndReason) -> None:
        """End all streams."""
        for stream, _ in self.all():
            stream.end(why)
        self._views.clear()
        self._separate.clear()

    def publish(self, items: Sequence[Shown]) -> None:
        """Encode new items and push them to all streams."""
        for key, view in list(self._views.items()):
            if not view.streams:
                del self._views[key]
                continue
            subscriber = view.subscriber
            data = b"".join([subscriber.encode(item) for item in items])
            if data:
                slow = [stream for stream in view.streams if not stream.push(data)]
                for stream in slow:
                    del view.streams[stream]
            if subscriber.is_over:
                for stream in view.streams:
                    stream.end("over")
                del self._views[key]
        for stream, subscriber in list(self._separate.items()):
            data = b"".join([subscriber.encode(item) for item in items])
            if data and not stream.push(data):
                del self._separate[stream]
            elif subscriber.is_over:
                stream.end("over")
                del self._separate[stream]
            elif subscriber.is_shared:
                del self._separate[stream]
                self.add(stream, subscriber)
