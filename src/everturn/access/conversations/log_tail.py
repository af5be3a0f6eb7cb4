"""Log tail: reads the last turns of a session, so that a client can show a long one without its whole log."""

from __future__ import annotations

from typing import Final, NamedTuple

from everturn.core.events import Entry, MessagesImported
from everturn.core.messages import Message
from everturn.core.store_ports import Store
from everturn.errors import UnknownMessage
from everturn.wire import dump_event

TAIL_TURNS: Final = 20  # turns in a page, unless the client says how many
TAIL_BYTES: Final = 120_000  # bytes after which a page takes no further turn
SHOWN: Final = 6  # messages at the end of the selected branch that the first page has in any case


class Tail(NamedTuple):
    """Whole turns of a log, in order, up to position `seq`; turns that started before `start` are left out."""

    entries: list[Entry]
    start: int
    seq: int


async def read_tail(store: Store, session: str, leaf: str | None, turns: int, before: int = 0) -> Tail:
    """Read the last turns that started before a position (0: the last of all), and the events of the session between.

    The page without `before` also has the turns of the messages at the end of the selected branch, however old.
    """
    page = _TailReader(store, session, await store.head(session))
    end = before or page.seq + 1
    start = await page.read(end, turns)
    if not before:
        shown = await _end_of_branch(store, session, leaf)
        for turn in dict.fromkeys(message.turn for message in shown if message.turn):
            await page.add_turn(turn)
        while start > 1 and not page.has(shown):  # imported messages belong to no turn
            start = await page.read(start, turns)
    return Tail([page.entries[seq] for seq in sorted(page.entries)], start, page.seq)


async def _end_of_branch(store: Store, session: str, leaf: str | None) -> list[Message]:
    try:
        return await store.path(session, leaf, SHOWN)
    except UnknownMessage:  # it was deleted meanwhile; the stream says so
        return []


class _TailReader:
    def __init__(self, store: Store, session: str, seq: int) -> None:
        self._store, self._session, self.seq = store, session, seq
        self.entries: dict[int, Entry] = {}
        self._turns: set[str] = set()

    async def read(self, end: int, turns: int) -> int:
        """Read turns that started before `end`, newest first, and return where the first of them started."""
        starts = await self._store.turn_starts(self._session, end, turns + 1)
        start, size, is_first = 1, 0, len(starts) <= turns
        for number, (position, turn) in enumerate(starts[:turns], 1):
            start, size = position, size + await self.add_turn(turn)
            if size > TAIL_BYTES:
                is_first = is_first and number == len(starts)
                break
        start = 1 if is_first else start
        for entry in await self._store.event_page(self._session, start - 1, end - start):
            if not getattr(entry.event, "turn", ""):
                self._add(entry)
        return start

    async def add_turn(self, turn: str) -> int:
        """Add the events of a turn, and return their size in bytes."""
        if turn in self._turns:
            return 0
        self._turns.add(turn)
        entries = await self._store.events(self._session, turn=turn)
        for entry in entries:
            self._add(entry)
        return sum(len(dump_event(entry.event)) for entry in entries)

    def _add(self, entry: Entry) -> None:
        if entry.seq <= self.seq:
            self.entries[entry.seq] = entry

    def has(self, messages: list[Message]) -> bool:
        """Whether the imported ones of these messages are in the page."""
        imported = (entry.event for entry in self.entries.values() if isinstance(entry.event, MessagesImported))
        known = {message.id for event in imported for message in event.messages}
        return all(message.turn or message.id in known for message in messages)
