"""Erasure: turns a session and the sessions of its sub-agent runs into tombstones, whose names are never used again."""

from __future__ import annotations

from everturn.core.commands import Send
from everturn.core.events import TurnStarted
from everturn.errors import SessionBusy, UnknownSession
from everturn.stores.sql.database import Database, Operation, Query, Statement
from everturn.stores.sql.event_packs import event_at
from everturn.wire import load_command, load_event


def _deleted_with_session(table: str) -> Statement:
    return Statement(
        f"erase_{table}",
        f"DELETE FROM {table} WHERE session = ?",
        f"DELETE FROM {table} USING unnest($1::text[]) AS given (session) WHERE {table}.session = given.session",
    )


# `usage` stays: it has what a tenant owes, numbers and no text.
_DELETE_ROWS = [
    *map(
        _deleted_with_session,
        (
            "lookup",
            "mentions",
            "files",
            "gates",
            "messages",
            "turns",
            "turn_snapshots",
            "inbox",
            "event_keys",
            "marks",
            "memory_writes",
            "session_shares",
            "temporary_sessions",
        ),
    ),
    Statement(
        "erase_grants",  # made in this session
        "DELETE FROM grants WHERE origin = ?",
        "DELETE FROM grants USING unnest($1::text[]) AS given (session) WHERE grants.origin = given.session",
    ),
    Statement(
        "erase_held_grants",  # made in another session, and valid in this one
        "DELETE FROM grants WHERE tenant = (SELECT tenant FROM sessions WHERE id = ?1) AND session = ?1",
        "DELETE FROM grants g USING unnest($1::text[]) AS given (session) JOIN sessions s ON s.id = given.session "
        "WHERE g.tenant = s.tenant AND g.session = s.id",
    ),
]
# On PostgreSQL the logs of `spared` partitions stay: retention removes those with their partition.
_DELETE_LOG = Statement(
    "erase_log",
    "DELETE FROM events WHERE session = ?1 AND ?2 IS NOT NULL",
    "DELETE FROM events e USING unnest($1::text[], $2::text[]) AS given (session, spared) "
    "JOIN sessions s ON s.id = given.session AND s.cohort <> ALL (string_to_array(given.spared, ',')::int[]) "
    "WHERE e.cohort = s.cohort AND e.session = given.session",
)
_LOCK = Statement(
    "erase_lock",
    "SELECT erased, touched FROM sessions WHERE id = ?",
    "SELECT given.row, s.erased, s.touched FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN sessions s ON s.id = given.id FOR UPDATE OF s",
    returns=True,
)
_IS_BUSY = Statement(
    "erase_is_busy",
    "SELECT EXISTS (SELECT 1 FROM inbox i WHERE i.session = s.id AND i.is_open), "
    "EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id AND (t.state != 'over' OR t.out > 0)) "
    "FROM sessions s WHERE s.id = ?",
    "SELECT given.row, EXISTS (SELECT 1 FROM inbox i WHERE i.session = given.id AND i.is_open), "
    "EXISTS (SELECT 1 FROM turns t WHERE t.session = given.id AND (t.state != 'over' OR t.out > 0)) "
    "FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row)",
    returns=True,
)
# The next epoch fences off a driver that still holds the session. The token marks that the file has to be rewritten
# before the content is gone from the disk.
_BURY = Statement(
    "erase_bury",
    "UPDATE sessions SET erased = true, title = '', leaf = NULL, token = 'erased', quarantined = '', agent = '', "
    "creator = '', "
    "awaited_agent = '', renamed = false, pinned = false, archived = false, labels = '', organized = 0, "
    "epoch = epoch + 1 WHERE id = ?",
    "UPDATE sessions s SET erased = true, title = '', leaf = NULL, token = 'erased', quarantined = '', agent = "
    "'', creator = '', "
    "awaited_agent = '', renamed = false, pinned = false, archived = false, labels = '', organized = 0, "
    "epoch = s.epoch + 1 "
    "FROM unnest($1::text[]) AS given (id) WHERE s.id = given.id",
)

