"""Claims and appends: the operations by which a driver claims a session and appends events to its log.

An append is refused unless the log is at the expected position and no other driver has claimed the session since. It
writes its events and all their projections in one transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from everturn.core.events import Entry, Event, MessageDeleted, TitleSet, TurnStarted
from everturn.core.session_claims import PAUSED_TEXT, QUARANTINED_TEXT, is_quarantined, retry_pause
from everturn.core.state import TurnState
from everturn.core.store_ports import SessionClaim, TurnSnapshot, changes_session_list
from everturn.errors import KeyConflict, SessionQuarantined, Stale
from everturn.stores.import_check import creator_of
from everturn.stores.sql import grants, usage
from everturn.stores.sql.blobs import reference_blobs
from everturn.stores.sql.body_compression import compress_message
from everturn.stores.sql.database import Operation, Query, remove_nul
from everturn.stores.sql.event_packs import pack
from everturn.stores.sql.projections import (
    LiveTurn,
    ProjectionRows,
    SessionProjection,
    dump_live_turn,
    load_live_turn,
    project,
)
from everturn.stores.sql.queries import (
    decode_entries,
    decode_info,
    encode_labels,
    inbox,
    session_row,
    stored_key,
    unknown_session,
)
from everturn.stores.sql.search import forget_messages, index_messages
from everturn.stores.sql.statements.admission import NEW_SESSION
from everturn.stores.sql.statements.append import (
    ADD_EVENT_KEYS,
    ADD_EVENTS,
    ADD_MESSAGES,
    ANSWER_GATES,
    CLAIM_GATES,
    CLOSE_COMMANDS,
    CLOSE_GATES,
    DELETE_MESSAGES,
    DROP_SNAPSHOTS,
    FENCE,
    FINISH_MESSAGES,
    KEEP_SNAPSHOTS,
    LEAF,
    OPEN_GATES,
    ORGANIZE,
    RECORD_TREES,
    UPSERT_TURNS,
)
from everturn.stores.sql.statements.claims import CLAIM, FAILED_TRIES, OVERDUE, QUARANTINE, RELEASE, RETRY, UNCLAIMED
from everturn.stores.sql.statements.log import LIVE_EVENTS, LIVE_TAILS, TURN_EVENTS
from everturn.stores.sql.statements.sessions import SESSION
from everturn.stores.sql.webhooks import OUTBOX
from everturn.turn_snapshot import load_snapshot, seal, snapshot_position, unseal
from everturn.wire import dump_message

log = logging.getLogger(__name__)

OVERDUE_BATCH = 500
RESTORE_BATCH = 5000  # events of an imported log that are written at once, table by table

# Claims ------------------------------------------------------------------------------------------------------------


def claim(session: str, now: float) -> Operation[tuple[SessionClaim, SessionProjection] | SessionQuarantined | None]:
    """Claim a session: return the claim and the projection, why the session rests, or None if it has no work.

    Raises:
        UnknownSession: the session does not exist.
    """
    for _ in range(3):
        claimed = yield Query(CLAIM, (session, now))
        if claimed:
            break
        rows = yield Query(UNCLAIMED, (session, now))
        if not rows or rows[0][0]:
            raise unknown_session(session, bool(rows))
        _, has_work, may_try, tries, touched = rows[0]
        if not has_work:
            return None
        if not may_try:
            if not is_quarantined(tries):
                return SessionQuarantined(
                    PAUSED_TEXT.format(session=session, tries=tries), touched + retry_pause(tries)
                )
            reason = QUARANTINED_TEXT.format(session=session, tries=tries)
            yield Query(QUARANTINE, (reason, session))  # returned, not raised: an error would roll this write back
            return SessionQuarantined(reason)
        # The session changed between the two queries: try again.
    else:
        return None
    epoch, head, tries, *row = claimed[0]
    info = decode_info(row)
    commands = yield from inbox(session)
    live = yield from live_turns(session)
    turns: dict[str, list[Entry]] = {}
    for entry in live.entries:
        turns.setdefault(getattr(entry.event, "turn", ""), []).append(entry)
    projection = SessionProjection.from_entries(
        info.tenant, head, info.leaf, info.title, info.agent, *live, info.is_renamed
    )
    states = [state for state, _ in live.folded]
    return SessionClaim(epoch, head, info, commands, list(turns.values()), tries, states), projection


def release(session: str, epoch: int, tries: int, awaited_agent: str) -> Operation[None]:
    """Reset the tries of a claim whose driver has ended normally."""
    yield Query(RELEASE, (tries, remove_nul(awaited_agent), session, epoch))


def retry(session: str) -> Operation[bool]:
    """Forget the failed tries of a session, and that it is quarantined.

    Raises:
        UnknownSession: the session does not exist.
    """
    rows = yield Query(FAILED_TRIES, (session,))
    if not rows or rows[0][0]:
        raise unknown_session(session, bool(rows))
    _, tries, quarantined = rows[0]
    if not tries and not quarantined:
        return False
    yield Query(RETRY, [(session,)], many=True)
    return True


def overdue(before: float, now: float) -> Operation[list[str]]:
    """Return sessions with work that no driver has touched since `before`; the next caller does not get them."""
    rows = yield Query(OVERDUE, (before, now, OVERDUE_BATCH))
    return [row[0] for row in rows]


class LiveTurns(NamedTuple):
    """The live turns of a session, as they were read."""

    entries: list[Entry]
    folded: list[tuple[TurnState, LiveTurn]]  # long turns, from their snapshots: `entries` has the events after them
    with_snapshot: set[str]  # turns with a snapshot, valid or not


def live_turns(session: str) -> Operation[LiveTurns]:
    """Read the live turns of a session: the snapshots of long ones, and the events after them.

    If one snapshot is not valid, all events are read: that is rare, and happens once after an upgrade.
    """
    rows = yield Query(LIVE_TAILS, (session,))
    folded: list[tuple[TurnState, LiveTurn]] = []
    turns: set[str] = set()
    for is_event, seq, body, turn, fold, live in rows:
        if is_event:
            break
        turns.add(turn)
        if (found := _load_snapshot(TurnSnapshot(turn, seq, fold, body), live)) is not None:
            folded.append(found)
    if len(folded) < len(turns):
        return LiveTurns(decode_entries((yield Query(LIVE_EVENTS, (session,)))), [], turns)
    return LiveTurns(decode_entries((seq, body) for is_event, seq, body, *_ in rows if is_event), folded, turns)


def _load_snapshot(snapshot: TurnSnapshot, live: bytes) -> tuple[TurnState, LiveTurn] | None:
    state = load_snapshot(snapshot)
    data = unseal(live, snapshot_position(snapshot.turn, snapshot.seq, snapshot.fold))
    if state is None:
        return None
    if data is None:
        log.warning("turn %s: the projection in its snapshot is damaged, and it is ignored", snapshot.turn)
        return None
    return state, load_live_turn(data, state)


# Appending ----------------------------------------------------------------------------------------------------------------


def append(
    projection: SessionProjection | None,
    session: str,
    after: int,
    events: Sequence[Event],
    epoch: int | None,
    token: str,
    snapshots: Sequence[TurnSnapshot] = (),
) -> Operation[tuple[int, SessionProjection | None]]:
    """Append events after a position; return the new position and the updated projection.

    Raises:
        Stale: the log is at another position, or the session was claimed since.
        UnknownSession: the session does not exist.
    """
    if projection is None or projection.head != after:
        row = yield from session_row(session)
        if row[0] != after:
            return _written_before(session, after, events, token, row[0], row[3]), None
        live = yield from live_turns(session)
        projection = SessionProjection.from_entries(row[6], after, row[1], row[2], row[7], *live, bool(row[8]))
    # Split after each deletion of a message: only the database knows which leaf is selected then.
    runs = list(_cut(events)) if MessageDeleted in map(type, events) else [events]
    yield from _reload_turns(projection, session, runs[0])
    leaf, title, agent = projection.tree.leaf, projection.tree.title, projection.tree.agent
    rows = project(projection, after, runs[0])
    if len(runs) == 1:
        leaf, title, agent = projection.tree.leaf, projection.tree.title, projection.tree.agent
    head, at = after + len(events), events[-1].at if events and rows.has_moved else 0.0
    if len(runs) == 1:
        rows.snapshots = [row for snapshot in snapshots for row in _snapshot_rows(projection, snapshot, head)]
    listed = [event for event in events if changes_session_list(event)]
    shown = max((event.at for event in listed), default=0.0)
    starts = all(type(event) in (TurnStarted, TitleSet) for event in listed)
    names = (remove_nul(title), remove_nul(agent))
    fence = (head, token, leaf, *names, at, shown, starts, rows.has_moved, session, after, epoch)
    accepted = yield Query(FENCE, fence)
    if not accepted:
        row = yield from session_row(session)
        return _written_before(session, after, events, token, row[0], row[3]), None
    yield from _write(session, projection.tenant, rows)
    if len(runs) > 1:
        yield from _write_runs(projection, session, after, runs)
    return head, projection


def _snapshot_rows(projection: SessionProjection, snapshot: TurnSnapshot, head: int) -> Iterator[tuple[Any, ...]]:
    live = projection.turns.get(snapshot.turn)
    if snapshot.seq == head and live is not None and live.state != "over":
        position = snapshot_position(snapshot.turn, head, snapshot.fold)
        yield snapshot.turn, head, snapshot.fold, snapshot.body, seal(dump_live_turn(live), position)
        live.has_snapshot = True


def restore(session: str, tenant: str, events: Sequence[Event], token: str) -> Operation[None]:
    """Create a session from a log.

    Raises:
        KeyConflict: a session of this name exists or existed.
    """
    first, last = (events[0].at, events[-1].at) if events else (0.0, 0.0)
    created = yield Query(
        NEW_SESSION,
        (session, tenant, first, last, len(events), token, "", remove_nul(creator_of(events)), ""),
    )
    if not created:
        rows = yield Query(SESSION, (session,))
        if not rows or rows[0][3] != token:
            raise KeyConflict(f"session {session!r} exists, or was erased; import it under another id")
        return
    runs = [run[at : at + RESTORE_BATCH] for run in _cut(events) for at in range(0, len(run) or 1, RESTORE_BATCH)]
    yield from _write_runs(SessionProjection(tenant), session, 0, [[], *runs], is_restored=True)


def _written_before(session: str, after: int, events: Sequence[Event], token: str, head: int, last: str) -> int:
    """Return the position that this append reached in an earlier run; raise `Stale` if it did not."""
    if last == token and head == after + len(events):
        return head
    raise Stale(f"session {session} is at {head}, not at {after}: another process drives it")


def _cut(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """Split events into runs; each but the last ends with a `MessageDeleted`."""
    start = 0
    for end, event in enumerate(events, 1):
        if type(event) is MessageDeleted:
            yield events[start:end]
            start = end
    yield events[start:]


def _reload_turns(projection: SessionProjection, session: str, events: Sequence[Event]) -> Operation[None]:
    """Load finished turns again for which an event still arrives, such as a late result."""
    known, seen = projection.turns, set[str]()
    for event in events:
        turn = getattr(event, "turn", "")
        if not turn or turn in known or turn in seen:
            continue
        seen.add(turn)
        if type(event) is not TurnStarted:
            projection.reload_turn(decode_entries((yield Query(TURN_EVENTS, (session, turn, 0)))))


def _write_runs(
    projection: SessionProjection, session: str, after: int, runs: Sequence[Sequence[Event]], is_restored: bool = False
) -> Operation[None]:
    """Write the runs after the first, applying the delete that may end the run before each, then the selected leaf."""
    for before, run in pairwise(runs):
        if before and type(before[-1]) is MessageDeleted:
            yield from _delete(projection, session, before[-1])
        after += len(before)
        yield from _reload_turns(projection, session, run)
        yield from _write(session, projection.tenant, project(projection, after, run), is_restored)
    tree = projection.tree
    yield Query(LEAF, (tree.leaf, remove_nul(tree.title), remove_nul(tree.agent), session))


def _delete(projection: SessionProjection, session: str, event: Event) -> Operation[None]:
    assert type(event) is MessageDeleted
    rows = yield Query(DELETE_MESSAGES, (session, event.message))
    parents: dict[str, str | None] = {row[0]: row[1] for row in rows}
    if projection.tree.leaf in parents:
        projection.tree.leaf = parents.get(event.message)


def _write(session: str, tenant: str, rows: ProjectionRows, is_restored: bool = False) -> Operation[None]:  # noqa: C901 - table by table
    """Write rows, table by table; a step in the middle of a turn has events only."""
    if rows.events:
        yield Query(ADD_EVENTS, [(session, *row) for row in pack(rows.events)], many=True)
    if rows.keys:
        keys = [(session, kind, stored_key(key), seq) for kind, key, seq in rows.keys]
        yield Query(ADD_EVENT_KEYS, keys, many=True)
    if rows.acted_on:
        yield Query(CLOSE_COMMANDS, [(session, key) for key in rows.acted_on], many=True)
    if rows.turns:
        moved = [
            (session, turn, live.started, live.last, live.state, len(live.out), live.due)
            for turn, live in rows.turns.items()
        ]
        yield Query(UPSERT_TURNS, moved, many=True)
    if rows.snapshots:
        yield Query(KEEP_SNAPSHOTS, [(session, *row) for row in rows.snapshots], many=True)
    if rows.without_snapshot:
        yield Query(DROP_SNAPSHOTS, [(session, turn) for turn in rows.without_snapshot], many=True)
    if rows.joined:
        joined = [
            (session, m.id, m.parent, turn, seq, compress_message(dump_message(m))) for seq, turn, m in rows.joined
        ]
        yield Query(ADD_MESSAGES, joined, many=True)
    if rows.finished:
        finished = [(compress_message(dump_message(message)), session, name) for name, message in rows.finished.items()]
        yield Query(FINISH_MESSAGES, finished, many=True)
    if rows.opened:
        yield Query(OPEN_GATES, [(session, tenant, *row) for row in rows.opened], many=True)
    if rows.claimed:
        # A row for each command of the append: any of them may be the one that claimed the gate.
        claimed = [
            (claim, due, session, gate, key) for gate, (claim, due, keys) in rows.claimed.items() for key in keys
        ]
        yield Query(CLAIM_GATES, claimed, many=True)
    if rows.answered:
        answered = [(resolution, session, gate) for gate, resolution in rows.answered]
        yield Query(ANSWER_GATES, answered, many=True)
    if rows.closed:
        yield Query(CLOSE_GATES, [(session, gate) for gate in rows.closed], many=True)
    # A restored turn gets its usage row now: its account must not be read from its log later.
    if used := rows.turns | rows.used if is_restored else rows.used:
        yield from usage.write_usage(session, tenant, used, is_restored)
    if rows.granted and not is_restored:  # an imported log is untrusted: it must not grant anything
        yield from grants.add(session, tenant, rows.granted)
    if rows.revoked and not is_restored:
        yield from grants.remove(session, tenant, rows.revoked)
    if trees := {root: tree for root, tree in rows.trees.items() if not root or not is_restored}:
        yield Query(
            RECORD_TREES, [(session, remove_nul(root), remove_nul(tree)) for root, tree in trees.items()], many=True
        )
    if (organized := rows.organized) is not None:
        labels = None if organized.labels is None else remove_nul(encode_labels(organized.labels))
        marks = (organized.title is not None, organized.pinned, organized.archived, labels, organized.at)
        yield Query(ORGANIZE, [(*marks, session)], many=True)
    if rows.mentions:
        yield from reference_blobs(session, sorted(rows.mentions), rows.at)
    if rows.outbox and not is_restored:  # what happened elsewhere, or long ago, is told to nobody
        outbox_rows = [(tenant, session, seq, type, at, data, f",{type},") for seq, type, at, data in rows.outbox]
        yield Query(OUTBOX, outbox_rows, many=True)
    if rows.joined or rows.finished:
        yield from _index(session, tenant, rows)


def _index(session: str, tenant: str, rows: ProjectionRows) -> Operation[None]:
    """Add messages to the search index: an answer when its turn is over, any other message when it is added."""
    refused = [name for name, message in rows.finished.items() if message.refused]
    if refused:
        yield from forget_messages(session, refused)
    complete = [
        message
        for _, _, message in rows.joined
        if (message.role != "assistant" or message.imported) and message.id not in refused
    ]
    complete += [message for message in rows.finished.values() if message.role == "assistant"]
    if complete:
        yield from index_messages(session, tenant, complete)
