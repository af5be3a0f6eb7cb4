"""Webhooks and their outbox: the contract on every store."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.helpers.sqlite_files import empty_database
from tests.stores.test_postgres import Place

from everturn.core.store_ports import Store
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts import WebhookStoreContract


class TestMemoryWebhooks(WebhookStoreContract):
    async def make(self) -> Store:
        return MemoryStore()


class TestSqliteWebhooks(WebhookStoreContract):
    @pytest.fixture(autouse=True)
    async def _place(self, tmp_path: Path) -> AsyncIterator[None]:
        self.path, self.opened = tmp_path / "a.db", list[SqlStore]()
        yield
        for store in self.opened:
            await store.aclose()

    async def make(self) -> Store:
        self.opened.append(SqlStore.sqlite(empty_database(self.path)))
        return self.opened[-1]

    async def make_two(self) -> tuple[Store, Store]:
        return await self.make(), await self.make()


@pytest.mark.live
class TestPostgresWebhooks(WebhookStoreContract):
    @pytest.fixture(autouse=True)
    async def _place(self) -> AsyncIterator[None]:
        self.place = Place()
        yield
        await self.place.aclose()

    async def make(self) -> Store:
        return self.place.store()

    async def make_two(self) -> tuple[Store, Store]:
        return await self.make(), await self.make()
