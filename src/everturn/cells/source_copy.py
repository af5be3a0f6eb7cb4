"""The copy of a tenant that stays in the source: parked after the switch, and erased on demand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from everturn.cells.fence import lift, set_fence
from everturn.cells.tables import MovedTable

_SESSIONS: Final = "session IN (SELECT id FROM sessions WHERE tenant = $1)"
# The log stays whole. Only what processes of the source look for is closed: they would find it first, and can do nothing
# with it.
_PARK: Final = (
    f"UPDATE inbox SET is_open = false WHERE is_open AND {_SESSIONS}",
    f"UPDATE turns SET state = 'over', out = 0 WHERE (state <> 'over' OR out > 0) AND {_SESSIONS}",
    f"UPDATE gates SET is_open = false WHERE is_open AND {_SESSIONS}",
    "UPDATE schedules SET wake_at = NULL WHERE tenant = $1",
    "UPDATE webhook_deliveries SET due = NULL WHERE tenant = $1",
    "DELETE FROM temporary_sessions WHERE tenant = $1",
    "UPDATE tenants SET is_active = false WHERE id = $1",
    f"DELETE FROM wakes WHERE {_SESSIONS}",
)


async def park(source: Any, tenant: str, move: str) -> None:
    """Let the processes of the source find nothing to do in the copy; it stays frozen, and nobody can log in to it."""
    async with source.transaction():
        await source.execute("SET LOCAL everturn.mover = 'on'")
        for statement in _PARK:
            await source.execute(statement, tenant)
        await set_fence(source, tenant, move, "moved")


async def delete_audit(connection: Any, tenant: str) -> None:
    """Delete the audit log of a tenant, which triggers protect otherwise."""
    if await connection.fetchval("SELECT EXISTS (SELECT 1 FROM audit WHERE tenant = $1)", tenant):
        async with connection.transaction():
            await connection.execute("ALTER TABLE audit DISABLE TRIGGER audit_is_kept")
            await connection.execute("DELETE FROM audit WHERE tenant = $1", tenant)
            await connection.execute("ALTER TABLE audit ENABLE TRIGGER audit_is_kept")


async def erase_rows(connection: Any, tables: Sequence[MovedTable], tenant: str) -> int:
    """Delete all rows of a tenant, also its audit log; return how many sessions it had. Maintenance removes the blobs."""
    async with connection.transaction():
        await connection.execute("SET LOCAL everturn.mover = 'on'")
        count = await connection.fetchval("SELECT count(*) FROM sessions WHERE tenant = $1", tenant)
        await delete_audit(connection, tenant)
        for table in reversed(tables):  # the sessions last
            if table.name != "audit":
                await connection.execute(f"DELETE FROM {table.name} WHERE {table.condition}", tenant)
        await connection.execute("DELETE FROM usage_days WHERE tenant = $1", tenant)
    await lift(connection, tenant)
    return count
