"""SQL `ScheduleStore`: a row per schedule. `wake_at` is its only column that is searched; the rest is its body.

A claim takes due rows that no other process has locked, and writes what each starts in the same transaction.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable

import msgspec

from everturn.core.schedules import Schedule
from everturn.stores.sql.database import Database, Operation, Query, Statement

_ADD = Statement(
    "add schedule",
    "INSERT INTO schedules (tenant, id, wake_at, body) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
    """WITH p AS (SELECT * FROM unnest($1::text[], $2::text[], $3::float8[], $4::bytea[]) WITH ORDINALITY
        AS p(tenant, id, wake_at, body, n)),
    added AS (INSERT INTO schedules (tenant, id, wake_at, body) SELECT tenant, id, wake_at, body FROM p
        ON CONFLICT DO NOTHING RETURNING tenant, id)
    SELECT p.n, p.id FROM added JOIN p ON p.tenant = added.tenant AND p.id = added.id""",
    returns=True,
)
_GET = Statement(
    "schedule",
    "SELECT s.body FROM schedules s WHERE s.tenant = ? AND s.id = ?",
    """SELECT p.n, s.body FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, id, n)
    JOIN schedules s ON s.tenant = p.tenant AND s.id = p.id""",
    returns=True,
)
_LOCK = Statement(
    "lock schedule",
    "SELECT s.body FROM schedules s WHERE s.tenant = ? AND s.id = ?",
    """SELECT p.n, s.body FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, id, n)
    JOIN schedules s ON s.tenant = p.tenant AND s.id = p.id ORDER BY s.tenant, s.id FOR UPDATE OF s""",
    returns=True,
)
_LIST = Statement(
    "schedules",
    "SELECT s.body, s.id FROM schedules s WHERE s.tenant = ? AND s.id > ? ORDER BY s.id LIMIT ?",
    """SELECT p.n, l.body, l.id FROM unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS p(tenant, after, most, n)
    CROSS JOIN LATERAL (SELECT s.body, s.id FROM schedules s WHERE s.tenant = p.tenant
        AND s.id COLLATE "C" > p.after COLLATE "C" ORDER BY s.id COLLATE "C" LIMIT p.most) l""",
    returns=True,
)
_COUNT = Statement(
    "count schedules",
    "SELECT count(*) FROM schedules s WHERE s.tenant = ?",
    """SELECT p.n, (SELECT count(*) FROM schedules s WHERE s.tenant = p.tenant)
    FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)""",
    returns=True,
)
_PUT = Statement(
    "put schedule",
    "UPDATE schedules SET wake_at = ?, body = ? WHERE tenant = ? AND id = ?",
    """UPDATE schedules s SET wake_at = p.wake_at, body = p.body
    FROM unnest($1::float8[], $2::bytea[], $3::text[], $4::text[]) AS p(wake_at, body, tenant, id)
    WHERE s.tenant = p.tenant AND s.id = p.id""",
)
_DELETE = Statement(
    "delete schedule",
    "DELETE FROM schedules WHERE tenant = ? AND id = ? RETURNING id",
    """DELETE FROM schedules s USING unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, id, n)
    WHERE s.tenant = p.tenant AND s.id = p.id RETURNING p.n, s.id""",
    returns=True,
)
_DUE = Statement(
    "due schedules",
    "SELECT s.body, s.tenant, s.id FROM schedules s WHERE s.wake_at <= ? ORDER BY s.wake_at LIMIT ?",
    """SELECT p.n, l.body, l.tenant, l.id FROM unnest($1::float8[], $2::bigint[]) WITH ORDINALITY AS p(now, most, n)
    CROSS JOIN LATERAL (SELECT s.body, s.tenant, s.id FROM schedules s WHERE s.wake_at <= p.now
        ORDER BY s.wake_at LIMIT p.most FOR UPDATE OF s SKIP LOCKED) l""",
    returns=True,
)
_NEXT = Statement(
    "next schedule",
    "SELECT min(wake_at) FROM schedules WHERE wake_at IS NOT NULL",
    "SELECT 1, min(wake_at) FROM schedules WHERE wake_at IS NOT NULL",
    returns=True,
)
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Schedule).decode


class SqlSchedules:
    """Schedules in the database of the sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def use_database(self, database: Database) -> None:
        """Read and write through another database, such as one that encrypts."""
        self._database = database

    async def add(self, schedule: Schedule) -> bool:
        """Add a schedule; False if its tenant has one with this id."""
        return await self._database.write(lambda again: _add(schedule, again), _key(schedule.tenant, schedule.id))

    async def get(self, tenant: str, id: str) -> Schedule | None:
        """Return one schedule."""
        return await self._database.read(lambda: _get(tenant, id))

    async def list(self, tenant: str, limit: int = 200, after: str = "") -> builtins.list[Schedule]:
        """Return the schedules of a tenant by id, those after an id."""
        return await self._database.read(lambda: _list(tenant, limit, after), is_long=limit > 200)

    async def count(self, tenant: str) -> int:
        """Count the schedules of a tenant."""
        return await self._database.read(lambda: _count(tenant))

    async def change(self, tenant: str, id: str, change: Callable[[Schedule], Schedule]) -> Schedule | None:
        """Apply a function to a schedule."""
        return await self._database.write(lambda _: _change(tenant, id, change), _key(tenant, id))

    async def delete(self, tenant: str, id: str) -> bool:
        """Delete a schedule."""
        return await self._database.write(lambda again: _delete(tenant, id, again), _key(tenant, id))

    async def claim(self, now: float, limit: int, begin: Callable[[Schedule], Schedule]) -> builtins.list[Schedule]:
        """Apply `begin` to schedules that are due, and return them."""
        return await self._database.write(lambda _: _claim(now, limit, begin), "schedules", is_long=True)

    async def next_wake(self) -> float | None:
        """Return the earliest time at which a schedule is due."""
        return await self._database.read(_next_wake)


