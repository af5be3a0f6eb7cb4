"""Claims and appends: who drives a session, and what it writes down.

An append is refused unless the log is where it expects it and nobody has claimed the session since. Its events and
everything that is read off them are written in one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from everturn.core.events import Entry, Event, MessageDeleted, TurnStarted
from everturn.core.ports import RESTS, STUCK, Claim, is_shown, is_stuck, retry_pause
from everturn.errors import KeyConflict, SessionStuck, Stale
from everturn.stores.checking import began
from everturn.stores.sql import counting, granting
from everturn.stores.sql import statements as say
from everturn.stores.sql.blobs import mention
from everturn.stores.sql.changes import Rows, Shadow, project
from everturn.stores.sql.database import Operation, Query, clean
from everturn.stores.sql.reading import entries, inbox, info_of, row_of, unknown
from everturn.stores.sql.searching import index
from everturn.wire import dump_message

OVERDUE_AT_ONCE = 500

# Who drives ---------------------------------------------------------------------------------------------------------------


def claim(session: str, now: float) -> Operation[tuple[Claim, Shadow] | SessionStuck | None]:
    """Become the driver of a session: its claim and its shadow, or why it is left alone, or None: nothing is to be done.

    Raises:
        UnknownSession: it is not there.
    """
    for _ in range(3):
        claimed = yield Query(say.CLAIM, (session, now))
        if claimed:
            break
        found = yield Query(say.UNCLAIMED, (session, now))
        if not found or found[0][0]:
            raise unknown(session, bool(found))
        _, has_work, may_try, tries, touched = found[0]
        if not has_work:
            return None
        if not may_try:
            if not is_stuck(tries):
                return SessionStuck(RESTS.format(session=session, tries=tries), touched + retry_pause(tries))
            why = STUCK.format(session=session, tries=tries)
            yield Query(say.STICK, (why, session))  # nothing is raised: it would not be written
            return SessionStuck(why)
        # Something came in between the two looks.
    else:
        return None
    epoch, head, tries, *row = claimed[0]
    about = info_of(row)
    commands = yield from inbox(session)
    live = entries((yield Query(say.LIVE_EVENTS, (session,))))
    turns: dict[str, list[Entry]] = {}
    for entry in live:
        turns.setdefault(getattr(entry.event, "turn", ""), []).append(entry)
    shadow = Shadow.of(about.tenant, head, about.leaf, about.title, live)
    return Claim(epoch, head, about, commands, list(turns.values()), tries), shadow


def release(session: str, epoch: int, tries: int) -> Operation[None]:
    """Let the claim of a driver that ended well not count."""
    yield Query(say.RELEASE, (tries, session, epoch))


def overdue(before: float, now: float) -> Operation[list[str]]:
    """Sessions to be driven that nobody has touched since; whoever asks next is not told of them."""
    rows = yield Query(say.OVERDUE, (before, now, OVERDUE_AT_ONCE))
    return [row[0] for row in rows]


# Appending ----------------------------------------------------------------------------------------------------------------


def append(
    shadow: Shadow | None, session: str, after: int, events: Sequence[Event], epoch: int | None, token: str
) -> Operation[tuple[int, Shadow | None]]:
    """Write events behind a position: the new one, and the shadow as it is then.

    Raises:
        Stale: the log is elsewhere, or the session was claimed since.
        UnknownSession: it is not there.
    """
    if shadow is None or shadow.head != after:
        row = yield from row_of(session)
        if row[0] != after:
            return _written_before(session, after, events, token, row[0], row[3]), None
        live = yield Query(say.LIVE_EVENTS, (session,))
        shadow = Shadow.of(row[6], after, row[1], row[2], entries(live))
    # Cut where a message was deleted: what is selected after that only the database knows.
    cuts = list(_cut(events)) if MessageDeleted in map(type, events) else [events]
    yield from _recall(shadow, session, cuts[0])
    leaf, title = shadow.tree.leaf, shadow.tree.title
    rows = project(shadow, after, cuts[0])
    if len(cuts) == 1:
        leaf, title = shadow.tree.leaf, shadow.tree.title
    head, at = after + len(events), events[-1].at if events and rows.has_moved else 0.0
    shown = max((event.at for event in events if is_shown(event)), default=0.0)
    fence = (head, token, leaf, clean(title), at, shown, rows.has_moved, session, after, epoch)
    accepted = yield Query(say.FENCE, fence)
    if not accepted:
        row = yield from row_of(session)
        return _written_before(session, after, events, token, row[0], row[3]), None
    yield from _write(session, shadow.tenant, rows)
    if len(cuts) > 1:
        yield from _write_on(shadow, session, after, cuts)
    return head, shadow


def restore(session: str, tenant: str, events: Sequence[Event], token: str) -> Operation[None]:
    """Make a session of this name from a log.

    Raises:
        KeyConflict: there is one, or was.
    """
    first, last = (events[0].at, events[-1].at) if events else (0.0, 0.0)
    made = yield Query(
        say.NEW_SESSION, (session, tenant, first, last, len(events), token, *map(clean, began(events)), "")
    )
    if not made:
        found = yield Query(say.SESSION, (session,))
        if not found or found[0][3] != token:
            raise KeyConflict(f"there is, or was, a session {session!r}; import it under another name")
        return
    yield from _write_on(Shadow(tenant), session, 0, [[], *_cut(events)], is_restored=True)


def _written_before(session: str, after: int, events: Sequence[Event], token: str, head: int, last: str) -> int:
    """The position this very append has reached in an earlier run, if it has."""
    if last == token and head == after + len(events):
        return head
    raise Stale(f"session {session} is at {head}, not at {after}: somebody else drives it")


def _cut(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Events in runs that end with a `MessageDeleted` each, but for the last."""
    begin = 0
    for at, event in enumerate(events, 1):
        if type(event) is MessageDeleted:
            yield events[begin:at]
            begin = at
    yield events[begin:]


