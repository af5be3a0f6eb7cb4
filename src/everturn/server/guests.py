"""Who is in a room. Those who are at the same place and may see the same are given the same bytes, encoded once."""

from __future__ import annotations

from collections.abc import Sequence

from everturn.core.deltas import CallProgress, Delta
from everturn.core.events import Entry
from everturn.server.live import Live
from everturn.server.sse import Sight, Why

Shown = Entry | Delta | CallProgress


class _View:
    """Those who see the same thing at the same place."""

    __slots__ = ("lives", "sight")

    def __init__(self, sight: Sight) -> None:
        self.sight = sight
        self.lives: dict[Live, None] = {}


class Guests:
    """The readers of a session, by what they see."""

    def __init__(self) -> None:
        self._views: dict[tuple[str, bool], _View] = {}  # (turn or "", whether it is veiled)
        self._apart: dict[Live, Sight] = {}  # ahead, behind, or in another protocol

    def place(self, live: Live, sight: Sight) -> None:
        """Put a reader with those who are where it is, or apart."""
        if not sight.is_shared:
            self._apart[live] = sight
            return
        key = (sight.turn, sight.is_veiled)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = _View(sight)
        if view.sight is sight or view.sight.place == sight.place:
            view.lives[live] = None
        else:
            self._apart[live] = sight

    def remove(self, live: Live) -> None:
        """A reader has left."""
        self._apart.pop(live, None)
        for key, view in list(self._views.items()):
            if live in view.lives:
                del view.lives[live]
                if not view.lives:
                    del self._views[key]

    def all(self) -> list[tuple[Live, str]]:
        """Who is here, and which turn they follow, if it is one."""
        fast = [(live, turn) for (turn, _), view in self._views.items() for live in view.lives]
        return fast + [(live, sight.turn) for live, sight in self._apart.items()]

    def end(self, why: Why) -> None:
        """End all streams."""
        for live, _ in self.all():
            live.end(why)
        self._views.clear()
        self._apart.clear()

    def show(self, items: Sequence[Shown]) -> None:
        """Show everybody what they have not seen."""
        for key, view in list(self._views.items()):
            if not view.lives:
                del self._views[key]
                continue
            sight = view.sight
            data = b"".join([sight.take(item) for item in items])
            if data:
                late = [live for live in view.lives if not live.push(data)]
                for live in late:
                    del view.lives[live]
            if sight.is_over:
                for live in view.lives:
                    live.end("over")
                del self._views[key]
        for live, sight in list(self._apart.items()):
            data = b"".join([sight.take(item) for item in items])
            if data and not live.push(data):
                del self._apart[live]
            elif sight.is_over:
                live.end("over")
                del self._apart[live]
            elif sight.is_shared:
                del self._apart[live]
                self.place(live, sight)
