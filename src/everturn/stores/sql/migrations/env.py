"""Where the `alembic` command starts when it writes a new step; Everturn itself does not need this file.

    alembic revision --autogenerate --rev-id 0002 -m "What changes"

The steps so far are run on an empty database in memory, and what `schema.py` has beside that becomes the new one.
"""

from __future__ import annotations

import sqlite3

from alembic import context
from sqlalchemy import create_engine

from everturn.stores.sql.migrating import VERSION, script
from everturn.stores.sql.schema import meta


def is_modelled(name: str | None, *_: object) -> bool:
    """The index of words is of no kind that SQLAlchemy knows."""
    return not str(name).startswith("lookup_words")


with create_engine("sqlite://").connect() as connection:
    database = connection.connection.driver_connection
    assert isinstance(database, sqlite3.Connection)
    database.executescript(script("sqlite"))
    context.configure(
        connection=connection,
        target_metadata=meta,
        version_table=VERSION,
        include_name=is_modelled,
    )
    with context.begin_transaction():
        context.run_migrations()
