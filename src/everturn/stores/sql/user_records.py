"""SQL `UserRecords`: a row per user with password, budget and removal, a row per invitation, and searches of the audit log."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from everturn.core.tenants.accounts import AuditRecord
from everturn.core.tenants.user_records import AuditFilter, Invitation, UserBudget, UserRecord
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement

_RECORD = "r.whose, r.password, r.changed, r.budget, r.removed"
_ONE = Statement(
    "user record",
    f"SELECT {_RECORD} FROM user_records r WHERE r.tenant = ? AND r.whose = ?",
    f"""SELECT p.n, {_RECORD} FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, whose, n)
    JOIN user_records r ON r.tenant = p.tenant AND r.whose = p.whose""",
    returns=True,
)
_ALL = Statement(
    "user records",
    f"SELECT {_RECORD} FROM user_records r WHERE r.tenant = ?",
    f"""SELECT p.n, {_RECORD} FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    JOIN user_records r ON r.tenant = p.tenant""",
    returns=True,
)
_PASSWORD = Statement(
    "set password",
    """INSERT INTO user_records (tenant, whose, password, changed) VALUES (?, ?, ?, ?)
    ON CONFLICT (tenant, whose) DO UPDATE SET password = excluded.password, changed = excluded.changed""",
    """INSERT INTO user_records (tenant, whose, password, changed)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[])
    ON CONFLICT (tenant, whose) DO UPDATE SET password = excluded.password, changed = excluded.changed""",
)
_BUDGET = Statement(
    "set user budget",
    """INSERT INTO user_records (tenant, whose, budget) VALUES (?, ?, ?)
    ON CONFLICT (tenant, whose) DO UPDATE SET budget = excluded.budget""",
    """INSERT INTO user_records (tenant, whose, budget) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])
    ON CONFLICT (tenant, whose) DO UPDATE SET budget = excluded.budget""",
)
_REMOVE = Statement(
    "remove user",
    """INSERT INTO user_records (tenant, whose, removed) VALUES (?, ?, ?) ON CONFLICT (tenant, whose)
    DO UPDATE SET password = '', changed = 0, budget = '', removed = excluded.removed""",
    """INSERT INTO user_records (tenant, whose, removed) SELECT * FROM unnest($1::text[], $2::text[], $3::float8[])
    ON CONFLICT (tenant, whose) DO UPDATE SET password = '', changed = 0, budget = '', removed = excluded.removed""",
)
_REVOKE = Statement(
    "revoke credentials of user",
    """UPDATE credentials SET revoked = ?3 WHERE tenant = ?1 AND whose = ?2 AND revoked = 0 AND id != ?5
        AND (?4 OR kind != 'key') RETURNING id""",
    """UPDATE credentials c SET revoked = p.now FROM unnest($1::text[], $2::text[], $3::float8[], $4::boolean[],
        $5::text[]) WITH ORDINALITY AS p(tenant, whose, now, with_keys, but, n)
    WHERE c.tenant = p.tenant AND c.whose = p.whose AND c.revoked = 0 AND c.id != p.but
        AND (p.with_keys OR c.kind != 'key') RETURNING p.n, c.id""",
    returns=True,
)
_INVITATION = """i.id, i.tenant, i.kind, i.whose, i.hash, i.name, i.role, i.creator, i.created, i.expires, i.used,
    i.revoked"""
_ADD = Statement(
    "add invitation",
    f"INSERT INTO invitations ({_INVITATION.replace('i.', '')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
    "ON CONFLICT DO NOTHING",
    f"""INSERT INTO invitations ({_INVITATION.replace("i.", "")}) SELECT * FROM unnest($1::text[], $2::text[], $3::text[],
        $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::float8[], $10::float8[], $11::float8[],
        $12::float8[]) ON CONFLICT DO NOTHING""",
)
_INVITATIONS = Statement(
    "invitations",
    f"SELECT {_INVITATION} FROM invitations i WHERE i.tenant = ?",
    f"""SELECT p.n, {_INVITATION} FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    JOIN invitations i ON i.tenant = p.tenant""",
    returns=True,
)
_FIND = Statement(
    "find invitation",
    f"SELECT {_INVITATION} FROM invitations i WHERE i.hash = ?",
    f"""SELECT p.n, {_INVITATION} FROM unnest($1::text[]) WITH ORDINALITY AS p(hash, n)
    JOIN invitations i ON i.hash = p.hash""",
    returns=True,
)
_USE = Statement(
    "use invitation",
    "UPDATE invitations SET used = ?2 WHERE hash = ?1 AND used = 0 AND revoked = 0 AND expires > ?2 RETURNING id",
    """UPDATE invitations i SET used = p.now FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS p(hash, now, n)
    WHERE i.hash = p.hash AND i.used = 0 AND i.revoked = 0 AND i.expires > p.now RETURNING p.n, i.id""",
    returns=True,
)
_REVOKE_INVITATION = Statement(
    "revoke invitation",
    """UPDATE invitations SET revoked = ?3 WHERE tenant = ?1 AND id = ?2 AND used = 0 AND revoked = 0 AND expires > ?3
    RETURNING id""",
    """UPDATE invitations i SET revoked = p.now FROM unnest($1::text[], $2::text[], $3::float8[]) WITH ORDINALITY
        AS p(tenant, id, now, n)
    WHERE i.tenant = p.tenant AND i.id = p.id AND i.used = 0 AND i.revoked = 0 AND i.expires > p.now
    RETURNING p.n, i.id""",
    returns=True,
)
_NOTE_USE = Statement(
    "note use",
    "UPDATE credentials SET used = ?2 WHERE id = ?1 AND used < ?2",
    """UPDATE credentials c SET used = p.at FROM unnest($1::text[], $2::float8[]) AS p(id, at)
    WHERE c.id = p.id AND c.used < p.at""",
)
_LAST_USES = Statement(
    "last uses",
    "SELECT c.id, c.used FROM credentials c WHERE c.tenant = ? AND c.used > 0",
    """SELECT p.n, c.id, c.used FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    JOIN credentials c ON c.tenant = p.tenant AND c.used > 0""",
    returns=True,
)
_AUDIT = "a.tenant, a.at, a.who, a.credential, a.did, a.subject, a.detail, a.n, a.hash"
# Backwards along the key of the table, (tenant, n), until the page is full.
_SEARCH = Statement(
    "search audit",
    f"""SELECT {_AUDIT} FROM audit a WHERE a.tenant = ?1 AND a.n < ?2 AND (?3 = '' OR a.who = ?3)
        AND (?4 = '' OR a.did = ?4 OR substr(a.did, 1, length(?4) + 1) = ?4 || '.') AND (?5 = '' OR a.subject = ?5)
        AND a.at >= ?6 AND a.at < ?7 ORDER BY a.n DESC LIMIT ?8""",
    f"""SELECT p.n, {_AUDIT} FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::float8[],
        $7::float8[], $8::bigint[]) WITH ORDINALITY AS p(tenant, before, who, did, subject, since, until, most, n)
    CROSS JOIN LATERAL (SELECT * FROM audit a WHERE a.tenant = p.tenant AND a.n < p.before AND (p.who = '' OR a.who = p.who)
        AND (p.did = '' OR a.did = p.did OR starts_with(a.did, p.did || '.')) AND (p.subject = '' OR a.subject = p.subject)
        AND a.at >= p.since AND a.at < p.until ORDER BY a.n DESC LIMIT p.most) a ORDER BY p.n, a.n DESC""",
    returns=True,
)
LAST_NUMBER = 2**62
LATEST_TIME = 1e15  # a time after every other
_encode, _decode = msgspec.json.Encoder().encode, msgspec.json.Decoder(UserBudget).decode


class SqlUserRecords:
    """Records of users in the database of the sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, tenant: str, user: str) -> UserRecord:
        """Return the record of a user."""
        rows = await self._read(_ONE, tenant, user)
        return _record(rows[0]) if rows else UserRecord(user)

    async def all_records(self, tenant: str) -> dict[str, UserRecord]:
        """Return the records of a tenant."""
        records = sorted(map(_record, await self._read(_ALL, tenant)), key=lambda record: record.user)
        return {record.user: record for record in records}

    async def set_password(self, tenant: str, user: str, hash: str, now: float) -> None:
        """Store the hash of a password."""
        await self._put(_PASSWORD, tenant, user, hash, now)

    async def set_budget(self, tenant: str, user: str, budget: UserBudget) -> None:
        """Store the budget of a user."""
        await self._put(_BUDGET, tenant, user, "" if budget == UserBudget() else _encode(budget).decode())

    async def remove_user(self, tenant: str, user: str, now: float) -> None:
        """Mark a user as removed."""
        await self._put(_REMOVE, tenant, user, now)

    async def revoke_credentials(self, tenant: str, user: str, now: float, *, with_keys: bool, but: str = "") -> int:
        """Revoke the logins of a user."""
        values = (tenant, user, now, with_keys, but)
        return len(await self._database.write(lambda _: _rows(_REVOKE, *values), _queue(tenant)))

    async def add_invitation(self, invitation: Invitation) -> None:
        """Store a new invitation."""
        i = invitation
        names = (i.id, i.tenant, i.kind, i.user, i.hash, i.name, i.role, i.by)
        await self._put(_ADD, *names, i.created, i.expires, i.used, i.revoked)

    async def invitations(self, tenant: str) -> list[Invitation]:
        """Return the invitations of a tenant, newest first."""
        found = [Invitation(*row) for row in await self._read(_INVITATIONS, tenant)]
        return sorted(found, key=lambda row: (-row.created, row.id))

    async def find_invitation(self, hash: str) -> Invitation | None:
        """Return the invitation with this hash."""
        rows = await self._read(_FIND, hash)
        return Invitation(*rows[0]) if rows else None

    async def use_invitation(self, hash: str, now: float) -> Invitation | None:
        """Use an invitation up; None also when it is unknown whether this attempt did."""
        if not await self._database.write(lambda _: _rows(_USE, hash, now), _queue(hash)):
            return None
        return await self.find_invitation(hash)

    async def revoke_invitation(self, tenant: str, invitation: str, now: float) -> bool:
        """Revoke an invitation."""
        if "\0" in invitation:  # PostgreSQL rejects NUL in a parameter
            return False
        return bool(
            await self._database.write(lambda _: _rows(_REVOKE_INVITATION, tenant, invitation, now), _queue(tenant))
        )

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        """Store when credentials were last used."""
        if uses:
            await self._database.write(lambda _: _put(_NOTE_USE, sorted(uses.items())), _queue("uses"))

    async def last_uses(self, tenant: str) -> dict[str, float]:
        """Return when the credentials of a tenant were last used."""
        return {row[0]: row[1] for row in await self._read(_LAST_USES, tenant)}

    async def search_audit(
        self, tenant: str, where: AuditFilter, before: int = 0, limit: int = 100
    ) -> list[AuditRecord]:
        """Return the matching audit records, newest first."""
        until = where.until or LATEST_TIME
        values = (before or LAST_NUMBER, where.by, where.did, where.on, where.since, until, max(limit, 0))
        return [AuditRecord(*row) for row in await self._read(_SEARCH, tenant, *values)]

    async def _read(self, statement: Statement, *parameters: object) -> list[Row]:
        if any(isinstance(value, str) and "\0" in value for value in parameters):
            return []
        return await self._database.read(lambda: _rows(statement, *parameters))

    async def _put(self, statement: Statement, *row: object) -> None:
        await self._database.write(lambda _: _put(statement, [row]), _queue(str(row[0])))


def _queue(subject: str) -> str:
    return f"users {subject}"


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))


def _put(statement: Statement, rows: list[tuple[object, ...]]) -> Operation[None]:
    yield Query(statement, rows, many=True)


def _record(row: Row) -> UserRecord:
    user, password, changed, budget, removed = row
    return UserRecord(user, password, changed, _decode(budget) if budget else UserBudget(), removed)
