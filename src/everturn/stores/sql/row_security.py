"""Row-level security on PostgreSQL: a read for one tenant cannot return the rows of another, and a read for one reader not
the conversations that are private to others.

Every query names its tenant or its session already. Should one forget to, the database itself withholds other tenants'
rows: inside `within(tenant)` reads use a role that does not own the tables, and row-level security shows it the rows of
the tenant that is set in its connection, and none when none is set. With a reader (core/tenants/sharing.py) it shows only the
sessions that this reader may see, and what belongs to them. The owner of the tables is not restricted: workers
drive the sessions of all tenants, and writes were checked at admission.

The role is named after the owner, `everturn_tenant_{owner}`: it may read what the owner owns, and has no other member.
The first process with the right to create roles creates it; an operator can create it beforehand. Without the role,
only the queries separate tenants, and a warning says so.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from everturn.core.tenants.sharing import Reader

# asyncpg has no types that pyright could use in strict mode.
Connection: TypeAlias = Any

log = logging.getLogger(__name__)


class ReadScope(NamedTuple):
    """What reads are restricted to: a tenant, and what one reader may see of it; None: everything of the tenant."""

    tenant: str
    reader: Reader | None = None


_inside: ContextVar[ReadScope | None] = ContextVar("everturn_tenant", default=None)


@contextmanager
def restrict_to_tenant(tenant: str, reader: Reader | None = None) -> Generator[None]:
    """Restrict reads to one tenant, and to what one reader may see of it, in this task and those it starts meanwhile.

    Nested blocks cannot see more.

    Raises:
        ValueError: the block is nested in another tenant's, or in another reader's.
    """
    outer = _inside.get()
    if outer is not None:
        if outer.tenant != tenant:
            raise ValueError("this connection is limited to another tenant")
        if reader is None:
            reader = outer.reader
        elif outer.reader is not None and outer.reader.user != reader.user:
            raise ValueError("this connection is limited to another reader")
    # Without the time: the database has a clock, and connections are reused for the same scope.
    token = _inside.set(ReadScope(tenant, None if reader is None else replace(reader, now=0.0)))
    try:
        yield
    finally:
        _inside.reset(token)


def current_scope() -> ReadScope | None:
    """Return what reads are restricted to; None: they are not restricted."""
    return _inside.get()


def current_tenant() -> str | None:
    """Return the tenant that reads are restricted to; None: they are not restricted."""
    scope = _inside.get()
    return None if scope is None else scope.tenant


ROLE_LOCK = "everturn.walls"

TABLES = (
    *(
        "sessions",
        "inbox",
        "events",
        "event_keys",
        "turns",
        "turn_snapshots",
        "messages",
        "gates",
        "grants",
        "usage",
        "usage_days",
        "files",
        "mentions",
        "lookup",
    ),
    *("tenants", "users", "credentials", "audit", "marks", "memory_files", "memory_writes"),
    *("schedules", "webhooks", "webhook_deliveries", "settings"),
    *("session_shares", "temporary_sessions", "user_records", "invitations"),
    *("blobs", "chunks"),  # without a tenant: a reader who knows a blob's hash has the blob, or a reference to it
)

_OWNER = """
SELECT pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = 'sessions'
"""
# The role must be able to read and must not be the owner, whom policies do not restrict; nor a role that bypasses them.
_ROLE_STATUS = """
SELECT pg_has_role(current_user, r.oid, 'MEMBER')
    AND has_schema_privilege(r.oid, current_schema(), 'USAGE')
    AND has_function_privilege(r.oid, 'everturn_found(text, bigint)', 'EXECUTE')
    AND has_function_privilege(r.oid, 'everturn_newest(text, bigint, bigint)', 'EXECUTE')
    AND has_function_privilege(r.oid, 'everturn_is_readable(text)', 'EXECUTE')
    AND bool_and(has_table_privilege(r.oid, t.name, 'SELECT')),
    r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, $2, 'USAGE')
FROM pg_catalog.pg_roles r CROSS JOIN unnest($3::text[]) AS t(name) WHERE r.rolname = $1
GROUP BY r.oid, r.rolsuper, r.rolbypassrls
"""


async def ensure_tenant_role(connection: Connection) -> str:
    """Ensure the role that reads for one tenant; return its name, or "" if it cannot be created."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs] - a store in a file needs none of it

    owner = await connection.fetchval(_OWNER)
    role = tenant_role(owner)
    status = await _role_status(connection, role, owner)
    if status is None or not status[0]:
        try:
            await _create_role(connection, role, exists=status is not None)
            status = await _role_status(connection, role, owner)
        except asyncpg.InsufficientPrivilegeError as error:
            log.warning(
                "row-level security is off, and only queries separate tenants: the role %s does not exist and "
                "cannot be created (%s); create it as docs/deploy/authentication.md shows, or allow %s to create "
                "roles",
                role,
                error,
                owner,
            )
            return ""
    if status is None or not status[0] or status[1]:
        log.warning(
            "row-level security is off, and only queries separate tenants: it does not apply to the role %s", role
        )
        return ""
    return role


def tenant_role(owner: str) -> str:
    """Return the role that reads this owner's tables for one tenant. PostgreSQL names have at most 63 bytes."""
    return f"everturn_tenant_{owner}".encode()[:63].decode(errors="ignore")


async def _role_status(connection: Connection, role: str, owner: str) -> tuple[bool, bool] | None:
    row = await connection.fetchrow(_ROLE_STATUS, role, owner, list(TABLES))
    return None if row is None else (bool(row[0]), bool(row[1]))


async def _create_role(connection: Connection, role: str, exists: bool) -> None:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    name = _quoted(role)
    async with connection.transaction():
        # Roles belong to the whole server: processes that create the same one for other schemas wait here.
        await connection.execute(f"SELECT pg_advisory_xact_lock(hashtextextended('{ROLE_LOCK}', 0))")
        if not exists and not await connection.fetchval("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $1", role):
            try:
                async with connection.transaction():
                    await connection.execute(f"CREATE ROLE {name} NOLOGIN NOINHERIT")
            except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
                pass  # the lock is of this database; a process in another one was faster
        if not await connection.fetchval("SELECT pg_has_role(current_user, $1, 'MEMBER')", role):
            await connection.execute(f"GRANT {name} TO CURRENT_USER")
        schema = _quoted(await connection.fetchval("SELECT current_schema()"))
        await connection.execute(
            f"GRANT USAGE ON SCHEMA {schema} TO {name}; GRANT SELECT ON {', '.join(TABLES)} TO {name}; "
            "GRANT EXECUTE ON FUNCTION everturn_found(text, bigint), everturn_newest(text, bigint, bigint), "
            f"everturn_is_readable(text) TO {name}"
        )


def set_scope_sql(role: str, scope: ReadScope | None) -> str:
    """Return the SQL that makes a connection read as a tenant or a reader of it; None: as the login role."""
    if scope is None:
        return "RESET ROLE; RESET everturn.tenant; RESET everturn.viewer; RESET everturn.reader"
    # The role first: should a later statement fail, no rows are visible.
    set_role = f"SET ROLE {_quoted(role)}; " if role else ""
    reader = scope.reader
    # A prefix, so that the setting of a reader is never empty: empty means that there is none.
    user, text = ("", "") if reader is None else (f"u:{reader.user}", reader.as_json())
    settings = (("tenant", scope.tenant), ("reader", text), ("viewer", user))
    return set_role + "; ".join(f"SET everturn.{name} = {_literal(value)}" for name, value in settings)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"
