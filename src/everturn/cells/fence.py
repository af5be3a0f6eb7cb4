"""Fence: freezes a tenant in the database of a cell, so that nothing of it changes there any more.

The problem. Processes of the source may hold sessions of the tenant, and a move cannot ask each of them: one may be
stopped, and wake up an hour later. The database itself has to refuse their writes.

What was rejected. A column that every append reads costs every append of every tenant. New epochs stop drivers, and not
commands, schedules or accounts. A lock ends with its connection.

Here triggers do it, and exist only while a tenant is frozen. CREATE TRIGGER waits for the transactions that write to the
table, and those that begin later see the trigger: when `freeze` returns, everything that was acknowledged is visible, and
nothing more comes. A trigger either *refuses* a write with an error that callers may retry, or *skips* the row: a statement
over many tenants (a sweep for overdue sessions, a group of appends, the due deliveries) works on for the others, and for this
one finds nothing. An append whose row is skipped is stale, and its driver stops; a claim finds nothing to do.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from everturn.stores.sql.errors import MOVING_STATE

LOCK_MILLISECONDS: Final = 2_000
LOCK_ATTEMPTS: Final = 30

_FENCED: Final = (  # table, its column that names the tenant or the session, and what is skipped instead of refused
    ("inbox", "session", ""),
    ("tenants", "id", ""),
    ("users", "tenant", ""),
    ("credentials", "tenant", "DELETE"),  # maintenance deletes old ones
    ("audit", "tenant", ""),
    ("marks", "tenant", "DELETE"),
    ("memory_files", "tenant", ""),
    ("memory_writes", "tenant", ""),
    ("schedules", "tenant", ""),
    ("webhooks", "tenant", ""),
    ("webhook_deliveries", "tenant", "UPDATE DELETE"),
    ("session_shares", "tenant", ""),
    ("temporary_sessions", "tenant", "DELETE"),
    # The last one: a command that comes while this runs is either refused, or changes the row of its session.
    ("sessions", "tenant", "UPDATE"),
)
# A session that a person erases is not skipped: the erasure would be acknowledged, and the target would not know of it.
# Once the tenant has moved, maintenance may erase what is old in the copy that stays behind.
_FUNCTION: Final = f"""
CREATE OR REPLACE FUNCTION everturn_tenant_fence() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    changed record;
    owner text;
    found_mode text;
BEGIN
    IF TG_OP = 'DELETE' THEN changed := OLD; ELSE changed := NEW; END IF;
    IF current_setting('everturn.mover', true) = 'on' THEN RETURN changed; END IF;
    IF TG_ARGV[0] = 'session' THEN
        SELECT s.tenant INTO owner FROM sessions s WHERE s.id = changed.session;
    ELSIF TG_ARGV[0] = 'id' THEN
        owner := changed.id;
    ELSE
        owner := changed.tenant;
    END IF;
    SELECT f.mode INTO found_mode FROM tenant_fences f WHERE f.tenant = owner AND f.mode <> 'arrived';
    IF found_mode IS NULL THEN RETURN changed; END IF;
    IF TG_TABLE_NAME = 'sessions' AND TG_OP = 'UPDATE' THEN
        IF changed.erased AND NOT OLD.erased THEN
            IF found_mode = 'moved' THEN RETURN changed; END IF;
            RAISE EXCEPTION 'tenant % is moved to another cell', owner USING ERRCODE = '{MOVING_STATE}';
        END IF;
    END IF;
    IF position(TG_OP IN TG_ARGV[1]) > 0 THEN RETURN NULL; END IF;
    RAISE EXCEPTION 'tenant % is moved to another cell', owner USING ERRCODE = '{MOVING_STATE}';
END $$"""
_CREATE: Final = """
CREATE TABLE IF NOT EXISTS tenant_fences (tenant text PRIMARY KEY, move text NOT NULL, mode text NOT NULL)"""


async def create_fences(connection: Any) -> None:
    """Create the table of frozen tenants, unless it exists."""
    if await connection.fetchval("SELECT to_regclass('tenant_fences')") is None:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(hashtextextended('everturn_fences', 0))")
            await connection.execute(_CREATE)


async def fence_mode(connection: Any, tenant: str, move: str) -> str:
    """What a database knows of a move: `frozen` or `moved` in the source, `arrived` in the target, or ""."""
    if await connection.fetchval("SELECT to_regclass('tenant_fences')") is None:
        return ""
    query = "SELECT mode FROM tenant_fences WHERE tenant = $1 AND move = $2"
    return await connection.fetchval(query, tenant, move) or ""


async def freeze(connection: Any, tenant: str, move: str) -> None:
    """Freeze a tenant; when this returns, no transaction that wrote for it is open, and none can write."""
    await create_fences(connection)
    async with connection.transaction():
        await set_fence(connection, tenant, move, "frozen")
        await connection.execute(_FUNCTION)
    for table, column, skipped in _FENCED:
        # One at a time, in transactions of their own: a group of appends locks tables in another order.
        await _with_short_lock(
            connection,
            f"CREATE OR REPLACE TRIGGER tenant_fence BEFORE INSERT OR UPDATE OR DELETE ON {table} "
            f"FOR EACH ROW EXECUTE FUNCTION everturn_tenant_fence('{column}', '{skipped}')",
        )


async def _with_short_lock(connection: Any, statement: str) -> None:
    """Run a statement that locks a table. While it waits for the lock, all writers wait behind it: so it gives up soon,
    lets them pass, and tries again."""
    for attempt in range(LOCK_ATTEMPTS):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = '{LOCK_MILLISECONDS}ms'")
                await connection.execute(statement)
            return
        except Exception as error:
            if getattr(error, "sqlstate", "") != "55P03" or attempt == LOCK_ATTEMPTS - 1:
                raise
        await asyncio.sleep(0.2)


async def set_fence(connection: Any, tenant: str, move: str, mode: str) -> None:
    """Record the mode of a tenant in this database."""
    await connection.execute(
        "INSERT INTO tenant_fences (tenant, move, mode) VALUES ($1, $2, $3) "
        "ON CONFLICT (tenant) DO UPDATE SET move = excluded.move, mode = excluded.mode",
        tenant,
        move,
        mode,
    )


async def lift(connection: Any, tenant: str) -> None:
    """Remove the fence of a tenant; without any fence, the triggers go too."""
    await create_fences(connection)
    await connection.execute("DELETE FROM tenant_fences WHERE tenant = $1", tenant)
    if not await connection.fetchval("SELECT count(*) FROM tenant_fences WHERE mode <> 'arrived'"):
        for table, _, _ in _FENCED:
            await _with_short_lock(connection, f"DROP TRIGGER IF EXISTS tenant_fence ON {table}")
