"""SQL `SettingStore`: a row per version. The key of a version is unique, so of two writers at once one is refused."""

from __future__ import annotations

from typing import Final

from everturn.core.tenants.settings import INSTALLATION, Setting, SettingKind
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement

_COLUMNS: Final = "tenant, kind, name, version, body, secret, is_deleted, author, at"
_S_COLUMNS: Final = ", ".join(f"s.{name}" for name in _COLUMNS.split(", "))
_REVISION = Statement(
    "settings revision",
    "SELECT count(*) FROM settings",
    "SELECT 1, count(*) FROM settings",
    returns=True,
)
_CURRENT = Statement(
    "current settings",
    f"""SELECT {_S_COLUMNS} FROM settings s WHERE s.tenant = ?1 AND s.version = (SELECT max(o.version) FROM settings o
        WHERE o.tenant = s.tenant AND o.kind = s.kind AND o.name = s.name) AND NOT s.is_deleted
    ORDER BY (SELECT f.at FROM settings f WHERE f.tenant = s.tenant AND f.kind = s.kind AND f.name = s.name
        AND f.version = 1), s.kind, s.name""",
    f"""SELECT p.n, {_S_COLUMNS} FROM unnest($1::text[]) WITH ORDINALITY AS p(tenant, n)
    JOIN settings s ON s.tenant = p.tenant AND NOT s.is_deleted AND s.version = (SELECT max(o.version) FROM settings o
        WHERE o.tenant = s.tenant AND o.kind = s.kind AND o.name = s.name)
    JOIN settings f ON f.tenant = s.tenant AND f.kind = s.kind AND f.name = s.name AND f.version = 1
    ORDER BY p.n, f.at, s.kind COLLATE "C", s.name COLLATE "C\"""",
    returns=True,
)
_OF_TENANTS = Statement(
    "settings of tenants",
    f"""SELECT {_S_COLUMNS} FROM settings s WHERE s.tenant <> '{INSTALLATION}' AND s.kind = ?1 AND NOT s.is_deleted
        AND s.version = (SELECT max(o.version) FROM settings o
            WHERE o.tenant = s.tenant AND o.kind = s.kind AND o.name = s.name)
    ORDER BY s.tenant, s.name""",
    f"""SELECT p.n, {_S_COLUMNS} FROM unnest($1::text[]) WITH ORDINALITY AS p(kind, n)
    JOIN settings s ON s.tenant <> '{INSTALLATION}' AND s.kind = p.kind AND NOT s.is_deleted
        AND s.version = (SELECT max(o.version) FROM settings o
            WHERE o.tenant = s.tenant AND o.kind = s.kind AND o.name = s.name)
    ORDER BY p.n, s.tenant COLLATE "C", s.name COLLATE "C\"""",
    returns=True,
)
_VERSIONS = Statement(
    "setting versions",
    f"SELECT {_S_COLUMNS} FROM settings s WHERE s.tenant = ? AND s.kind = ? AND s.name = ? ORDER BY s.version DESC",
    f"""SELECT p.n, {_S_COLUMNS} FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY
        AS p(tenant, kind, name, n)
    JOIN settings s ON s.tenant = p.tenant AND s.kind = p.kind AND s.name = p.name ORDER BY p.n, s.version DESC""",
    returns=True,
)
_ADD = Statement(
    "add setting",
    f"""INSERT INTO settings ({_COLUMNS}) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9 WHERE ?4 = 1 + (
        SELECT count(*) FROM settings WHERE tenant = ?1 AND kind = ?2 AND name = ?3)
    ON CONFLICT DO NOTHING RETURNING version""",
    f"""INSERT INTO settings ({_COLUMNS}) SELECT p.tenant, p.kind, p.name, p.version, p.body, p.secret, p.is_deleted,
        p.author, p.at
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::bytea[], $7::boolean[], $8::text[],
        $9::float8[]) AS p(tenant, kind, name, version, body, secret, is_deleted, author, at)
    WHERE p.version = 1 + (SELECT count(*) FROM settings s
        WHERE s.tenant = p.tenant AND s.kind = p.kind AND s.name = p.name)
    ON CONFLICT DO NOTHING RETURNING 1, version""",
    returns=True,
)
_ERASE = Statement(
    "erase setting secrets",
    "UPDATE settings SET secret = x'' WHERE tenant = ? AND kind = ? AND name = ? AND version < ? AND length(secret) > 0",
    """UPDATE settings s SET secret = ''::bytea
    FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[]) AS p(tenant, kind, name, version)
    WHERE s.tenant = p.tenant AND s.kind = p.kind AND s.name = p.name AND s.version < p.version
        AND length(s.secret) > 0""",
)


class SqlSettings:
    """Settings in the database of the sessions."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def use_database(self, database: Database) -> None:
        """Read and write through another database, such as one that encrypts."""
        self._database = database

    async def revision(self) -> int:
        """Return the number of versions."""
        return (await self._database.read(lambda: _rows(_REVISION)))[0][0]

    async def current(self, scope: str = INSTALLATION) -> list[Setting]:
        """Return the newest versions, the oldest setting first."""
        return [_setting(row) for row in await self._database.read(lambda: _rows(_CURRENT, scope))]

    async def of_tenants(self, kind: SettingKind) -> list[Setting]:
        """Return the newest versions of the settings of tenants, by tenant."""
        return [_setting(row) for row in await self._database.read(lambda: _rows(_OF_TENANTS, kind))]

    async def versions(self, kind: SettingKind, name: str, scope: str = INSTALLATION) -> list[Setting]:
        """Return all versions, newest first."""
        return [_setting(row) for row in await self._database.read(lambda: _rows(_VERSIONS, scope, kind, name))]

    async def add(self, setting: Setting) -> bool:
        """Add the next version."""
        place = f"setting {setting.scope} {setting.kind} {setting.name}"
        if await self._database.write(lambda again: _add(setting, again), place):
            return True
        # A commit whose outcome was unknown is tried again, and finds what it has written itself.
        newest = (await self.versions(setting.kind, setting.name, setting.scope))[:1]
        return newest == [setting]


def _rows(statement: Statement, *parameters: object) -> Operation[list[Row]]:
    return (yield Query(statement, parameters))


def _add(setting: Setting, again: bool) -> Operation[bool]:
    place = (setting.scope, setting.kind, setting.name, setting.version)
    row = (*place, setting.body, setting.secret, setting.is_deleted, setting.by, setting.at)
    added = yield Query(_ADD, row)
    if added:
        yield Query(_ERASE, [place], many=True)
    return bool(added)


def _setting(row: Row) -> Setting:
    scope, kind, name, version, body, secret, is_deleted, by, at = row
    return Setting(
        scope=scope,
        kind=kind,
        name=name,
        version=version,
        body=bytes(body),
        secret=bytes(secret),
        is_deleted=bool(is_deleted),
        by=by,
        at=at,
    )
