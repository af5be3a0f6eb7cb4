"""`everturn migrate`: what it says, what it changes, and a server that may not migrate."""

from __future__ import annotations

import shutil
import sqlite3
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs]
import pytest
from tests.golden.make_database import FOLDER
from tests.helpers.stores import POSTGRES, URL
from tests.stores.test_backup import cli

from everturn.errors import ConfigError, StoreUnavailable
from everturn.stores.migration import migrate_store, require_current_schema, schema_status
from everturn.stores.sql.migrate import HEAD, upgrade_script

OLD = "0003"


class OldStore:
    """A store of an older schema."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.schema = f"everturn_{uuid.uuid4().hex[:16]}"
        self.name = str(folder / "talks.db") if kind == "sqlite" else f"{URL}?schema={self.schema}"

    async def make(self) -> None:
        if "://" not in self.name:
            shutil.copy(FOLDER / "databases" / f"{OLD}.sqlite", self.name)
            return
        await self.sql(f"CREATE SCHEMA {self.schema}")
        await self.sql((FOLDER / "databases" / f"{OLD}.postgresql.sql").read_text(encoding="utf-8"))

    async def sql(self, text: str) -> list[Any]:
        if "://" not in self.name:
            connection = sqlite3.connect(self.name, isolation_level=None)
            try:
                return connection.execute(text).fetchall()
            finally:
                connection.close()
        postgres: Any = await asyncpg.connect(URL, server_settings={"search_path": self.schema})
        try:
            return await postgres.fetch(text) if text.startswith("SELECT") else await postgres.execute(text)
        finally:
            await postgres.close()

    async def version(self) -> str:
        return (await self.sql("SELECT version_num FROM everturn_schema"))[0][0]

    async def aclose(self) -> None:
        if "://" in self.name:
            await self.sql(f"DROP SCHEMA {self.schema} CASCADE")


@pytest.fixture(params=["sqlite", POSTGRES])
async def old(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[OldStore]:
    store = OldStore(request.param, tmp_path)
    await store.make()
    yield store
    await store.aclose()


async def test_status_sql_and_a_dry_run_change_nothing_and_apply_does(old: OldStore):
    dialect = "postgresql" if "://" in old.name else "sqlite"
    code, out, _ = await cli("migrate", "status", "--store", old.name)
    assert code == 1
    assert f"has schema {OLD}; missing: 0004, 0005" in out
    assert (await cli("migrate", "sql", "--store", old.name))[1] == upgrade_script(dialect, OLD)
    code, out, errors = await cli("migrate", "apply", "--dry-run", "--store", old.name)
    assert (code, errors) == (0, "")
    assert "rolled back" in out
    assert await old.version() == OLD

    _, out, _ = await cli("migrate", "apply", "--store", old.name)
    assert out == f"{old.name}: {OLD} -> {HEAD}\n"
    assert await old.version() == HEAD
    assert (await cli("migrate", "status", "--store", old.name))[0] == 0
    assert (await migrate_store(old.name)).is_current


async def test_a_step_that_fails_changes_nothing_and_a_dry_run_finds_it(old: OldStore):
    await old.sql("CREATE TABLE memory_files (mine TEXT)")  # the name of a table of a later step
    for dry_run in (True, False):
        with pytest.raises((StoreUnavailable, ConfigError), match="memory_files"):
            await migrate_store(old.name, dry_run=dry_run)
        assert await old.version() == OLD


async def test_a_store_of_a_newer_schema_is_refused(old: OldStore):
    await old.sql("UPDATE everturn_schema SET version_num = '9999'")
    for action in (schema_status, migrate_store, require_current_schema):
        with pytest.raises(ConfigError, match="a newer version has upgraded it"):
            await action(old.name)


async def test_a_server_that_may_not_migrate_refuses_an_older_store_and_leaves_it(old: OldStore, tmp_path: Path):
    config = tmp_path / "everturn.toml"
    config.write_text(f'[store]\nurl = "{old.name}"\nmigrate = false\n')
    code, _, errors = await cli("serve", "--config", str(config), "--port", "0")
    assert code == 2
    assert "run `everturn migrate apply` first" in errors
    assert await old.version() == OLD
    if "://" in old.name:
        code, _, errors = await cli("worker", "--config", str(config))
        assert (code, "everturn migrate apply" in errors) == (2, True)
        assert await old.version() == OLD
    await migrate_store(old.name)
    await require_current_schema(old.name)


async def test_a_new_file_is_made_by_apply_for_its_owner_alone(tmp_path: Path):
    name = str(tmp_path / "new.db")
    code, out, _ = await cli("migrate", "status", "--store", name)
    assert (code, "has no tables yet" in out) == (1, True)
    with pytest.raises(ConfigError, match="no tables yet"):
        await require_current_schema(name)
    await migrate_store(name)
    assert (tmp_path / "new.db").stat().st_mode & 0o777 == 0o600
    await require_current_schema(name)
