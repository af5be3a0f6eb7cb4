"""A second lock between tenants, on PostgreSQL: who reads for one tenant cannot be given the rows of another.

Every query names its tenant or its session already. Should one forget to, the database itself holds back what is not the
tenant's: inside `within(tenant)` reads are done by a role that does not own the tables, and row-level security shows it
the rows of the tenant that is set in its connection, and none when none is set. Whoever owns the tables is not held back:
workers see to the sessions of everybody, and what is written was checked at the door.

The role is named after the owner, `everturn_tenant_{owner}`: it may read what that one owns, and nobody else is a member
of it. It is made by whoever starts first and may make roles; an operator can make it beforehand. Where there is none,
reads are held back by their queries alone, and a warning says so.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

# asyncpg has no types of its own that a strict reader could use.
Connection: TypeAlias = Any

log = logging.getLogger(__name__)

_inside: ContextVar[str | None] = ContextVar("everturn_tenant", default=None)


@contextmanager
def within(tenant: str) -> Generator[None]:
    """Let reads see one tenant, in this task and those it starts meanwhile; whatever is inside it cannot see more.

    Raises:
        ValueError: it stands inside another tenant's.
    """
    if _inside.get() not in (None, tenant):
        raise ValueError("this is inside the walls of another tenant")
    token = _inside.set(tenant)
    try:
        yield
    finally:
        _inside.reset(token)


def inside() -> str | None:
    """The tenant whose rows a read may see; None: it is not held back."""
    return _inside.get()


ALONE = "everturn.walls"

TABLES = (
    *(
        "sessions",
        "inbox",
        "events",
        "turns",
        "messages",
        "gates",
        "grants",
        "usage",
        "usage_days",
        "files",
        "mentions",
        "lookup",
    ),
    *("tenants", "users", "credentials", "audit", "marks"),
    *("blobs", "chunks"),  # which are nobody's: who knows the hash of one has it, or was shown it by what mentions it
)

_OWNER = """
SELECT pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = 'sessions'
"""
# It has to be able to read and must not own: an owner is held back by nothing. Nor may it be one that walls do not stop.
_STANDS = """
SELECT pg_has_role(current_user, r.oid, 'MEMBER')
    AND has_schema_privilege(r.oid, current_schema(), 'USAGE')
    AND has_function_privilege(r.oid, 'everturn_found(text, bigint)', 'EXECUTE')
    AND bool_and(has_table_privilege(r.oid, t.name, 'SELECT')),
    r.rolsuper OR r.rolbypassrls OR pg_has_role(r.oid, $2, 'USAGE')
FROM pg_catalog.pg_roles r CROSS JOIN unnest($3::text[]) AS t(name) WHERE r.rolname = $1
GROUP BY r.oid, r.rolsuper, r.rolbypassrls
"""


async def raise_walls(connection: Connection) -> str:
    """See to the role that reads for one tenant; its name, or "" where there is none to be had."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs] - a store in a file needs none of it

    owner = await connection.fetchval(_OWNER)
    role = role_of(owner)
    stands = await _stands(connection, role, owner)
    if stands is None or not stands[0]:
        try:
            await _make(connection, role, is_there=stands is not None)
            stands = await _stands(connection, role, owner)
        except asyncpg.InsufficientPrivilegeError as error:
            log.warning(
                "tenants are kept apart by queries alone: the role %s, which row-level security needs, is not there and "
                "cannot be made (%s); make it as the guide about the server says, or let %s create roles",
                role,
                error,
                owner,
            )
            return ""
    if stands is None or not stands[0] or stands[1]:
        log.warning("tenants are kept apart by queries alone: walls do not stop the role %s", role)
        return ""
    return role


def role_of(owner: str) -> str:
    """The role that reads what this one owns, for one tenant at a time. Names of PostgreSQL are at most 63 bytes."""
    return f"everturn_tenant_{owner}".encode()[:63].decode(errors="ignore")


async def _stands(connection: Connection, role: str, owner: str) -> tuple[bool, bool] | None:
    row = await connection.fetchrow(_STANDS, role, owner, list(TABLES))
    return None if row is None else (bool(row[0]), bool(row[1]))


async def _make(connection: Connection, role: str, is_there: bool) -> None:
    import asyncpg  # pyright: ignore[reportMissingTypeStubs]

    name = _quoted(role)
    async with connection.transaction():
        # Roles are of the whole server: those who make the same one for other schemas and databases wait here.
        await connection.execute(f"SELECT pg_advisory_xact_lock(hashtextextended('{ALONE}', 0))")
        if not is_there and not await connection.fetchval("SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = $1", role):
            try:
                async with connection.transaction():
                    await connection.execute(f"CREATE ROLE {name} NOLOGIN NOINHERIT")
            except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
                pass  # the lock is of this database, and somebody was quicker in another
        if not await connection.fetchval("SELECT pg_has_role(current_user, $1, 'MEMBER')", role):
            await connection.execute(f"GRANT {name} TO CURRENT_USER")
        schema = _quoted(await connection.fetchval("SELECT current_schema()"))
        await connection.execute(
            f"GRANT USAGE ON SCHEMA {schema} TO {name}; GRANT SELECT ON {', '.join(TABLES)} TO {name}; "
            f"GRANT EXECUTE ON FUNCTION everturn_found(text, bigint) TO {name}"
        )


def entering(role: str, tenant: str | None) -> str:
    """What to say to a connection so that it reads as a tenant; None: as whoever logged in."""
    if tenant is None:
        return "RESET ROLE; RESET everturn.tenant"
    # Its own rights first: should the second fail, nothing is seen.
    become = f"SET ROLE {_quoted(role)}; " if role else ""
    return f"{become}SET everturn.tenant = {_literal(tenant)}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "''")
    return f"E'{escaped}'"
