"""Move of a tenant to another cell while it works. Every step can be repeated: a move that was killed is continued.

The invariant is that at most one cell writes for the tenant. The source is frozen before the target commits what it needs
to work, and stays frozen. The route is switched last: whatever a router believes meanwhile, the other cell refuses.

The commit in the target is the point of no return: before it a move can be aborted, after it only be completed.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

from msgspec import Struct

from everturn.cells.connection import connected
from everturn.cells.fence import create_fences, fence_mode, freeze, lift, set_fence
from everturn.cells.routes import CellMap, RoutingTable, TenantRoute
from everturn.cells.source_copy import delete_audit, erase_rows, park
from everturn.cells.table_copy import (
    SESSIONS_AT_ONCE,
    changed_sessions,
    copy_blobs,
    copy_rest,
    copy_sessions,
    current_position,
    delete_sessions,
)
from everturn.cells.tables import MovedTable, moved_tables
from everturn.core.tenants.accounts import LOCAL
from everturn.engine.postgres.statements import EngineStatements
from everturn.errors import ConfigError
from everturn.failpoints import hit_failpoint
from everturn.shared_database import SharedDatabase
from everturn.stores.sql.migrate import HEAD, postgres_version

PASSES: Final = 5  # at most, before the tenant is frozen; each copies what has changed during the last one
FEW_SESSIONS: Final = 100  # changed sessions that are copied while the tenant is frozen
HOLD_SECONDS: Final = 0.3  # for routers to hear of the hold; one that does not is refused by the source
SHARED_SECRETS: Final = ("callbacks", "encryption", "files", "sessions", "webhooks")
"""Secrets by which a cell recognises what another one has signed or encrypted."""

CONFIGURATION: Final = "configuration"  # who created the users of a configuration, in the audit log

_LIVE: Final = """
SELECT s.id FROM sessions s WHERE s.tenant = $1 AND NOT s.erased AND (
    EXISTS (SELECT 1 FROM inbox i WHERE i.session = s.id AND i.is_open)
    OR EXISTS (SELECT 1 FROM turns t WHERE t.session = s.id AND (t.state <> 'over' OR t.out > 0)))"""


class MoveReport(Struct, frozen=True):
    """What a move has done."""

    tenant: str
    source: str
    target: str
    epoch: int
    passes: int
    blobs: int
    frozen_seconds: float  # from the hold to the switch
    rows: dict[str, int]  # by table


class TenantMover:
    """Moves tenants between the cells of an installation."""

    def __init__(self, cells: CellMap, note: Callable[[str], None] = lambda _: None) -> None:
        self._cells, self._note = cells, note

    async def move(self, tenant: str, to: str) -> MoveReport:
        """Move a tenant, or continue a move that was interrupted.

        Raises:
            ConfigError: the tenant cannot be moved there; the text says why, and nothing was changed.
            UnreadableLog: the copy differs from the source; the route was not switched.
            StoreUnavailable: a database does not answer; run the command again.
        """
        async with self._routing(tenant) as (routes, route):
            if route.phase in ("copying", "held", "frozen", "switched") and route.target != to:
                raise ConfigError(f"{tenant!r} is being moved to {route.target!r}: complete that, or abort it")
            if route.cell == to and route.phase != "switched":
                raise ConfigError(f"{tenant!r} is in {to!r} already")
            if route.phase == "done":
                raise ConfigError(
                    f"{route.source!r} still has a copy of {tenant!r} from the last move; erase it first: "
                    f"everturn admin tenant erase-source {tenant}"
                )
            source, target = route.source or route.cell, to
            async with self._databases(source, target) as (source_db, target_db):
                return await _TenantMove(self, routes, source_db, target_db).run(route, source, target)

    async def abort(self, tenant: str) -> None:
        """Abort a move, so that the tenant works on in its source.

        Raises:
            ConfigError: there is none, or the target has taken over already.
        """
        async with self._routing(tenant) as (routes, route):
            if route.phase not in ("copying", "held", "frozen"):
                raise ConfigError(f"there is no move of {tenant!r} to abort; it is in {route.cell!r}")
            async with self._databases(route.source, route.target) as (source, target):
                if await fence_mode(target, tenant, route.move) == "arrived":
                    raise ConfigError(f"{route.target!r} has taken over {tenant!r} already: complete the move")
                await lift(source, tenant)
                rows = await source.fetch("SELECT id FROM sessions WHERE tenant = $1", tenant)
                await delete_sessions(target, [row[0] for row in rows])
                await routes.change(route, is_held=False, phase="", source="", target="", move="", since="")
                await self.wake(route.source, source, tenant)

    async def erase_source(self, tenant: str) -> int:
        """Delete the copy of a tenant that its last move has left in the source; returns how many sessions it had.

        Raises:
            ConfigError: there is no such copy.
        """
        async with self._routing(tenant) as (routes, route):
            if route.phase != "done":
                raise ConfigError(f"no cell has an old copy of {tenant!r}; it is in {route.cell!r}")
            async with connected(self._cells.cell(route.source).database) as source:
                count = await erase_rows(source, await moved_tables(source, HEAD), tenant)
            await routes.change(route, phase="", source="", target="", move="", since="")
            return count

    async def routes(self) -> list[TenantRoute]:
        """The rows of the routing table."""
        async with connected(self._cells.routes) as connection:
            table = RoutingTable(connection, self._cells.default)
            await table.create()
            return await table.all()

    async def wake(self, cell: str, connection: Any, tenant: str) -> None:
        """Have the open sessions of a tenant driven. Engines other than PostgreSQL find them when they look for overdue ones."""
        sessions = [row[0] for row in await connection.fetch(_LIVE, tenant)]
        statement = EngineStatements("wakes", "engine_workers").wake
        await connection.executemany(statement, [(session,) for session in sessions])
        if sessions:
            await self.notify_workers(cell, sessions[0])

    async def notify_workers(self, cell: str, session: str) -> None:
        """Tell the workers of a cell to look for sessions that are due."""
        engine = SharedDatabase(self._cells.cell(cell).database).engine(drives=False)
        try:
            await engine.wake(session)
        finally:
            await engine.aclose()

    def note(self, text: str) -> None:
        """Tell the operator what is done."""
        self._note(text)

    @asynccontextmanager
    async def _routing(self, tenant: str) -> AsyncGenerator[tuple[RoutingTable, TenantRoute]]:
        if tenant == LOCAL:
            raise ConfigError(f"{tenant!r} is the tenant of each cell's own operator, and cannot be moved")
        async with connected(self._cells.routes) as connection:
            table = RoutingTable(connection, self._cells.default)
            await table.create()
            await table.lock(tenant)
            yield table, await table.get(tenant)

    @asynccontextmanager
    async def _databases(self, source: str, target: str) -> AsyncGenerator[tuple[Any, Any]]:
        one, other = self._cells.cell(source), self._cells.cell(target)
        if not one.database or not other.database:
            raise ConfigError("a move needs the database of both cells: set [cells.NAME] database")
        async with connected(one.database) as source_db, connected(other.database) as target_db:
            await target_db.execute("SET everturn.mover = 'on'")
            yield source_db, target_db


class _TenantMove:
    """The steps of one move."""

    def __init__(self, mover: TenantMover, routes: RoutingTable, source: Any, target: Any) -> None:
        self._mover, self._routes, self._source, self._target = mover, routes, source, target
        self._tables: list[MovedTable] = []
        self._passes = self._blobs = 0
        self._rows: dict[str, int] = {}

    async def run(self, route: TenantRoute, source: str, target: str) -> MoveReport:
        """Go through the steps that are left."""
        self._tables = await moved_tables(self._source, await _same_version(self._source, self._target))
        if not route.phase:
            route = await self._begin(route, source, target)
        if route.phase == "copying":
            route = await self._copy(route)
        began = time.monotonic()
        if route.phase == "held":
            await freeze(self._source, route.tenant, route.move)
            hit_failpoint("move.frozen")
            route = await self._routes.change(route, phase="frozen")
        if route.phase == "frozen":
            await self._arrive(route)
            hit_failpoint("move.arrived")
            route = await self._routes.change(route, phase="switched", cell=target, is_held=False)
        frozen = time.monotonic() - began
        self._mover.note(f"{route.tenant} is in {target} (epoch {route.epoch}); it was held for {frozen:.2f} s")
        hit_failpoint("move.switched")
        await self._mover.wake(target, self._target, route.tenant)
        await park(self._source, route.tenant, route.move)
        hit_failpoint("move.parked")
        await self._target.execute("DELETE FROM tenant_fences WHERE tenant = $1", route.tenant)
        route = await self._routes.change(route, phase="done")
        return MoveReport(route.tenant, source, target, route.epoch, self._passes, self._blobs, frozen, self._rows)

    async def _begin(self, route: TenantRoute, source: str, target: str) -> TenantRoute:
        await _check_target(self._source, self._target, route.tenant)
        await create_fences(self._target)
        cohort = await self._target.fetchval("SELECT everturn_open_events()")
        move = secrets.token_hex(8)
        return await self._routes.change(
            route, cell=source, phase="copying", source=source, target=target, move=move, since="", cohort=cohort
        )

    async def _copy(self, route: TenantRoute) -> TenantRoute:
        """Copy in passes, while the tenant works; then hold its requests."""
        while True:
            route, count = await self._pass(route)
            self._passes += 1
            self._mover.note(f"pass {self._passes}: {count} sessions and {self._blobs} files copied")
            hit_failpoint("move.copied")
            if self._passes >= PASSES or (self._passes > 1 and count <= FEW_SESSIONS):
                break
        route = await self._routes.change(route, phase="held", is_held=True)
        hit_failpoint("move.held")
        await asyncio.sleep(HOLD_SECONDS)
        return route

    async def _pass(self, route: TenantRoute) -> tuple[TenantRoute, int]:
        async with self._source.transaction(isolation="repeatable_read", readonly=True):
            position = await current_position(self._source)
            self._blobs += await copy_blobs(self._source, self._target, route.tenant)
            count = await self._copy_changed(route)
        return await self._routes.change(route, since=position), count

    async def _copy_changed(self, route: TenantRoute) -> int:
        changed, erased = await changed_sessions(self._source, route.tenant, route.since)
        for at in range(0, len(changed), SESSIONS_AT_ONCE):
            async with self._target.transaction():
                part = changed[at : at + SESSIONS_AT_ONCE]
                await copy_sessions(self._source, self._target, self._tables, part, route.cohort)
            hit_failpoint("move.batch")
        await delete_sessions(self._target, erased)
        return len(changed)

    async def _arrive(self, route: TenantRoute) -> None:
        """Copy the rest of the frozen tenant, compare, and let the target take over, in one transaction of the target."""
        if await fence_mode(self._target, route.tenant, route.move) == "arrived":
            return
        await freeze(self._source, route.tenant, route.move)  # again: a backup may have been restored since
        async with self._source.transaction(isolation="repeatable_read", readonly=True):
            self._blobs += await copy_blobs(self._source, self._target, route.tenant)
            async with self._target.transaction():
                await self._copy_changed(route)
                await _share_secrets(self._source, self._target)
                self._rows = await copy_rest(self._source, self._target, self._tables, route.tenant, route.cohort)
                await self._target.execute("UPDATE sessions SET tries = 0 WHERE tenant = $1", route.tenant)
                await self._copy_wakes(route.tenant)
                await set_fence(self._target, route.tenant, route.move, "arrived")
                hit_failpoint("move.arriving")

    async def _copy_wakes(self, tenant: str) -> None:
        """Wake what the source would have driven: now, or at the time for which a session waits."""
        rows = await self._source.fetch(
            "SELECT session, later FROM wakes WHERE session IN (SELECT id FROM sessions WHERE tenant = $1) "
            "AND later IS NOT NULL",
            tenant,
        )
        await self._target.executemany(
            "INSERT INTO wakes (session, due, later) VALUES ($1, $2, $2) ON CONFLICT DO NOTHING",
            [(session, later) for session, later in rows],
        )


async def _same_version(source: Any, target: Any) -> str:
    versions = [await postgres_version(connection) for connection in (source, target)]
    if versions != [HEAD, HEAD]:
        raise ConfigError(
            f"the databases have the schemas {versions[0]} and {versions[1]}, and this version of Everturn moves between "
            f"databases of schema {HEAD}: run `everturn migrate` for both"
        )
    return HEAD


async def _check_target(source: Any, target: Any, tenant: str) -> None:
    """Refuse a move that could not be completed.

    Raises:
        ConfigError: the text says why.
    """
    known = "SELECT EXISTS (SELECT 1 FROM tenants WHERE id = $1) OR EXISTS (SELECT 1 FROM sessions WHERE tenant = $1)"
    if not await source.fetchval(known, tenant):
        raise ConfigError(f"the source has no tenant {tenant!r}")
    for table, condition in (("sessions", ""), ("audit", f" AND who <> '{CONFIGURATION}'")):
        if await target.fetchval(f"SELECT EXISTS (SELECT 1 FROM {table} WHERE tenant = $1{condition})", tenant):
            raise ConfigError(f"the target has {table} of {tenant!r} already; erase the tenant there first")
    await _share_secrets(source, target, is_rehearsal=True)
    await delete_audit(target, tenant)  # that users of this tenant are in the target's configuration


async def _share_secrets(source: Any, target: Any, is_rehearsal: bool = False) -> None:
    """Give the target the secrets of the source that it lacks.

    Raises:
        ConfigError: a secret differs, so that tokens, webhook signatures or encrypted values would become invalid.
    """
    rows = [
        {row[0]: bytes(row[1]) for row in await connection.fetch("SELECT name, value FROM secrets")}
        for connection in (source, target)
    ]
    here, there = (
        {name: value for name, value in each.items() if name.partition("@")[0] in SHARED_SECRETS} for each in rows
    )
    if here.get("encryption") != there.get("encryption"):
        raise ConfigError(
            "the cells do not encrypt with the same keyring, and keys are not moved: set [store.encryption] to the same "
            "keyring and master keys in both, and start the target once"
        )
    different = sorted(name for name, value in here.items() if there.get(name, value) != value)
    if different:
        raise ConfigError(
            f"the cells have different keys for {', '.join(different)}, and what the source has signed would become "
            "invalid: set the same [auth] signing_keys in both and retire the stored keys (`everturn admin keys retire "
            "--all`), or create the target's database anew and move a tenant to it before it is used"
        )
    if not is_rehearsal:
        await target.executemany(
            "INSERT INTO secrets (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            [(name, value) for name, value in here.items() if name not in there],
        )
