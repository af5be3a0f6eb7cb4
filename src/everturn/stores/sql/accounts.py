"""SQL `Accounts`: tenants, users, credentials and the audit log in the database of the sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from everturn.core.tenants.accounts import (
    AuditRecord,
    ConversationFingerprint,
    Credential,
    KnownCredential,
    Tenant,
    User,
    append_to_chain,
    is_last_owner,
)
from everturn.core.tenants.signing_keys import SigningKeys
from everturn.errors import ConfigError, Forbidden, KeyConflict
from everturn.stores.accounts import CREDENTIAL_TAKEN, LAST_OWNER
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement
from everturn.stores.sql.user_records import SqlUserRecords

T = TypeVar("T")

ACCOUNTS_QUEUE = "accounts"
"""Queue name prefix for writes that belong to no session; the subject of the write follows it."""

ENCRYPTION_MARKER = "encryption"
"""Name of the secret that has the id of the keyring which a store is encrypted with."""

RETRY_WINDOW = 1000
"""Number of last audit records searched for one that an earlier attempt may have written."""

_PUT_TENANT = Statement(
    "put tenant",
    """INSERT INTO tenants (id, name, is_active, created) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, is_active = excluded.is_active, created = excluded.created""",
    """INSERT INTO tenants (id, name, is_active, created)
    SELECT * FROM unnest($1::text[], $2::text[], $3::boolean[], $4::float8[])
    ON CONFLICT (id) DO UPDATE SET name = excluded.name, is_active = excluded.is_active, created = excluded.created""",
)
_TENANT = "{0}.id, {0}.name, {0}.is_active, {0}.created"
_TENANTS = Statement(
    "tenants",
    f"SELECT {_TENANT.format('t')} FROM tenants t",
    f"SELECT 1, {_TENANT.format('t')} FROM tenants t",
    returns=True,
)
_PUT_USER = Statement(
    "put user",
    """INSERT INTO users (tenant, id, name, role, is_active, created, origin) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name, role = excluded.role,
        is_active = excluded.is_active, created = excluded.created, origin = excluded.origin""",
    """INSERT INTO users (tenant, id, name, role, is_active, created, origin)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::float8[], $7::text[])
    ON CONFLICT (tenant, id) DO UPDATE SET name = excluded.name, role = excluded.role,
        is_active = excluded.is_active, created = excluded.created, origin = excluded.origin""",
)
_ADD_USER = Statement(
    "add user",
    """INSERT INTO users (tenant, id, name, role, is_active, created, origin) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT DO NOTHING RETURNING id""",
    """WITH p AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::boolean[], $6::float8[],
        $7::text[]) WITH ORDINALITY AS p(tenant, id, name, role, is_active, created, origin, n)),
    made AS (INSERT INTO users (tenant, id, name, role, is_active, created, origin)
        SELECT tenant, id, name, role, is_active, created, origin FROM p ON CONFLICT DO NOTHING RETURNING tenant, id)
    SELECT p.n, p.id FROM p JOIN made ON made.tenant = p.tenant AND made.id = p.id""",
    returns=True,
)
_USER = "u.tenant, u.id, u.name, u.role, u.is_active, u.created, u.origin"
_USERS = Statement(
    "users",
    f"SELECT {_USER} FROM users u WHERE u.tenant = ?",
    f"""SELECT p.n, {_USER} FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    JOIN users u ON u.tenant = p.tenant""",
    returns=True,
)
_ONE_USER = Statement(
    "user",
    f"""SELECT {_USER}, {_TENANT.format("t")} FROM users u JOIN tenants t ON t.id = u.tenant
    WHERE u.tenant = ? AND u.id = ?""",
    f"""SELECT p.n, {_USER}, {_TENANT.format("t")} FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, id, n)
    JOIN users u ON u.tenant = p.tenant AND u.id = p.id JOIN tenants t ON t.id = u.tenant""",
    returns=True,
)
_CREDENTIAL = "c.id, c.tenant, c.whose, c.kind, c.hash, c.name, c.role, c.created, c.expires, c.revoked"
_COLUMNS = _CREDENTIAL.replace("c.", "")
_PUT_CREDENTIAL = Statement(
    "put credential",
    f"INSERT INTO credentials ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING RETURNING id",
    f"""WITH p AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[],
        $7::text[], $8::float8[], $9::float8[], $10::float8[]) WITH ORDINALITY AS p({_COLUMNS}, n)),
    made AS (INSERT INTO credentials ({_COLUMNS}) SELECT {_COLUMNS} FROM p ON CONFLICT DO NOTHING
        RETURNING tenant, id, hash)
    SELECT p.n, p.id FROM p JOIN made ON made.tenant = p.tenant AND made.id = p.id AND made.hash = p.hash""",
    returns=True,
)
_CREDENTIALS = Statement(
    "credentials",
    f"SELECT {_CREDENTIAL} FROM credentials c WHERE c.tenant = ?1 AND c.whose = coalesce(?2, c.whose)",
    f"""SELECT p.n, {_CREDENTIAL} FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, whose, n)
    JOIN credentials c ON c.tenant = p.tenant AND c.whose = coalesce(p.whose, c.whose)""",
    returns=True,
)
_WHOSE = "JOIN users u ON u.tenant = c.tenant AND u.id = c.whose JOIN tenants t ON t.id = c.tenant"
_KNOWN = f"{_CREDENTIAL}, {_USER}, {_TENANT.format('t')}"


def _known_by(column: str) -> Statement:
    return Statement(
        f"known by {column}",
        f"SELECT {_KNOWN} FROM credentials c {_WHOSE} WHERE c.{column} = ?",
        f"""SELECT p.n, {_KNOWN} FROM unnest($1::text[]) WITH ORDINALITY AS p(given, n)
        JOIN credentials c ON c.{column} = p.given {_WHOSE}""",
        returns=True,
    )


_BY_HASH, _BY_ID = _known_by("hash"), _known_by("id")
_STANDING = Statement(
    "standing",
    f"SELECT {_KNOWN} FROM credentials c {_WHOSE} WHERE c.id IN (SELECT value FROM json_each(?))",
    f"""SELECT p.n, {_KNOWN} FROM unnest($1::text[]) WITH ORDINALITY AS p(given, n)
    CROSS JOIN LATERAL json_array_elements_text(p.given::json) AS one(id) JOIN credentials c ON c.id = one.id {_WHOSE}""",
    returns=True,
)
# The condition is evaluated again after waiting for another transaction's row lock: so one of many succeeds.
_USE_LINK = Statement(
    "use link",
    """UPDATE credentials SET revoked = ?2 WHERE hash = ?1 AND kind = 'link' AND revoked = 0
        AND (expires = 0 OR expires > ?2) AND EXISTS (SELECT 1 FROM users u JOIN tenants t ON t.id = u.tenant
            WHERE u.tenant = credentials.tenant AND u.id = credentials.whose) RETURNING id""",
    """UPDATE credentials c SET revoked = p.now FROM unnest($1::text[], $2::float8[]) WITH ORDINALITY AS p(hash, now, n)
    WHERE c.hash = p.hash AND c.kind = 'link' AND c.revoked = 0 AND (c.expires = 0 OR c.expires > p.now)
        AND EXISTS (SELECT 1 FROM users u JOIN tenants t ON t.id = u.tenant WHERE u.tenant = c.tenant AND u.id = c.whose)
    RETURNING p.n, c.id""",
    returns=True,
)
_REVOKE = Statement(
    "revoke credential",
    "UPDATE credentials SET revoked = ?3 WHERE tenant = ?1 AND id = ?2 AND revoked = 0 RETURNING id",
    """UPDATE credentials c SET revoked = p.now FROM unnest($1::text[], $2::text[], $3::float8[]) WITH ORDINALITY
        AS p(tenant, id, now, n) WHERE c.tenant = p.tenant AND c.id = p.id AND c.revoked = 0 RETURNING p.n, c.id""",
    returns=True,
)
_SECRET = Statement(
    "secret",
    "SELECT value FROM secrets WHERE name = ?",
    """SELECT p.n, s.value FROM unnest($1::text[]) WITH ORDINALITY AS p(name, n) JOIN secrets s ON s.name = p.name""",
    returns=True,
)
_MAKE_SECRET = Statement(
    "make secret",
    "INSERT INTO secrets (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING",
    """INSERT INTO secrets (name, value) SELECT * FROM unnest($1::text[], $2::bytea[]) ON CONFLICT (name) DO NOTHING""",
)
# PostgreSQL: a writer of a tenant's audit log waits here for the current one, and then sees its record.
_CHAIN = Statement(
    "lock chain",
    "SELECT ?",
    """SELECT p.n, pg_advisory_xact_lock(hashtextextended('everturn.audit.' || current_schema() || '.' || p.tenant, 0))
    FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)""",
    returns=True,
)
_RECORD = "a.tenant, a.at, a.who, a.credential, a.did, a.subject, a.detail, a.n, a.hash"
_LAST = Statement(
    "last record",
    f"SELECT {_RECORD} FROM audit a WHERE a.tenant = ? ORDER BY a.n DESC LIMIT 1",
    f"""SELECT p.n, {_RECORD} FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    CROSS JOIN LATERAL (SELECT * FROM audit a WHERE a.tenant = p.tenant ORDER BY a.n DESC LIMIT 1) a""",
    returns=True,
)
_NOTE = Statement(
    "note",
    f"INSERT INTO audit ({_RECORD.replace('a.', '')}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    f"""INSERT INTO audit ({_RECORD.replace("a.", "")}) SELECT * FROM unnest($1::text[], $2::float8[], $3::text[],
        $4::text[], $5::text[], $6::text[], $7::text[], $8::bigint[], $9::text[])""",
)
# Runs when a token has another role than the row, which is rare: it scans the tenant's own records backwards.
_LAST_NOTE = Statement(
    "last note",
    f"SELECT {_RECORD} FROM audit a WHERE a.tenant = ? AND a.subject = ? AND a.did = ? ORDER BY a.n DESC LIMIT 1",
    f"""SELECT p.n, {_RECORD} FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS p(tenant, subject, did, n)
    CROSS JOIN LATERAL (SELECT * FROM audit a WHERE a.tenant = p.tenant AND a.subject = p.subject AND a.did = p.did
        ORDER BY a.n DESC LIMIT 1) a""",
    returns=True,
)
_AUDIT = Statement(
    "audit",
    f"SELECT {_RECORD} FROM audit a WHERE a.tenant = ? AND a.n > ? ORDER BY a.n LIMIT ?",
    f"""SELECT p.n, {_RECORD} FROM unnest($1::text[], $2::bigint[], $3::bigint[]) WITH ORDINALITY
        AS p(tenant, after, most, n)
    CROSS JOIN LATERAL (SELECT * FROM audit a WHERE a.tenant = p.tenant AND a.n > p.after ORDER BY a.n LIMIT p.most) a
    ORDER BY p.n, a.n""",
    returns=True,
)
_PUT_MARK = Statement(
    "put mark",
    """INSERT INTO marks (tenant, hash, session, message, at) VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant, hash)
    DO UPDATE SET session = excluded.session, message = excluded.message, at = excluded.at""",
    """INSERT INTO marks (tenant, hash, session, message, at)
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::float8[]) ON CONFLICT (tenant, hash)
    DO UPDATE SET session = excluded.session, message = excluded.message, at = excluded.at""",
)
_MARK = Statement(
    "mark",
    "SELECT session, message FROM marks WHERE tenant = ? AND hash = ?",
    """SELECT p.n, m.session, m.message FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS p(tenant, hash, n)
    JOIN marks m ON m.tenant = p.tenant AND m.hash = p.hash""",
    returns=True,
)


class SqlAccounts:
    """Tenants, users, credentials and the audit log in a SQL database."""

    def __init__(self, database: Database, keys: SigningKeys) -> None:
        self._database, self._keys = database, keys

    @property
    def keys(self) -> SigningKeys:
        """The keys that tokens are signed with."""
        return self._keys

    @property
    def records(self) -> SqlUserRecords:
        """Passwords, budgets and invitations of users."""
        return SqlUserRecords(self._database)

    def use_database(self, database: Database) -> None:
        """Read and write through another database, such as one that encrypts."""
        self._database = database

    async def put_tenant(self, tenant: Tenant) -> None:
        """Create or replace a tenant."""
        row = (tenant.id, tenant.name, tenant.is_active, tenant.created)
        await self._write(lambda _: _put(_PUT_TENANT, row), tenant.id, row)

    async def tenants(self) -> list[Tenant]:
        """Return all tenants, ordered by id."""
        rows = await self._database.read(lambda: _rows(_TENANTS))
        return sorted((_tenant(row) for row in rows), key=lambda tenant: tenant.id)

    async def put_user(self, user: User, *, keeps_owner: bool = False) -> None:
        """Create or replace a user; with `keeps_owner`, never so that the tenant loses its last owner."""
        row = _user_row(user)
        await self._write(lambda _: _put_user(user) if keeps_owner else _put(_PUT_USER, row), user.tenant, row)

    async def add_user(self, user: User) -> bool:
        """Create a user unless the id is taken; False also when it is unknown whether this call created it."""
        row = _user_row(user)
        return await self._write(lambda _: _add_user(row), user.tenant, row)

    async def users(self, tenant: str) -> list[User]:
        """Return the users of a tenant, ordered by id."""
        rows = await self._read(_USERS, tenant)
        return sorted((_user(row) for row in rows), key=lambda user: user.id)

    async def user(self, tenant: str, user: str) -> tuple[User, Tenant] | None:
        """Return a user with the user's tenant."""
        rows = await self._read(_ONE_USER, tenant, user)
        return (_user(rows[0][:7]), _tenant(rows[0][7:])) if rows else None

    async def put_credential(self, credential: Credential) -> None:
        """Store a new credential."""
        c = credential
        row = (c.id, c.tenant, c.user, c.kind, c.hash, c.name, c.role, c.created, c.expires, c.revoked)
        await self._write(lambda again: _put_credential(row, again), c.tenant, row)

    async def find_credential(self, hash: str) -> KnownCredential | None:
        """Return the credential with this hash, with its user and tenant, whether it is still valid or not."""
        rows = await self._read(_BY_HASH, hash)
        return _known(rows[0]) if rows else None

    async def credentials(self, tenant: str, user: str | None = None) -> list[Credential]:
        """Return the credentials of a tenant, or of one of its users, oldest first."""
        rows = await self._read(_CREDENTIALS, tenant, user)
        return sorted((_credential(row) for row in rows), key=lambda credential: (credential.created, credential.id))

    async def use_link(self, hash: str, now: float) -> KnownCredential | None:
        """Consume a sign-in link: of two attempts one succeeds; None also when it is unknown whether this one did."""
        return await self._write(lambda _: _use_link(hash, now), hash) if _is_storable(hash) else None

    async def revoke(self, tenant: str, credential: str, now: float) -> bool:
        """Revoke a credential; False when the tenant has no active credential with this id."""
        if not _is_storable(tenant, credential):
            return False
        return await self._write(lambda again: _revoke(tenant, credential, now, again), tenant)

    async def active_credentials(self, credentials: Collection[str]) -> dict[str, KnownCredential]:
        """Return those of the credentials that exist, in their current state."""
        names = [name for name in credentials if _is_storable(name)]
        if not names:
            return {}
        rows = await self._database.read(lambda: _rows(_STANDING, msgspec.json.encode(names).decode()))
        return {known.credential.id: known for known in map(_known, rows)}

    async def secret(self, name: str) -> bytes:
        """Return the 32 random bytes of this name; the first call creates them."""
        rows = await self._read(_SECRET, name)
        if rows:
            return bytes(rows[0][0])
        value = os.urandom(32)
        return await self._write(lambda _: create_secret(name, value), name, (name,))

    async def has_secret(self, name: str) -> bool:
        """Return whether there is a secret of this name, without creating it."""
        return bool(await self._read(_SECRET, name))

    async def append_audit(self, record: AuditRecord) -> AuditRecord:
        """Append a record to the tenant's audit log."""
        texts = (record.tenant, record.by, record.credential, record.did, record.on, record.detail)
        return await self._write(lambda again: _note(record, again), f"audit {record.tenant}", texts)

    async def last_audit(self, tenant: str, on: str, did: Collection[str]) -> AuditRecord | None:
        """Return the last audit record with one of these actions on this subject."""
        rows = [row for action in sorted(did) for row in await self._read(_LAST_NOTE, tenant, on, action)]
        return max((AuditRecord(*row) for row in rows), key=lambda record: record.n, default=None)

    async def audit(self, tenant: str, after: int = 0, limit: int = 100) -> list[AuditRecord]:
        """Return audit records of a tenant, oldest first."""
        return [AuditRecord(*row) for row in await self._read(_AUDIT, tenant, after, max(limit, 0))]

    async def put_fingerprint(self, tenant: str, hash: str, mark: ConversationFingerprint, now: float) -> None:
        """Store the fingerprint of a conversation's end; the last one of a hash counts."""
        row = (tenant, hash, mark.session, mark.message, now)
        await self._write(lambda _: _put(_PUT_MARK, row), f"{tenant} {hash}", row)

    async def fingerprint(self, tenant: str, hash: str) -> ConversationFingerprint | None:
        """Return where the conversation with this hash ended."""
        rows = await self._read(_MARK, tenant, hash)
        return ConversationFingerprint(*rows[0]) if rows else None

    async def _read(self, statement: Statement, *parameters: object) -> list[Row]:
        """Return the rows; none for a name that no database could store."""
        return await self._database.read(lambda: _rows(statement, *parameters)) if _is_storable(*parameters) else []

    async def _write(self, make: Callable[[bool], Operation[T]], subject: str, texts: Sequence[object] = ()) -> T:
        if not _is_storable(*texts):
            raise ConfigError("a name or text contains a character that cannot be stored: NUL, or a lone surrogate")
        return await self._database.write(make, f"{ACCOUNTS_QUEUE} {subject}")


