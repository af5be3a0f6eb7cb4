"""Event packs: the events of one append as one row of the log. Pure.

An append writes several events at once, and a row costs more than most events: a header, an index entry, a record in the
write-ahead log for each, and no compression, because PostgreSQL compresses rows of 2 kB and more only. So neighbouring
events of one append and one turn become one row, at the position of the last of them:

    prefix, length of the names (4 bytes), names, compressed JSON with a line per event

The names are the people that the events name as `"by":"…"`, in plain text: the erasure of a user searches for them with
SQL. Positions in a log have no gap, so the positions of the events follow from that of the row and from their number.

Three rules follow for the SQL that reads the log. A row after a position may begin before it: `unpack` leaves out what the
caller has. An event is in the first row at its position or behind it, never more than `PACK_EVENTS` behind. Rows of one
event as JSON are as good as any other: older logs consist of them, and an append of one small event still writes one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from everturn.errors import UnreadableLog
from everturn.stores.sql.body_compression import MAX_BYTES, MIN_BYTES, compress, decompress
from everturn.stores.sql.database import Row

PACK_PREFIX: Final = b"\xe7\x01"  # JSON never begins with it, and neither does an encrypted value
PACK_EVENTS: Final = 64  # events in one row: one that is looked for by its position has to be found in it

_NAMES = re.compile(rb'"by":"(?:[^"\\]|\\.)*"')
_LENGTH = 4

EventRow = tuple[int, str, bytes]
"""Position, turn and body of an event, or of the last event of a pack."""


def pack(rows: Sequence[EventRow]) -> list[EventRow]:
    """Return the rows to write for the events of one append."""
    packed: list[EventRow] = []
    run: list[EventRow] = []
    size = 0
    for row in rows:
        length = len(row[2]) + 1
        if run and (row[1] != run[-1][1] or len(run) == PACK_EVENTS or size + length > MAX_BYTES):
            packed.append(_pack_run(run, size))
            run, size = [], 0
        run.append(row)
        size += length
    if run:
        packed.append(_pack_run(run, size))
    return packed


def _pack_run(run: list[EventRow], size: int) -> EventRow:
    seq, turn, body = run[-1]
    if len(run) == 1 and not MIN_BYTES < size <= MAX_BYTES:
        return run[0]
    text = b"\n".join([row[2] for row in run]) if len(run) > 1 else body
    names = b"\n".join(sorted(set(_NAMES.findall(text))))
    packed = b"".join((PACK_PREFIX, len(names).to_bytes(_LENGTH, "big"), names, compress(text)))
    return (seq, turn, packed) if len(run) > 1 or len(packed) < len(body) else run[0]


def unpack(rows: Iterable[Row], after: int = 0) -> Iterator[tuple[int, bytes]]:
    """Yield position and JSON of each event behind a position, from rows that begin with position and body.

    Raises:
        UnreadableLog: a row is damaged.
    """
    for seq, body, *_ in rows:
        if not body.startswith(PACK_PREFIX):
            if seq > after:
                yield seq, body
            continue
        lines = unpack_body(body)
        first = seq - len(lines) + 1
        for at, line in enumerate(lines, first):
            if at > after:
                yield at, line


def event_at(wanted: int, seq: int, body: bytes) -> bytes:
    """Return the JSON of the event at a position, from the row that has it.

    Raises:
        UnreadableLog: the row is damaged, or the event is not in it.
    """
    lines = unpack_body(body)
    if not 0 <= seq - wanted < len(lines):
        raise UnreadableLog(f"the event at position {wanted} is missing: the next row ends at {seq}")
    return lines[wanted - seq - 1]


def unpack_body(body: bytes) -> list[bytes]:
    """Return the JSON of each event in the body of a row.

    Raises:
        UnreadableLog: it is damaged.
    """
    if not body.startswith(PACK_PREFIX):
        return [body]
    start = len(PACK_PREFIX) + _LENGTH
    start += int.from_bytes(body[len(PACK_PREFIX) : start], "big")
    return decompress(body[start:]).split(b"\n")
