"""SQL `WebhookStore`: webhooks, and the outbox that appends write (`OUTBOX`)."""

from __future__ import annotations

import builtins

import msgspec

from everturn.core.webhooks import Delivery, DeliveryState, Webhook
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement

# In the transaction of an append: a row for each webhook of the tenant that is told of the type.
OUTBOX = Statement(
    "outbox",
    """INSERT INTO webhook_deliveries (tenant, webhook, session, seq, type, at, data, state, due, updated)
    SELECT w.tenant, w.id, ?2, ?3, ?4, ?5, ?6, 'pending', ?5, ?5 FROM webhooks w
    WHERE w.tenant = ?1 AND instr(w.events, ?7) > 0 ON CONFLICT DO NOTHING""",
    """INSERT INTO webhook_deliveries (tenant, webhook, session, seq, type, at, data, state, due, updated)
    SELECT w.tenant, w.id, p.session, p.seq, p.type, p.at, p.data, 'pending', p.at, p.at
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::float8[], $6::text[], $7::text[])
        AS p(tenant, session, seq, type, at, data, needle)
    JOIN webhooks w ON w.tenant = p.tenant AND position(p.needle IN w.events) > 0 ON CONFLICT DO NOTHING""",
)
_PUT = Statement(
    "put webhook",
    """INSERT INTO webhooks (tenant, id, events, body) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant, id) DO UPDATE SET events = excluded.events, body = excluded.body""",
    """INSERT INTO webhooks (tenant, id, events, body) SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[])
    ON CONFLICT (tenant, id) DO UPDATE SET events = excluded.events, body = excluded.body""",
)
_GET = Statement(
    "webhook",
    "SELECT w.body FROM webhooks w WHERE w.tenant = ? AND w.id = ?",
    """SELECT p.n, w.body FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, id, n)
    JOIN webhooks w ON w.tenant = p.tenant AND w.id = p.id""",
    returns=True,
)
_LIST = Statement(
    "webhooks",
    "SELECT w.body, w.id FROM webhooks w WHERE w.tenant = ?",
    """SELECT p.n, w.body, w.id FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    JOIN webhooks w ON w.tenant = p.tenant""",
    returns=True,
)
_DELETE = Statement(
    "delete webhook",
    "DELETE FROM webhooks WHERE tenant = ? AND id = ? RETURNING id",
    """DELETE FROM webhooks w USING unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, id, n)
    WHERE w.tenant = p.tenant AND w.id = p.id RETURNING p.n, w.id""",
    returns=True,
)
_DELETE_OUTBOX = Statement(
    "delete deliveries",
    "DELETE FROM webhook_deliveries WHERE tenant = ? AND webhook = ?",
    """DELETE FROM webhook_deliveries d USING unnest($1::text[], $2::text[]) AS p(tenant, webhook)
    WHERE d.tenant = p.tenant AND d.webhook = p.webhook""",
)
_IS_USED = Statement(
    "webhooks used",
    "SELECT 1 WHERE EXISTS (SELECT 1 FROM webhooks) OR EXISTS (SELECT 1 FROM webhook_deliveries WHERE due IS NOT NULL)",
    "SELECT 1, 1 WHERE EXISTS (SELECT 1 FROM webhooks) OR EXISTS (SELECT 1 FROM webhook_deliveries WHERE due IS NOT NULL)",
    returns=True,
)
_NEXT = Statement(
    "next delivery",
    "SELECT min(due) FROM webhook_deliveries WHERE due IS NOT NULL",
    "SELECT 1, min(due) FROM webhook_deliveries WHERE due IS NOT NULL",
    returns=True,
)
_COLUMNS = "tenant, webhook, session, seq, type, at, data, state, due, tries, status, problem, updated"
_D_COLUMNS = ", ".join(f"d.{name}" for name in _COLUMNS.split(", "))
_CLAIM = Statement(
    "claim deliveries",
    f"""UPDATE webhook_deliveries SET due = ?2, tries = tries + 1, updated = ?1 WHERE rowid IN (
        SELECT rowid FROM webhook_deliveries WHERE due <= ?1 ORDER BY due, seq LIMIT ?3) RETURNING {_COLUMNS}""",
    f"""WITH late AS (
        SELECT p.n, p.now, p.until, l.* FROM unnest($1::float8[], $2::float8[], $3::bigint[]) WITH ORDINALITY
            AS p(now, until, most, n)
        CROSS JOIN LATERAL (
            SELECT o.tenant, o.webhook, o.session, o.seq FROM webhook_deliveries o WHERE o.due <= p.now
            ORDER BY o.due, o.seq LIMIT p.most FOR UPDATE OF o SKIP LOCKED) l)
    UPDATE webhook_deliveries d SET due = late.until, tries = d.tries + 1, updated = late.now FROM late
    WHERE d.tenant = late.tenant AND d.webhook = late.webhook AND d.session = late.session AND d.seq = late.seq
    RETURNING late.n, {_D_COLUMNS}""",
    returns=True,
)
_FINISH = Statement(
    "finish delivery",
    """UPDATE webhook_deliveries SET state = ?5, due = ?6, status = ?7, problem = ?8, updated = ?9
    WHERE tenant = ?1 AND webhook = ?2 AND session = ?3 AND seq = ?4 AND state = 'pending'""",
    """UPDATE webhook_deliveries d SET state = p.state, due = p.due, status = p.status, problem = p.problem,
        updated = p.updated
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::float8[], $7::int[], $8::text[],
        $9::float8[]) AS p(tenant, webhook, session, seq, state, due, status, problem, updated)
    WHERE d.tenant = p.tenant AND d.webhook = p.webhook AND d.session = p.session AND d.seq = p.seq
        AND d.state = 'pending'""",
)
_DELIVERIES = Statement(
    "deliveries",
    f"""SELECT {_COLUMNS} FROM webhook_deliveries WHERE tenant = ? AND webhook = ? AND state = ?
    ORDER BY at DESC, session, seq LIMIT ?""",
    f"""SELECT p.n, l.* FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY
        AS p(tenant, webhook, state, most, n)
    CROSS JOIN LATERAL (SELECT {_D_COLUMNS} FROM webhook_deliveries d
        WHERE d.tenant = p.tenant AND d.webhook = p.webhook AND d.state = p.state
        ORDER BY d.at DESC, d.session COLLATE "C", d.seq LIMIT p.most) l""",
    returns=True,
)
_REPLAY = Statement(
    "replay deliveries",
    """UPDATE webhook_deliveries SET state = 'pending', due = ?5, tries = 0, updated = ?5
    WHERE tenant = ?1 AND webhook = ?2 AND state != 'pending'
        AND CASE WHEN ?3 = '' THEN state = 'dead' ELSE session = ?3 AND seq = ?4 END RETURNING seq""",
    """UPDATE webhook_deliveries d SET state = 'pending', due = p.now, tries = 0, updated = p.now
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::float8[]) WITH ORDINALITY
        AS p(tenant, webhook, session, seq, now, n)
    WHERE d.tenant = p.tenant AND d.webhook = p.webhook AND d.state != 'pending'
        AND CASE WHEN p.session = '' THEN d.state = 'dead' ELSE d.session = p.session AND d.seq = p.seq END
    RETURNING p.n, d.seq""",
    returns=True,
)
_PURGE = Statement(
    "purge deliveries",
    "DELETE FROM webhook_deliveries WHERE state = 'delivered' AND updated < ? RETURNING seq",
    """DELETE FROM webhook_deliveries d USING unnest($1::float8[]) WITH ORDINALITY AS p(before, n)
    WHERE d.state = 'delivered' AND d.updated < p.before RETURNING p.n, d.seq""",
    returns=True,
)
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(Webhook).decode


