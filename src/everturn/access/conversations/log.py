"""Log access: a session's event log page by page, and its queued messages. Clients render a session from these."""

from __future__ import annotations

from typing import Final, cast

import msgspec

from everturn import api
from everturn.access.context.role_redaction import redact_event
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess
from everturn.access.conversations.log_tail import TAIL_TURNS, read_tail
from everturn.core.commands import Send
from everturn.core.events import Entry, LogEvent
from everturn.core.parts import FilePart, join_text

PAGE: Final = 2000  # entries at most
AT_ONCE: Final = 250  # entries that are read at once
BYTES: Final = 4_000_000  # bytes after which a page ends early


class LogAccess:
    """Access to the log and queue of a session."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def page(self, session: str, after: int = 0, limit: int = PAGE) -> api.LogPage:
        """A page of a session's log, which a client folds before it follows the stream."""
        await self.scope.readable_session(session)
        shown: list[api.LogItem] = []
        left, size = max(1, min(limit, PAGE)), 0
        while left and size < BYTES:
            after_seq, page_size = shown[-1].seq if shown else after, min(left, AT_ONCE)
            with self.scope.tenant_scope():
                entries = await self.scope.store.event_page(session, after_seq, page_size)
            shown += map(self._item, entries)
            size += sum(len(msgspec.json.encode(item)) for item in shown[len(shown) - len(entries) :])
            left -= len(entries)
            if len(entries) < page_size:
                return api.LogPage(entries=shown, is_whole=True)
        return api.LogPage(entries=shown, is_whole=False)

    @needs("viewer")
    async def tail(self, session: str, turns: int = TAIL_TURNS, before: int = 0) -> api.LogTail:
        """The last turns of a session, or the last that started `before` a position: what a client shows first."""
        info = await self.scope.readable_session(session)
        with self.scope.tenant_scope():
            tail = await read_tail(self.scope.store, session, info.leaf, max(1, min(turns, PAGE)), before)
            spent = await self.scope.store.spent(session=session)
            info = await self.scope.store.info(session)  # not older than the entries: the stream only adds to it
        return api.LogTail(
            entries=[self._item(entry) for entry in tail.entries],
            start=tail.start,
            seq=tail.seq,
            leaf=info.leaf,
            title=info.title,
            cost=spent.usage.cost,
        )

    def _item(self, entry: Entry) -> api.LogItem:
        event = redact_event(entry.event) if self.scope.is_redacted else entry.event
        return api.LogItem(seq=entry.seq, event=cast("LogEvent", event))

    @needs("viewer")
    async def queue(self, session: str) -> api.QueueList:
        """The queued messages of a session, in the order in which their turns will begin."""
        await self.scope.readable_session(session)
        with self.scope.tenant_scope():
            waiting = await self.scope.store.inbox(session)
        return api.QueueList(
            queued=[_queued(command) for command in waiting if isinstance(command, Send) and command.parts]
        )


def _queued(send: Send) -> api.QueuedView:
    parts = send.parts or ()
    return api.QueuedView(
        turn=send.turn,
        message=send.message,
        at=send.at,
        text=join_text(parts),
        files=[part for part in parts if isinstance(part, FilePart)],
        by=send.options.by,
        steers=send.joins,
    )
