"""A session → its tombstone: a name, a tenant and a last position, so that neither is ever given again."""

from __future__ import annotations

from everturn.errors import SessionBusy, UnknownSession
from everturn.stores.sql.database import Database, Operation, Query, Statement


def _deleted_with_session(table: str) -> Statement:
    return Statement(
        f"erase_{table}",
        f"DELETE FROM {table} WHERE session = ?",
        f"DELETE FROM {table} USING unnest($1::text[]) AS given (session) WHERE {table}.session = given.session",
    )


# What a tenant owes is told by `usage`, which has numbers and no words; it stays.
_DELETES = [
    _deleted_with_session(table)
    for table in ("lookup", "mentions", "gates", "grants", "messages", "turns", "inbox", "events")
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
    "UPDATE sessions SET erased = true, title = '', leaf = NULL, token = 'erased', stuck = '', epoch = epoch + 1 "
    "WHERE id = ?",
    "UPDATE sessions s SET erased = true, title = '', leaf = NULL, token = 'erased', stuck = '', epoch = s.epoch + 1 "
    "FROM unnest($1::text[]) AS given (id) WHERE s.id = given.id",
)


async def erase(database: Database, session: str) -> None:
    """Take everything out of a session but that it was there.

    Raises:
        SessionBusy: a turn is under way, or somebody has asked for one.
        UnknownSession: it never was there.
    """
    await database.write(lambda _: erased(session), session, is_long=True)


def erased(session: str, before: float | None = None) -> Operation[bool]:
    """Erase a session, if it was not touched since `before`; whether there was something to erase."""
    rows = yield Query(_LOCK, (session,))
    if not rows:
        raise UnknownSession(f"there is no session {session!r}")
    is_erased, touched = rows[0]
    if is_erased or (before is not None and touched >= before):
        return False
    ((has_commands, has_turns),) = yield Query(_IS_BUSY, (session,))
    if has_commands or has_turns:
        raise SessionBusy(f"session {session!r} has a turn under way, or waiting: cancel it, then erase")
    for statement in _DELETES:
        yield Query(statement, [(session,)], many=True)
    yield Query(_BURY, [(session,)], many=True)
    return True