class SqlWebhooks:
    """Webhooks and their outbox in the database of the sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def use_database(self, database: Database) -> None:
        """Read and write through another database, such as one that encrypts."""
        self._database = database

    async def put(self, webhook: Webhook) -> None:
        """Add or replace a webhook."""
        await self._database.write(lambda _: _put(webhook), f"webhook {webhook.tenant} {webhook.id}")

    async def get(self, tenant: str, id: str) -> Webhook | None:
        """Return one webhook."""
        rows = await self._database.read(lambda: _rows(_GET, tenant, id))
        return _decode(rows[0][0]) if rows else None

    async def list(self, tenant: str) -> builtins.list[Webhook]:
        """Return the webhooks of a tenant, by id."""
        rows = await self._database.read(lambda: _rows(_LIST, tenant))
        return sorted((_decode(row[0]) for row in rows), key=lambda row: row.id)

    async def delete(self, tenant: str, id: str) -> bool:
        """Delete a webhook and its deliveries."""
        return await self._database.write(lambda again: _delete(tenant, id, again), f"webhook {tenant} {id}")

    async def is_used(self) -> bool:
        """Return whether there is a webhook or a pending delivery."""
        return bool(await self._database.read(lambda: _rows(_IS_USED)))

    async def next_due(self) -> float | None:
        """Return the earliest time at which a delivery is due."""
        return (await self._database.read(lambda: _rows(_NEXT)))[0][0]

    async def claim(self, now: float, until: float, limit: int) -> builtins.list[Delivery]:
        """Take due deliveries."""
        rows = await self._database.write(lambda _: _rows(_CLAIM, now, until, limit), "deliveries", is_long=True)
        return [_delivery(row) for row in rows]

    async def finish(self, delivery: Delivery) -> None:
        """Record the outcome of a try."""
        place = f"delivery {delivery.webhook} {delivery.session} {delivery.seq}"
        await self._database.write(lambda _: _finish(delivery), place)

    async def deliveries(
        self, tenant: str, webhook: str, state: DeliveryState, limit: int = 100
    ) -> builtins.list[Delivery]:
        """Return deliveries in a state, newest first."""
        rows = await self._database.read(lambda: _rows(_DELIVERIES, tenant, webhook, state, limit))
        return [_delivery(row) for row in rows]

    async def replay(self, tenant: str, webhook: str, session: str, seq: int, now: float) -> int:
        """Make deliveries pending again."""
        work = (tenant, webhook, session, seq, now)
        return len(await self._database.write(lambda _: _rows(_REPLAY, *work), f"webhook {tenant} {webhook}"))

    async def purge(self, before: float) -> int:
        """Remove what was delivered before a time."""
        return len(await self._database.write(lambda _: _rows(_PURGE, before), "deliveries", is_long=True))


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))


def _put(webhook: Webhook) -> Operation[None]:
    yield Query(_PUT, [(webhook.tenant, webhook.id, webhook.needle, _encode(webhook))], many=True)


def _delete(tenant: str, id: str, again: bool) -> Operation[bool]:
    rows = yield Query(_DELETE, (tenant, id))
    yield Query(_DELETE_OUTBOX, [(tenant, id)], many=True)
    return bool(rows) or again


def _finish(row: Delivery) -> Operation[None]:
    place = (row.tenant, row.webhook, row.session, row.seq)
    yield Query(_FINISH, [(*place, row.state, row.due, row.status, row.problem, row.updated)], many=True)


def _delivery(row: Row) -> Delivery:
    return Delivery(**dict(zip(_COLUMNS.split(", "), row, strict=True)))
