"""Tables of a schema version, as the migration scripts create them: a database may hold other tables, too."""

from __future__ import annotations

import re

from everturn.stores.sql.migrate import HEAD, SCRIPTS, VERSION_TABLE

NOT_COPIED = frozenset({VERSION_TABLE, "engine_workers"})
"""The scripts write the version; the workers of the PostgreSQL engine are processes, and none of them is restored."""

_TABLE = re.compile(r"^(CREATE|DROP) TABLE (?:IF (?:NOT )?EXISTS )?(\w+)", re.MULTILINE)


def copied_tables(version: str = HEAD) -> list[str]:
    """Return the tables of a PostgreSQL database of a schema version that a backup copies."""
    tables: dict[str, None] = {}
    for word, table in _TABLE.findall(schema_script("postgresql", version)):
        if word == "CREATE":
            tables[table] = None
        else:
            tables.pop(table, None)
    return [table for table in tables if table not in NOT_COPIED]


def schema_script(dialect: str, version: str) -> str:
    """Return the SQL that creates the tables of a schema version in an empty database."""
    steps = sorted(SCRIPTS.glob(f"*.{dialect}.sql"))
    return "".join(step.read_text(encoding="utf-8") for step in steps if step.name < f"{version}.~")
