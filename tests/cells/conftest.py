"""Two cells and a routing table, each in a schema of its own."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest

from everturn.cells.routes import CellAddresses, CellMap
from everturn.stores.sql.store import SqlStore
from tests.helpers.stores import URL


def in_schema(schema: str) -> str:
    """The URL of a schema of the test database."""
    return f"{URL}{'&' if '?' in URL else '?'}schema={schema}"


@pytest.fixture
async def cells() -> AsyncGenerator[CellMap]:
    """The addresses of two cells with empty stores."""
    name = f"everturn_{uuid.uuid4().hex[:12]}"
    schemas = {part: f"{name}_{part}" for part in ("routes", "a", "b")}
    connection = await asyncpg.connect(URL)
    try:
        await connection.execute(f"CREATE SCHEMA {schemas['routes']}")
        for part in ("a", "b"):
            store = SqlStore.postgres(in_schema(schemas[part]))
            await store.sessions()
            await store.aclose()
        yield CellMap(
            in_schema(schemas["routes"]),
            "a",
            {part: CellAddresses(part, "http://127.0.0.1:1", in_schema(schemas[part])) for part in ("a", "b")},
        )
    finally:
        for schema in schemas.values():
            await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        await connection.close()