def _key(tenant: str, id: str) -> str:
    return f"schedule {tenant} {id}"


def _row(schedule: Schedule) -> tuple[float | None, bytes, str, str]:
    return schedule.wake_at, _encode(schedule), schedule.tenant, schedule.id


def _add(schedule: Schedule, again: bool) -> Operation[bool]:
    rows = yield Query(_ADD, (schedule.tenant, schedule.id, schedule.wake_at, _encode(schedule)))
    if rows or not again:
        return bool(rows)
    return (yield from _get(schedule.tenant, schedule.id)) == schedule  # a lost COMMIT had written it


def _get(tenant: str, id: str) -> Operation[Schedule | None]:
    rows = yield Query(_GET, (tenant, id))
    return _decode(rows[0][0]) if rows else None


def _list(tenant: str, limit: int, after: str) -> Operation[list[Schedule]]:
    return [_decode(row[0]) for row in (yield Query(_LIST, (tenant, after, limit)))]


def _count(tenant: str) -> Operation[int]:
    return (yield Query(_COUNT, (tenant,)))[0][0]


def _change(tenant: str, id: str, change: Callable[[Schedule], Schedule]) -> Operation[Schedule | None]:
    rows = yield Query(_LOCK, (tenant, id))
    if not rows:
        return None
    changed = change(_decode(rows[0][0]))
    yield Query(_PUT, [_row(changed)], many=True)
    return changed


def _delete(tenant: str, id: str, again: bool) -> Operation[bool]:
    return bool((yield Query(_DELETE, (tenant, id)))) or again


def _claim(now: float, limit: int, begin: Callable[[Schedule], Schedule]) -> Operation[list[Schedule]]:
    schedules = [begin(_decode(row[0])) for row in (yield Query(_DUE, (now, limit)))]
    if schedules:
        yield Query(_PUT, [_row(schedule) for schedule in schedules], many=True)
    return schedules


def _next_wake() -> Operation[float | None]:
    return (yield Query(_NEXT))[0][0]
