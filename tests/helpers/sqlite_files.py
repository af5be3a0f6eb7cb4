"""SQLite databases for tests that want an empty store: copies of one, because to create its tables takes 25 ms of processor time.

Tests of how tables are created and upgraded (`tests/stores/test_migrations.py`, and whatever starts a program) do not use it.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from functools import cache
from pathlib import Path

from everturn.stores.sql.migrate import upgrade_sqlite


def empty_database(path: Path) -> Path:
    """Put a database with all tables and no rows at a path, unless something is there; the path."""
    if not path.exists():
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(_content())
    return path


@cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "empty.db")
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        upgrade_sqlite(connection)
        connection.close()
        return path.read_bytes()
