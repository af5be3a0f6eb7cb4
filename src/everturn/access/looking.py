"""What a face draws a session from: its log, page by page, and what waits to be begun."""

from __future__ import annotations

from typing import Final, cast

import msgspec

from everturn import api
from everturn.access.inside import Inside
from everturn.access.needs import needs
from everturn.access.veiling import veil_event
from everturn.core.commands import Send
from everturn.core.events import Entry, LogEvent
from everturn.core.parts import FilePart, text_of

PAGE: Final = 2000  # entries at most
AT_ONCE: Final = 250  # of them, read at once
BYTES: Final = 4_000_000  # behind which a page ends early


class Looking(Inside):
    """What somebody may see of how a session came to be."""

    @needs("viewer")
    async def log(self, session: str, after: int = 0, limit: int = PAGE) -> api.LogPage:
        """A page of a session's log: what a reader folds before it follows what comes."""
        await self.readable(session)
        shown: list[api.LogItem] = []
        left, size = max(1, min(limit, PAGE)), 0
        while left and size < BYTES:
            at, most = shown[-1].seq if shown else after, min(left, AT_ONCE)
            with self.within():
                entries = await self.store.page(session, at, most)
            shown += map(self._item, entries)
            size += sum(len(msgspec.json.encode(item)) for item in shown[len(shown) - len(entries) :])
            left -= len(entries)
            if len(entries) < most:
                return api.LogPage(entries=shown, is_whole=True)
        return api.LogPage(entries=shown, is_whole=False)

    def _item(self, entry: Entry) -> api.LogItem:
        event = veil_event(entry.event) if self.is_veiled else entry.event
        return api.LogItem(seq=entry.seq, event=cast("LogEvent", event))

    @needs("viewer")
    async def queue(self, session: str) -> api.QueueList:
        """The messages of a session that no turn has begun with yet, in the order in which they will."""
        await self.readable(session)
        with self.within():
            waiting = await self.store.inbox(session)
        return api.QueueList(queued=[_queued(one) for one in waiting if isinstance(one, Send) and one.parts])


def _queued(send: Send) -> api.QueuedView:
    parts = send.parts or ()
    return api.QueuedView(
        turn=send.turn,
        message=send.message,
        at=send.at,
        text=text_of(parts),
        files=[part for part in parts if isinstance(part, FilePart)],
        by=send.options.by,
        steers=send.joins,
    )
