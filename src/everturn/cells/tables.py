"""Which rows of a database belong to a tenant: for each table a condition, the columns, and an order.

A table that a later version adds is moved too, if it has a column `tenant` or `session`; a move refuses any other table
that it does not know.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from everturn.errors import ConfigError
from everturn.stores.backup.tables import copied_tables

LARGE: Final = ("events", "event_keys", "messages", "lookup", "mentions")
"""Copied while the tenant works. They change only together with the row of their session, and nobody reads them without it."""

SEPARATE: Final = frozenset({"blobs", "chunks", "wakes"})
"""Copied in ways of their own."""

NOT_MOVED: Final = frozenset({"secrets", "rate_limits", "usage_days"})
"""Of the cell, and not of a tenant; totals of usage are made again by a trigger."""

_BY_SESSION: Final = frozenset({"gates", "lookup"})  # the tenant in old rows may be empty
_OF_TENANT: Final = "session IN (SELECT id FROM sessions WHERE tenant = $1)"
_COLUMNS: Final = """
SELECT a.attname, pg_get_serial_sequence($1, a.attname) FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::regclass
AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' AND a.attname <> 'cohort' ORDER BY a.attnum
"""


class MovedTable(Struct, frozen=True):
    """A table, and how to find the rows of a tenant in it."""

    name: str
    columns: tuple[str, ...]
    condition: str  # $1 is the tenant
    order: str = ""  # a serial column: the target numbers the rows anew, in the same order

    @property
    def listed(self) -> str:
        """Its columns, for a statement."""
        return ", ".join(f'"{column}"' for column in self.columns)


async def moved_tables(connection: Any, version: str) -> list[MovedTable]:
    """The tables of a schema version.

    Raises:
        ConfigError: there is a table that this version cannot move.
    """
    tables = [
        await _describe(connection, name)
        for name in copied_tables(version)
        if name not in NOT_MOVED and name not in SEPARATE
    ]
    return sorted(tables, key=lambda table: table.name != "sessions")  # the other rows belong to one of it


async def _describe(connection: Any, name: str) -> MovedTable:
    rows = await connection.fetch(_COLUMNS, name)
    columns = tuple(column for column, serial in rows if serial is None)
    order = next((column for column, serial in rows if serial is not None), "")
    if name == "tenants":
        condition = "id = $1"
    elif "tenant" in columns and name not in _BY_SESSION:
        condition = "tenant = $1"
    elif "session" in columns:
        condition = _OF_TENANT
    else:
        raise ConfigError(
            f"the table {name} has no tenant and no session, so its rows cannot be moved; nothing was changed"
        )
    return MovedTable(name, columns, condition, order)