# The account of a turn was recorded by us when the turn started: unlike a name, a log cannot forge it.
_CHILDREN = Statement(
    "erase_below",
    "SELECT DISTINCT u.session FROM usage u JOIN usage o ON o.home = u.home AND o.tenant = u.tenant "
    "WHERE o.session = ?1 AND substr(u.session, 1, length(?1) + 1) = ?1 || '-' ORDER BY u.session",
    "SELECT DISTINCT given.row, u.session FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN usage o ON o.session = given.id JOIN usage u ON u.home = o.home AND u.tenant = o.tenant "
    "WHERE starts_with(u.session, given.id || '-') ORDER BY 1, 2",
    returns=True,
)
# A requested turn, or one that has not finished a step, has no usage row yet. There are few of these at any time.
_REQUESTED_CHILDREN = Statement(
    "erase_asked_below",
    "SELECT i.body, i.session, i.key FROM inbox i WHERE i.is_open AND i.kind = 'Send' "
    "AND substr(i.session, 1, length(?1) + 1) = ?1 || '-'",
    "SELECT given.row, i.body, i.session, i.key FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN inbox i ON i.is_open AND i.kind = 'Send' AND starts_with(i.session, given.id || '-')",
    returns=True,
)
_STARTED_CHILDREN = Statement(
    "erase_begun_below",
    "SELECT e.body, e.session, e.seq, t.started FROM turns t CROSS JOIN events e ON e.session = t.session "
    "AND e.seq = (SELECT min(f.seq) FROM events f WHERE f.session = t.session AND f.seq >= t.started) WHERE "
    "(t.state != 'over' OR t.out > 0) AND substr(t.session, 1, length(?1) + 1) = ?1 || '-'",
    "SELECT given.row, e.body, e.session, e.seq, t.started FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN turns t ON (t.state != 'over' OR t.out > 0) AND starts_with(t.session, given.id || '-') "
    "JOIN sessions s ON s.id = t.session "
    "CROSS JOIN LATERAL (SELECT l.body, l.session, l.seq FROM events l WHERE l.cohort = s.cohort AND l.session = "
    "t.session "
    "AND l.seq >= t.started ORDER BY l.seq LIMIT 1) e",
    returns=True,
)


_BELOW = Statement(
    "erase_children",
    "SELECT id FROM sessions WHERE parent = ? AND NOT erased",
    "SELECT given.row, s.id FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN sessions s ON s.parent = given.id AND NOT s.erased ORDER BY 1, 2",
    returns=True,
)
_MENTIONED = Statement(
    "erase_mentioned",
    "SELECT blob FROM mentions WHERE session = ?",
    "SELECT given.row, m.blob FROM unnest($1::text[]) WITH ORDINALITY AS given (session, row) "
    "JOIN mentions m ON m.session = given.session",
    returns=True,
)


async def erase(database: Database, session: str) -> list[str]:
    """Erase a session and the sessions of its sub-agent runs; return their names.

    Raises:
        SessionBusy: a turn is running or requested.
        UnknownSession: the session never existed.
    """
    return await database.write(lambda _: erase_if_idle(session), session, is_long=True)


def erase_if_idle(session: str, before: float | None = None, spared: str = "") -> Operation[list[str]]:
    """Erase a session with its sub-agent runs unless it was touched since `before`; return the erased sessions.

    Logs in the `spared` partitions ("1,2") are not deleted, but nobody can read them any more.
    """
    rows = yield Query(_LOCK, (session,))
    if not rows:
        raise UnknownSession(f"there is no session {session!r}")
    is_erased, touched = rows[0]
    if is_erased or (before is not None and touched >= before):
        return []
    names = [session]
    yield from _refuse_if_busy(session, session)
    for (child,) in (yield Query(_CHILDREN, (session,))):
        rows = yield Query(_LOCK, (child,))
        if rows and not rows[0][0]:
            yield from _refuse_if_busy(child, session)
            names.append(child)
    yield from _refuse_if_child_starts(session)
    yield from _delete(names, spared)
    return names


def erase_now(session: str) -> Operation[tuple[list[str], set[str]]]:
    """Erase a session with its sub-agent runs, also with open turns; return the sessions and the blobs they mentioned.

    Raises:
        UnknownSession: the session never existed.
    """
    rows = yield Query(_LOCK, (session,))
    if not rows:
        raise UnknownSession(f"there is no session {session!r}")
    names, mentioned, found = list[str](), set[str](), [] if rows[0][0] else [session]
    while found:
        name = found.pop()
        names.append(name)
        for (child,) in (yield Query(_BELOW, (name,))):
            child_rows = yield Query(_LOCK, (child,))
            if child not in names and child_rows and not child_rows[0][0]:
                found.append(child)
        mentioned.update([blob for (blob,) in (yield Query(_MENTIONED, (name,)))])
    if names:
        yield from _delete(names)
    return names, mentioned


def _delete(names: list[str], spared: str = "") -> Operation[None]:
    yield Query(_DELETE_LOG, [(name, spared) for name in names], many=True)
    for statement in (*_DELETE_ROWS, _BURY):
        yield Query(statement, [(name,) for name in names], many=True)


def _refuse_if_busy(session: str, erased: str) -> Operation[None]:
    ((has_commands, has_turns),) = yield Query(_IS_BUSY, (session,))
    if has_commands or has_turns:
        relation = "" if session == erased else f", a sub-agent run of {erased!r},"
        raise SessionBusy(
            f"session {session!r}{relation} has a running or waiting turn: cancel it, then erase the session"
        )


def _refuse_if_child_starts(session: str) -> Operation[None]:
    requested = [load_command(bytes(body)) for body, *_ in (yield Query(_REQUESTED_CHILDREN, (session,)))]
    rows = yield Query(_STARTED_CHILDREN, (session,))
    started = [load_event(event_at(first, seq, bytes(body))) for body, _, seq, first in rows]
    for request in (*requested, *started):
        parent = request.options.lineage if isinstance(request, Send | TurnStarted) else None
        if parent is not None and f"{session}-".startswith(f"{parent.session}-"):
            raise SessionBusy(f"session {session!r} has a running sub-agent: cancel it, then erase the session")