def _is_storable(*values: object) -> bool:
    """Return whether texts can be stored in, and looked up from, every database."""
    try:
        return not any(isinstance(text, str) and b"\0" in text.encode() for text in values)
    except UnicodeEncodeError:
        return False


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))


def _put(statement: Statement, row: Sequence[object]) -> Operation[None]:
    yield Query(statement, [row], many=True)


def _user_row(user: User) -> tuple[object, ...]:
    return (user.tenant, user.id, user.name, user.role, user.is_active, user.created, user.origin)


def _put_user(user: User) -> Operation[None]:
    yield Query(_CHAIN, (user.tenant,))  # concurrent changes with this check wait here, on any node
    if is_last_owner(map(_user, (yield Query(_USERS, (user.tenant,)))), user):
        raise Forbidden(LAST_OWNER)
    yield Query(_PUT_USER, [_user_row(user)], many=True)


def _add_user(row: Sequence[object]) -> Operation[bool]:
    return bool((yield Query(_ADD_USER, row)))


def _put_credential(row: Sequence[object], again: bool) -> Operation[None]:
    if (yield Query(_PUT_CREDENTIAL, row)):
        return
    rows = yield Query(_BY_ID, (row[0],))
    if not (again and rows and tuple(rows[0][:10]) == tuple(row)):  # an earlier run stored this one
        raise KeyConflict(CREDENTIAL_TAKEN)


