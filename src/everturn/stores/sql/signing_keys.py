"""The table of signing keys in SQL: rows of `secrets`.

The first key of a name has the name itself, which is what releases without rotation read; each further key has the name
and the time it was added, as `csrf@1763460000.000000`.
"""

from __future__ import annotations

import os
from typing import Final

from everturn.core.tenants.signing_keys import SigningKey
from everturn.stores.sql.accounts import ACCOUNTS_QUEUE, create_secret
from everturn.stores.sql.database import Database, Operation, Query, Row, Statement

_ROWS: Final = Statement(
    "signing keys",
    "SELECT name, value FROM secrets WHERE name = ?1 OR substr(name, 1, length(?1) + 1) = ?1 || '@'",
    """SELECT p.n, s.name, s.value FROM unnest($1::text[]) WITH ORDINALITY AS p(name, n)
    JOIN secrets s ON s.name = p.name OR left(s.name, length(p.name) + 1) = p.name || '@'""",
    returns=True,
)
_DELETE: Final = Statement(
    "delete signing key",
    "DELETE FROM secrets WHERE name = ? RETURNING name",
    """DELETE FROM secrets s USING unnest($1::text[]) WITH ORDINALITY AS p(name, n) WHERE s.name = p.name
    RETURNING p.n, s.name""",
    returns=True,
)


class SqlKeyTable:
    """The signing keys of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def rows(self, name: str) -> list[SigningKey]:
        """The keys of a name."""
        rows = await self._database.read(lambda: _select(name))
        return [SigningKey(bytes(value), _created(row_name)) for row_name, value in rows]

    async def create(self, name: str) -> None:
        """Store a first key, unless there is one."""
        if not await self.rows(name):
            await self._database.write(lambda _: create_secret(name, os.urandom(32)), f"{ACCOUNTS_QUEUE} {name}")

    async def add(self, name: str, now: float) -> None:
        """Store a further key."""
        value = os.urandom(32)
        await self._database.write(lambda _: create_secret(f"{name}@{now:.6f}", value), f"{ACCOUNTS_QUEUE} {name}")

    async def delete_before(self, name: str, created: float) -> int:
        """Delete the keys that are older, and return how many."""
        return await self._database.write(lambda _: _delete(name, created), f"{ACCOUNTS_QUEUE} {name}")


def _select(name: str) -> Operation[list[Row]]:
    return (yield Query(_ROWS, (name,)))


def _delete(name: str, created: float) -> Operation[int]:
    names = [row[0] for row in (yield Query(_ROWS, (name,))) if _created(row[0]) < created]
    for each in names:
        yield Query(_DELETE, (each,))
    return len(names)


def _created(name: str) -> float:
    return float(name.partition("@")[2] or 0)
