"""Grants: remembered answers that are valid in a session, or in all sessions of a tenant.

A row has the session in which it is valid (`session`, empty for all) and the session whose log made it (`origin`). It
can be revoked from both; so both are part of the condition, and a copy of a session does not remove the original's
grants.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from everturn.core.commands import Revoke
from everturn.core.gates import Grant
from everturn.errors import UnknownGrant
from everturn.stores.sql.database import Operation, Query, Statement
from everturn.stores.sql.queries import session_row

VERSION = 1

_ADD = Statement(
    "add grants",
    """INSERT INTO grants (id, origin, tenant, session, created, expires, body) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id, origin) DO NOTHING""",
    """INSERT INTO grants (id, origin, tenant, session, created, expires, body)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[], $6::float8[], $7::bytea[])
    ON CONFLICT (id, origin) DO NOTHING""",
)
_REMOVE = Statement(
    "remove grants",
    """DELETE FROM grants WHERE id = ?1 AND tenant = ?2 AND (origin = ?3 OR session IN (?3, ''))""",
    """DELETE FROM grants g USING unnest($1::text[], $2::text[], $3::text[]) AS p(id, tenant, session)
    WHERE g.id = p.id AND g.tenant = p.tenant AND (g.origin = p.session OR g.session IN (p.session, ''))""",
)
# Of two concurrent revocations, one finds no row.
_REVOKE = Statement(
    "revoke",
    """DELETE FROM grants WHERE id = ?1 AND tenant = ?2 AND (origin = ?3 OR session IN (?3, '')) RETURNING id""",
    """DELETE FROM grants g USING unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY
        AS p(id, tenant, session, n)
    WHERE g.id = p.id AND g.tenant = p.tenant AND (g.origin = p.session OR g.session IN (p.session, ''))
    RETURNING p.n, g.id""",
    returns=True,
)
_VALID = Statement(
    "grants that hold",
    """SELECT body, id, origin FROM grants WHERE tenant = ?1 AND session IN (?2, '') AND (expires = 0 OR expires > ?3)
    ORDER BY created, id""",
    """SELECT p.n, g.body, g.id, g.origin FROM unnest($1::text[], $2::text[], $3::float8[]) WITH ORDINALITY AS p(tenant, session, now, n)
    JOIN grants g ON g.tenant = p.tenant AND g.session IN (p.session, '') AND (g.expires = 0 OR g.expires > p.now)
    ORDER BY p.n, g.created, g.id""",
    returns=True,
)


_OF_TENANT = Statement(
    "grants of a tenant",
    """SELECT origin, body, id FROM grants WHERE tenant = ?1 AND (expires = 0 OR expires > ?2)
    ORDER BY created DESC, id, origin LIMIT ?3""",
    """SELECT p.n, g.origin, g.body, g.id FROM unnest($1::text[], $2::float8[], $3::int8[]) WITH ORDINALITY
        AS p(tenant, now, most, n)
    CROSS JOIN LATERAL (
        SELECT * FROM grants WHERE tenant = p.tenant AND (expires = 0 OR expires > p.now)
        ORDER BY created DESC, id, origin LIMIT p.most
    ) g ORDER BY p.n, g.created DESC, g.id, g.origin""",
    returns=True,
)


class _StoredGrant(Struct, frozen=True):
    v: int
    grant: Grant


_decode = msgspec.json.Decoder(_StoredGrant).decode


def grants(session: str, now: float) -> Operation[list[Grant]]:
    """Return the grants that are valid in a session at a time, oldest first."""
    row = yield from session_row(session)
    rows = yield Query(_VALID, (row[6], session, now))
    return [_decode(body).grant for body, *_ in rows]


def tenant_grants(tenant: str, now: float, limit: int) -> Operation[list[tuple[str, Grant]]]:
    """Return a tenant's valid grants with the sessions they were made in, newest first."""
    rows = yield Query(_OF_TENANT, (tenant, now, limit))
    return [(origin, _decode(body).grant) for origin, body, _ in rows]


def add(session: str, tenant: str, made: Iterable[Grant]) -> Operation[None]:
    """Store grants that were made in a session."""
    rows: list[Sequence[object]] = []
    for grant in made:
        body = msgspec.json.encode(_StoredGrant(VERSION, grant))
        rows.append((grant.id, session, tenant, grant.session, grant.at, grant.expires, body))
    yield Query(_ADD, rows, many=True)


def remove(session: str, tenant: str, revoked: Iterable[str]) -> Operation[None]:
    """Remove the grants that the log of a session says were revoked."""
    yield Query(_REMOVE, [(grant, tenant, session) for grant in revoked], many=True)


def revoke(command: Revoke) -> Operation[None]:
    """Revoke a grant at admission, so that the caller need not wait for a driver.

    Raises:
        UnknownGrant: no grant of this name was made in this session or is valid in it, or it was revoked before.
    """
    name = command.grant
    # PostgreSQL rejects NUL in a parameter.
    rows = [] if "\0" in name else (yield Query(_REVOKE, (name, command.tenant, command.session)))
    if not rows:
        raise UnknownGrant(f"there is no grant {command.grant!r} in this session")
