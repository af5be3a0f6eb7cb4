"""Routing table: which cell a tenant is in, in a PostgreSQL database, with an epoch that each change increments.

The row of a tenant also has the state of its move, so that one statement switches the route and records that it did. A
tenant without a row is in the default cell. Routers read the whole table when a notification comes, and every second.

    phase     route            what is done
    copying   source           rows are copied while the tenant works
    held      source, held     routers let requests wait
    frozen    source, held     the source refuses writes; the rest is copied, and the target has everything in one commit
    switched  target           the copy in the source is parked
    done      target           the copy in the source stays until it is erased
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from everturn.errors import ConfigError

Phase = Literal["", "copying", "held", "frozen", "switched", "done"]
CHANNEL: Final = "everturn_routes"
_CREATE: Final = """
SELECT pg_advisory_xact_lock(hashtextextended('everturn_routes', 0));
CREATE TABLE IF NOT EXISTS tenant_routes (
    tenant text PRIMARY KEY, cell text NOT NULL, epoch bigint NOT NULL DEFAULT 1, is_held boolean NOT NULL DEFAULT false,
    phase text NOT NULL DEFAULT '', source text NOT NULL DEFAULT '', target text NOT NULL DEFAULT '',
    move text NOT NULL DEFAULT '', since text NOT NULL DEFAULT '', cohort integer NOT NULL DEFAULT 0)"""
_COLUMNS: Final = "tenant, cell, epoch, is_held, phase, source, target, move, since, cohort"


class TenantRoute(Struct, frozen=True):
    """The cell of a tenant, and the state of its move."""

    tenant: str
    cell: str
    epoch: int = 0  # 0: there is no row
    is_held: bool = False
    phase: Phase = ""
    source: str = ""
    target: str = ""
    move: str = ""  # a random name, by which the databases know the move
    since: str = ""  # transaction id of the source: everything older is copied
    cohort: int = 0  # partition of the target that gets the logs


class CellAddresses(Struct, frozen=True):
    """Where a cell is."""

    name: str
    url: str  # of its HTTP API
    database: str = ""


class CellMap(Struct, frozen=True):
    """The cells of an installation, the routing table, and where tenants without a row are."""

    routes: str
    default: str
    cells: Mapping[str, CellAddresses]

    def cell(self, name: str) -> CellAddresses:
        """A cell by its name.

        Raises:
            ConfigError: there is none.
        """
        if name not in self.cells:
            raise ConfigError(f"there is no cell {name!r}; [cells] has: {', '.join(sorted(self.cells)) or 'none'}")
        return self.cells[name]


class RoutingTable:
    """The routing table, over one connection."""

    def __init__(self, connection: Any, default: str) -> None:
        self._connection, self._default = connection, default

    async def create(self) -> None:
        """Create the table, unless it exists."""
        if await self._connection.fetchval("SELECT to_regclass('tenant_routes')") is None:
            await self._connection.execute(_CREATE)

    async def all(self) -> list[TenantRoute]:
        """All rows."""
        return _routes(await self._connection.fetch(f"SELECT {_COLUMNS} FROM tenant_routes ORDER BY tenant"))

    async def get(self, tenant: str) -> TenantRoute:
        """The route of a tenant."""
        rows = _routes(await self._connection.fetch(f"SELECT {_COLUMNS} FROM tenant_routes WHERE tenant = $1", tenant))
        return rows[0] if rows else TenantRoute(tenant, self._default)

    async def lock(self, tenant: str) -> None:
        """Become the only process that moves a tenant, until the connection is closed.

        Raises:
            ConfigError: another process moves it.
        """
        query = "SELECT pg_try_advisory_lock(hashtextextended('everturn.move.' || current_schema() || '.' || $1, 0))"
        if not await self._connection.fetchval(query, tenant):
            raise ConfigError(f"another process moves {tenant!r} right now; wait until it has ended")

    async def change(self, route: TenantRoute, **changes: object) -> TenantRoute:
        """Write a changed route, with the next epoch, and notify the routers.

        Raises:
            ConfigError: the route was changed by another process.
        """
        changed = msgspec.structs.replace(route, epoch=route.epoch + 1, **changes)
        values = [getattr(changed, name) for name in _COLUMNS.split(", ")]
        numbers = ", ".join(f"${n}" for n in range(1, len(values) + 1))
        updates = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", ")[1:])
        async with self._connection.transaction():
            written = await self._connection.fetchval(
                f"INSERT INTO tenant_routes AS r ({_COLUMNS}) VALUES ({numbers}) ON CONFLICT (tenant) DO UPDATE "
                f"SET {updates} WHERE r.epoch = excluded.epoch - 1 RETURNING epoch",
                *values,
            )
            if written is None:
                raise ConfigError(f"the route of {route.tenant!r} has changed in the meantime; run the command again")
            await self._connection.execute(f"NOTIFY {CHANNEL}")
        return changed


def _routes(rows: Sequence[Any]) -> list[TenantRoute]:
    return [TenantRoute(*row) for row in rows]
