"""Alembic environment: used by the `alembic` command to write a new step; Everturn itself does not need this file.

    alembic revision --autogenerate --rev-id 0002 -m "What changes"

It runs the existing steps on an empty database in memory; the difference to `schema.py` becomes the new step.
"""

from __future__ import annotations

import sqlite3

from alembic import context
from sqlalchemy import create_engine

from everturn.stores.sql.migrate import VERSION_TABLE, upgrade_script
from tools.migrations.schema import meta


def is_modelled(name: str | None, *_: object) -> bool:
    """Return whether SQLAlchemy can model this: it has no type for the full-text index."""
    return not str(name).startswith("lookup_words")


with create_engine("sqlite://").connect() as connection:
    database = connection.connection.driver_connection
    assert isinstance(database, sqlite3.Connection)
    database.executescript(upgrade_script("sqlite"))
    context.configure(
        connection=connection,
        target_metadata=meta,
        version_table=VERSION_TABLE,
        include_name=is_modelled,
    )
    with context.begin_transaction():
        context.run_migrations()
