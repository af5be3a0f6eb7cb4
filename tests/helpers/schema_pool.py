"""PostgreSQL schemas that tests use one after another: emptied in between, because to create one takes half a second.

A schema goes back only if its tables, functions and policies are those of a new one; otherwise it is dropped.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]

URL = os.environ.get("EVERTURN_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
VERSIONS = "everturn_schema"  # its row is written with the tables

_free: list[str] = []
_shapes: list[Any] = []  # of a new schema: one, as soon as the first was seen

SHAPE = """
SELECT coalesce(array_agg(what ORDER BY what), '{}') FROM (
    SELECT concat_ws(' ', relkind::text, relname, relrowsecurity, relforcerowsecurity) AS what FROM pg_class
    WHERE relnamespace = to_regnamespace($1)
    UNION ALL SELECT 'function ' || proname FROM pg_proc WHERE pronamespace = to_regnamespace($1)
    UNION ALL SELECT 'policy ' || policyname FROM pg_policies WHERE schemaname = $1
    UNION ALL SELECT concat_ws(' ', 'column', c.relname, a.attname) FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    WHERE c.relnamespace = to_regnamespace($1) AND a.attnum > 0 AND NOT a.attisdropped
) AS all_of_it
"""
EMPTY = """
DO $do$ DECLARE name text; has_rows boolean; BEGIN
    SET LOCAL session_replication_role = replica; -- no trigger keeps the audit log
    FOR name IN SELECT relname FROM pg_class
        WHERE relnamespace = to_regnamespace('{schema}') AND relkind = 'r' AND relname <> '{versions}'
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM {schema}.%I)', name) INTO has_rows;
        IF has_rows THEN EXECUTE format('DELETE FROM {schema}.%I', name); END IF;
    END LOOP;
    FOR name IN SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('{schema}') AND relkind = 'S'
    LOOP
        EXECUTE format('ALTER SEQUENCE {schema}.%I RESTART', name);
    END LOOP;
END $do$
"""


@asynccontextmanager
async def borrowed_schema() -> AsyncGenerator[str]:
    """The name of a schema that is not there, or is as new. Close what uses it before you leave."""
    is_used = bool(_free)
    schema = _free.pop() if is_used else f"everturn_{uuid.uuid4().hex[:16]}"
    try:
        yield schema
    finally:
        connection: Any = await asyncpg.connect(URL)
        try:
            shape = await connection.fetchval(SHAPE, schema)
            if shape and not _shapes and not is_used:
                _shapes.append(shape)
            if shape and shape in _shapes:
                await connection.execute(EMPTY.format(schema=schema, versions=VERSIONS))
                _free.append(schema)
            else:
                await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        finally:
            await connection.close()


@asynccontextmanager
async def new_schema() -> AsyncGenerator[str]:
    """The name of a schema that is not there; it is dropped afterwards."""
    schema = f"everturn_{uuid.uuid4().hex[:16]}"
    try:
        yield schema
    finally:
        connection: Any = await asyncpg.connect(URL)
        await connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
        await connection.close()


def drop_borrowed_schemas() -> None:
    """Drop those of this process: the tests are over."""

    async def drop() -> None:
        connection: Any = await asyncpg.connect(URL)
        while _free:
            await connection.execute(f"DROP SCHEMA IF EXISTS {_free.pop()} CASCADE")
        await connection.close()

    if _free:
        asyncio.run(drop())