def _use_link(hash: str, now: float) -> Operation[KnownCredential | None]:
    if not (yield Query(_USE_LINK, (hash, now))):
        return None
    return _known((yield Query(_BY_HASH, (hash,)))[0])


def _revoke(tenant: str, credential: str, now: float, again: bool) -> Operation[bool]:
    if (yield Query(_REVOKE, (tenant, credential, now))):
        return True
    if not again:
        return False
    rows = yield Query(_BY_ID, (credential,))
    return bool(rows) and rows[0][1] == tenant and rows[0][9] == now


def find_secret(name: str) -> Operation[bytes | None]:
    """Return the value of a secret; None if there is none."""
    rows = yield Query(_SECRET, (name,))
    return bytes(rows[0][0]) if rows else None


def create_secret(name: str, value: bytes) -> Operation[bytes]:
    """Store the value of a secret unless there is one, and return the stored one."""
    yield Query(_MAKE_SECRET, [(name, value)], many=True)
    return bytes((yield Query(_SECRET, (name,)))[0][0])


def _note(record: AuditRecord, again: bool) -> Operation[AuditRecord]:
    yield Query(_CHAIN, (record.tenant,))
    rows = yield Query(_LAST, (record.tenant,))
    last = AuditRecord(*rows[0]) if rows else None
    if again and last is not None:  # it may be stored already: a lost COMMIT is retried within a minute
        for row in (yield Query(_AUDIT, (record.tenant, last.n - RETRY_WINDOW, RETRY_WINDOW))):
            if replace(AuditRecord(*row), n=record.n, hash=record.hash) == record:
                return AuditRecord(*row)
    noted = append_to_chain(record, last)
    yield Query(_NOTE, [_row(noted)], many=True)
    return noted


def _row(record: AuditRecord) -> Sequence[object]:
    texts = (record.by, record.credential, record.did, record.on, record.detail)
    return (record.tenant, record.at, *texts, record.n, record.hash)


def _tenant(row: Row) -> Tenant:
    name, title, is_active, created = row
    return Tenant(name, title, bool(is_active), created)


def _user(row: Row) -> User:
    tenant, name, title, role, is_active, created, origin = row
    return User(tenant, name, title, role, bool(is_active), created, origin)


def _credential(row: Row) -> Credential:
    return Credential(*row)


def _known(row: Row) -> KnownCredential:
    return KnownCredential(_credential(row[:10]), _user(row[10:17]), _tenant(row[17:]))
