"""Partitions of the log on PostgreSQL: retention removes the logs of many sessions by dropping a table.

A partition (`events_7`) has the logs of the sessions that were created while it was open: `sessions.cohort` names it, and
never changes. So a log is whole wherever its session is in its life, and (session, seq) is unique because it is unique in
each partition. The functions that open and compact partitions are in the schema: tools/migrations/versions.

Retention erases the idle sessions of a partition, leaves their logs, copies the few logs that must stay, and drops the rest
with the table. In a partition with many sessions in use it deletes logs one by one instead, as on SQLite.
"""

from __future__ import annotations

import logging

from everturn.errors import StoreUnavailable
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement

log = logging.getLogger(__name__)

OPEN_SECONDS = 28 * 86_400.0
"""Seconds for which a partition stays open at least: each one costs every reader a lock."""

OPEN_BYTES = 2**30
"""Size below which a partition stays open: a small database has one."""

COPIED_EVENTS = 20_000
"""Events that are copied at most when a partition is compacted: appends wait as long."""

_QUEUE = "maintenance"

_ROTATE = Statement(
    "rotate_events",
    "SELECT 1",
    "SELECT given.row, everturn_rotate_events(given.before, given.size) "
    "FROM unnest($1::double precision[], $2::bigint[]) WITH ORDINALITY AS given (before, size, row)",
    returns=True,
)
# With how many sessions a partition has had, and what has to stay: those that were touched since, and those with work or a
# person they wait for.
_CLOSED = Statement(
    "closed_partitions",
    "SELECT 1",
    "SELECT given.row, c.cohort, c.is_compacted, (SELECT count(*) FROM sessions a WHERE a.cohort = c.cohort), "
    "l.sessions, l.events "
    "FROM unnest($1::double precision[]) WITH ORDINALITY AS given (before, row) "
    "CROSS JOIN everturn_closed_events() c CROSS JOIN LATERAL ("
    "SELECT count(*) AS sessions, coalesce(sum(s.head), 0)::bigint AS events FROM sessions s "
    "WHERE s.cohort = c.cohort AND NOT s.erased AND (s.touched >= given.before "
    "OR EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id AND (t.state != 'over' OR t.out > 0)) "
    "OR EXISTS (SELECT 1 FROM inbox i WHERE i.session = s.id AND i.is_open))) l ORDER BY 1, 2",
    returns=True,
)
_COMPACT = Statement(
    "compact_events",
    "SELECT 1",
    "SELECT given.row, everturn_compact_events(given.cohort) "
    "FROM unnest($1::int[]) WITH ORDINALITY AS given (cohort, row)",
    returns=True,
)


async def rotate(database: Database, now: float) -> None:
    """Open the next partition for new sessions, if the open one is old and large enough."""
    await _write(database, _ROTATE, now - OPEN_SECONDS, OPEN_BYTES)


async def droppable(database: Database, before: float) -> list[int]:
    """Return the closed partitions in which little has to stay when the sessions idle since `before` are erased.

    A partition is compacted once, so not before at least half of its sessions can go.
    """
    rows = await database.read(lambda: _rows(_CLOSED, before), is_long=True)
    return [
        cohort
        for cohort, is_compacted, sessions, staying, events in rows
        if (not staying if is_compacted else events <= COPIED_EVENTS and staying * 2 <= sessions)
    ]


async def compact(database: Database, cohort: int) -> bool:
    """Remove the logs of erased sessions from a closed partition, with the partition; the others stay.

    Returns False if it must be tried again: a long read, such as a backup, may hold the table.
    """
    try:
        ((stayed,),) = await _write(database, _COMPACT, cohort)
    except StoreUnavailable as error:
        log.warning("the logs of erased sessions in partition %d are removed in the next run: %s", cohort, error)
        return False
    if stayed >= 0:
        log.info("the partition events_%d was dropped; %d of its events were kept", cohort, stayed)
    return stayed >= 0


async def _write(database: Database, statement: Statement, *parameters: object) -> list[Row]:
    return await database.write(lambda _: _rows(statement, *parameters), _QUEUE, is_long=True)


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))