def _recall(shadow: Shadow, session: str, events: Sequence[Event]) -> Operation[None]:
    """Know the turns again that are over and for which something comes after all, a late result."""
    known, begun = shadow.turns, set[str]()
    for event in events:
        turn = getattr(event, "turn", "")
        if not turn or turn in known or turn in begun:
            continue
        begun.add(turn)
        if type(event) is not TurnStarted:
            shadow.recall(entries((yield Query(say.TURN_EVENTS, (session, turn, 0)))))


def _write_on(
    shadow: Shadow, session: str, after: int, cuts: Sequence[Sequence[Event]], is_restored: bool = False
) -> Operation[None]:
    """Write what stands behind each delete, the first run having been written, and then what is selected."""
    for before, run in pairwise(cuts):
        if before:
            yield from _delete(shadow, session, before[-1])
        after += len(before)
        yield from _recall(shadow, session, run)
        yield from _write(session, shadow.tenant, project(shadow, after, run), is_restored)
    yield Query(say.LEAF, (shadow.tree.leaf, clean(shadow.tree.title), session))


def _delete(shadow: Shadow, session: str, event: Event) -> Operation[None]:
    assert type(event) is MessageDeleted
    rows = yield Query(say.DELETE_MESSAGES, (session, event.message))
    parents: dict[str, str | None] = {row[0]: row[1] for row in rows}
    if shadow.tree.leaf in parents:
        shadow.tree.leaf = parents.get(event.message)


def _write(session: str, tenant: str, rows: Rows, is_restored: bool = False) -> Operation[None]:  # noqa: C901 - table by table
    """Write rows, table by table; of a step in the middle of a turn there are only events."""
    if rows.events:
        yield Query(say.ADD_EVENTS, [(session, *row) for row in rows.events], many=True)
    if rows.acted_on:
        yield Query(say.ACT_ON, [(session, key) for key in rows.acted_on], many=True)
    if rows.turns:
        moved = [
            (session, turn, live.started, live.last, live.state, len(live.out), live.deadline)
            for turn, live in rows.turns.items()
        ]
        yield Query(say.MOVE_TURNS, moved, many=True)
    if rows.joined:
        joined = [(session, m.id, m.parent, turn, seq, dump_message(m)) for seq, turn, m in rows.joined]
        yield Query(say.ADD_MESSAGES, joined, many=True)
    if rows.finished:
        finished = [(dump_message(message), session, name) for name, message in rows.finished.items()]
        yield Query(say.FINISH_MESSAGES, finished, many=True)
    if rows.opened:
        yield Query(say.OPEN_GATES, [(session, tenant, *row) for row in rows.opened], many=True)
    if rows.claimed:
        # A row for each command of the append: any of them may be the one that the gate was taken by.
        claimed = [
            (claim, due, session, gate, key) for gate, (claim, due, keys) in rows.claimed.items() for key in keys
        ]
        yield Query(say.CLAIM_GATES, claimed, many=True)
    if rows.answered:
        answered = [(verdict, session, gate) for gate, verdict in rows.answered]
        yield Query(say.ANSWER_GATES, answered, many=True)
    if rows.closed:
        yield Query(say.CLOSE_GATES, [(session, gate) for gate in rows.closed], many=True)
    # A restored turn has its row from the beginning: on whose account it goes must not be asked of its log later.
    if used := rows.turns | rows.used if is_restored else rows.used:
        yield from counting.count(session, tenant, used, is_restored)
    if rows.granted and not is_restored:  # a log may come from anybody: it must not allow anything
        yield from granting.add(session, tenant, rows.granted)
    if rows.revoked and not is_restored:
        yield from granting.remove(session, tenant, rows.revoked)
    if trees := {root: tree for root, tree in rows.trees.items() if not root or not is_restored}:
        yield Query(say.RECORD_TREES, [(session, clean(root), clean(tree)) for root, tree in trees.items()], many=True)
    if rows.mentions:
        yield from mention(session, sorted(rows.mentions), rows.at)
    if rows.joined or rows.finished:
        yield from _index(session, tenant, rows)


def _index(session: str, tenant: str, rows: Rows) -> Operation[None]:
    """Let messages be found: an answer when its turn is over, everything else when it joins."""
    complete = [message for _, _, message in rows.joined if message.role != "assistant"]
    complete += [message for message in rows.finished.values() if message.role == "assistant"]
    if complete:
        yield from index(session, tenant, complete)
