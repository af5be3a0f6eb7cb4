"""The stores there are, each empty and on its own, for tests that hold for all of them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from everturn.core.store_ports import Store
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.postgres import Postgres
from everturn.stores.sql.sqlite import Sqlite
from everturn.stores.sql.store import SqlStore
from tests.helpers.schema_pool import URL, borrowed_schema, new_schema
from tests.helpers.sqlite_files import empty_database

POSTGRES: Any = pytest.param("postgres", marks=pytest.mark.live)
SQL = ["sqlite", "sqlite without a folder", POSTGRES]
ALL = ["memory", "sqlite", POSTGRES]
CRASHES = [
    *((kind, before_next) for kind in ("memory", "sqlite") for before_next in (False, True)),
    pytest.param("postgres", True, marks=pytest.mark.live),
    pytest.param("postgres", False, marks=[pytest.mark.live, pytest.mark.long]),
]
"""Kinds of stores, and whether a process is stopped before the next event or after the last one."""


@asynccontextmanager
async def opened_sql(kind: str, folder: Path, may_be_used: bool = True) -> AsyncGenerator[SqlStore]:
    """A store in a SQL database of its own. `may_be_used`: its tables on PostgreSQL may have had rows, which plans depend on."""
    if kind != "postgres":
        path = empty_database(folder / "store.db")
        store = SqlStore.sqlite(path) if kind == "sqlite" else SqlStore(Sqlite(path))
        try:
            yield store
        finally:
            await store.aclose()
        return
    async with borrowed_schema() if may_be_used else new_schema() as schema:
        store = SqlStore(Postgres(URL, schema))
        try:
            yield store
        finally:
            await store.aclose()


@asynccontextmanager
async def opened(kind: str, folder: Path) -> AsyncGenerator[Store]:
    """A store of any kind."""
    if kind == "memory":
        yield MemoryStore()
    else:
        async with opened_sql(kind, folder) as store:
            yield store


@pytest.fixture(params=ALL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    """An empty one of each kind; the conftest of a folder imports it."""
    async with opened(request.param, tmp_path) as store:
        yield store
