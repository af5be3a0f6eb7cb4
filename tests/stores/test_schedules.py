"""Schedules: the contract on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.helpers.sqlite_files import empty_database
from tests.stores.test_postgres import Place

from everturn.core.schedules import ScheduleStore
from everturn.stores.schedules import DictSchedules
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts import ScheduleStoreContract


class TestDictSchedules(ScheduleStoreContract):
    async def make(self) -> ScheduleStore:
        return DictSchedules()


class TestSqliteSchedules(ScheduleStoreContract):
    """Two nodes are two connections to one file."""

    @pytest.fixture(autouse=True)
    async def _place(self, tmp_path: Path) -> AsyncIterator[None]:
        self.path, self.opened = tmp_path / "a.db", list[SqlStore]()
        yield
        for store in self.opened:
            await store.aclose()

    async def make(self) -> ScheduleStore:
        self.opened.append(SqlStore.sqlite(empty_database(self.path)))
        return self.opened[-1].schedules

    async def make_two(self) -> tuple[ScheduleStore, ScheduleStore]:
        return await self.make(), await self.make()


@pytest.mark.live
class TestPostgresSchedules(ScheduleStoreContract):
    """Two nodes are two stores on one schema."""

    @pytest.fixture(autouse=True)
    async def _place(self) -> AsyncIterator[None]:
        self.place = Place()
        yield
        await self.place.aclose()

    async def make(self) -> ScheduleStore:
        return self.place.store().schedules

    async def make_two(self) -> tuple[ScheduleStore, ScheduleStore]:
        return await self.make(), await self.make()
