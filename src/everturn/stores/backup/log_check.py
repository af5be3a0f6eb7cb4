"""Check of the logs in a backup: every event can be read, positions have no gap, and every turn folds.

Of encrypted rows only the positions are checked: a backup has no keys. How many events are in one is encrypted, too, so
that a gap is found where it is wider than a row can be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby

from everturn.core.events import Event
from everturn.core.state import fold
from everturn.core.tenants.encryption import is_sealed
from everturn.errors import EverturnError
from everturn.stores.sql.event_packs import PACK_EVENTS, unpack_body
from everturn.wire import load_event

LogRow = tuple[str, int, bytes]
"""Session, position and body of a row of the log: an event, or a pack of them."""


def check_logs(rows: Iterable[LogRow], heads: Mapping[str, int]) -> Iterator[str]:
    """Yield a line for each session whose log is damaged.

    Args:
        rows: the events of all sessions, by session and position.
        heads: position of the last event of each session that is not erased.
    """
    missing = {session for session, head in heads.items() if head}
    for session, log in groupby(rows, key=lambda row: row[0]):
        missing.discard(session)
        if session not in heads:
            yield f"session {session!r} has events, and is erased or unknown"
            continue
        try:
            problem = _check_log(log, heads[session])
        except EverturnError as error:
            problem = str(error)
        if problem:
            yield f"session {session!r}: {problem}"
    for session in sorted(missing):
        yield f"session {session!r} has no events, and its last position is {heads[session]}"


def _check_log(log: Iterable[LogRow], head: int) -> str:
    turns: dict[str, list[Event]] = {}
    last, has_sealed = 0, False
    for _, seq, body in log:
        bodies = () if is_sealed(body) else unpack_body(body)
        first = seq - len(bodies) + 1 if bodies else max(last + 1, seq - PACK_EVENTS + 1)
        if first != last + 1 or seq <= last:
            return f"after position {last} comes {first}"
        last = seq
        has_sealed = has_sealed or not bodies
        for event in map(load_event, bodies):
            if turn := getattr(event, "turn", ""):
                turns.setdefault(turn, []).append(event)
    for events in turns.values() if not has_sealed else ():
        fold(events)
    return "" if last == head else f"it ends at position {last}, and should at {head}"
