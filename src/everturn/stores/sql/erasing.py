"""A session, and those of its sub-turns → tombstones: a name, a tenant and a last position, never given again."""

from __future__ import annotations

from everturn.core.commands import Send
from everturn.core.events import TurnStarted
from everturn.errors import SessionBusy, UnknownSession
from everturn.stores.sql.database import Database, Operation, Query, Statement
from everturn.wire import load, load_command


def _deleted_with_session(table: str) -> Statement:
    return Statement(
        f"erase_{table}",
        f"DELETE FROM {table} WHERE session = ?",
        f"DELETE FROM {table} USING unnest($1::text[]) AS given (session) WHERE {table}.session = given.session",
    )


# What a tenant owes is told by `usage`, which has numbers and no words; it stays.
_DELETES = [
    *map(
        _deleted_with_session, ("lookup", "mentions", "files", "gates", "messages", "turns", "inbox", "events", "marks")
    ),
    Statement(
        "erase_grants",  # that were made here
        "DELETE FROM grants WHERE origin = ?",
        "DELETE FROM grants USING unnest($1::text[]) AS given (session) WHERE grants.origin = given.session",
    ),
    Statement(
        "erase_held_grants",  # that were made elsewhere, and hold here
        "DELETE FROM grants WHERE tenant = (SELECT tenant FROM sessions WHERE id = ?1) AND session = ?1",
        "DELETE FROM grants g USING unnest($1::text[]) AS given (session) JOIN sessions s ON s.id = given.session "
        "WHERE g.tenant = s.tenant AND g.session = s.id",
    ),
]
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
# The next epoch: whoever still believes to drive it is told otherwise. The token says that the file still has to be
# rewritten before nothing can be read out of it any more.
_BURY = Statement(
    "erase_bury",
    "UPDATE sessions SET erased = true, title = '', leaf = NULL, token = 'erased', stuck = '', agent = '', who = '', "
    "epoch = epoch + 1 WHERE id = ?",
    "UPDATE sessions s SET erased = true, title = '', leaf = NULL, token = 'erased', stuck = '', agent = '', who = '', "
    "epoch = s.epoch + 1 "
    "FROM unnest($1::text[]) AS given (id) WHERE s.id = given.id",
)

# On whose account a turn goes was written when it began, by us: unlike a name it cannot be made up by a log.
_BELOW = Statement(
    "erase_below",
    "SELECT DISTINCT u.session FROM usage u JOIN usage o ON o.home = u.home AND o.tenant = u.tenant "
    "WHERE o.session = ?1 AND substr(u.session, 1, length(?1) + 1) = ?1 || '-' ORDER BY u.session",
    "SELECT DISTINCT given.row, u.session FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN usage o ON o.session = given.id JOIN usage u ON u.home = o.home AND u.tenant = o.tenant "
    "WHERE starts_with(u.session, given.id || '-') ORDER BY 1, 2",
    returns=True,
)
# What was asked for, or began and has not ended a step, is on no account yet. Of such there are few at any time.
_ASKED_BELOW = Statement(
    "erase_asked_below",
    "SELECT i.body FROM inbox i WHERE i.is_open AND i.kind = 'Send' "
    "AND substr(i.session, 1, length(?1) + 1) = ?1 || '-'",
    "SELECT given.row, i.body FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN inbox i ON i.is_open AND i.kind = 'Send' AND starts_with(i.session, given.id || '-')",
    returns=True,
)
_BEGUN_BELOW = Statement(
    "erase_begun_below",
    "SELECT e.body FROM turns t JOIN events e ON e.session = t.session AND e.seq = t.started "
    "WHERE (t.state != 'over' OR t.out > 0) AND substr(t.session, 1, length(?1) + 1) = ?1 || '-'",
    "SELECT given.row, e.body FROM unnest($1::text[]) WITH ORDINALITY AS given (id, row) "
    "JOIN turns t ON (t.state != 'over' OR t.out > 0) AND starts_with(t.session, given.id || '-') "
    "JOIN events e ON e.session = t.session AND e.seq = t.started",
    returns=True,
)


async def erase(database: Database, session: str) -> list[str]:
    """Take everything out of a session, and out of those of its sub-turns, but that they were there; their names.

    Raises:
        SessionBusy: a turn is under way, or somebody has asked for one.
        UnknownSession: it never was there.
    """
    return await database.write(lambda _: erased(session), session, is_long=True)


def erased(session: str, before: float | None = None) -> Operation[list[str]]:
    """Erase a session with its sub-turns, if it was not touched since `before`; which there were to erase."""
    rows = yield Query(_LOCK, (session,))
    if not rows:
        raise UnknownSession(f"there is no session {session!r}")
    is_erased, touched = rows[0]
    if is_erased or (before is not None and touched >= before):
        return []
    gone = [session]
    yield from _refuse_if_busy(session, session)
    for (below,) in (yield Query(_BELOW, (session,))):
        rows = yield Query(_LOCK, (below,))
        if rows and not rows[0][0]:
            yield from _refuse_if_busy(below, session)
            gone.append(below)
    yield from _refuse_if_coming(session)
    for statement in (*_DELETES, _BURY):
        yield Query(statement, [(name,) for name in gone], many=True)
    return gone


def _refuse_if_busy(session: str, erased: str) -> Operation[None]:
    ((has_commands, has_turns),) = yield Query(_IS_BUSY, (session,))
    if has_commands or has_turns:
        whose = "" if session == erased else f", a sub-turn of {erased!r},"
        raise SessionBusy(f"session {session!r}{whose} has a turn under way, or waiting: cancel it, then erase")


def _refuse_if_coming(session: str) -> Operation[None]:
    asked = [load_command(bytes(body)) for (body,) in (yield Query(_ASKED_BELOW, (session,)))]
    begun = [load(bytes(body)) for (body,) in (yield Query(_BEGUN_BELOW, (session,)))]
    for one in (*asked, *begun):
        above = one.options.above if isinstance(one, Send | TurnStarted) else None
        if above is not None and f"{session}-".startswith(f"{above.session}-"):
            raise SessionBusy(f"session {session!r} has a sub-turn under way: cancel it, then erase")
