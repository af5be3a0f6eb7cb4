"""Memory files of users: the contract on every store, and what is particular to a database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.helpers.sqlite_files import empty_database
from tests.stores.test_postgres import Place

from everturn.core.memory.user_memory import MemoryCreate, MemoryInsert, MemoryOrigin, UserMemory
from everturn.core.store_ports import Store
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore
from everturn.stores.user_memory import DictUserMemory
from everturn.testing.contracts import UserMemoryContract
from everturn.testing.contracts.samples import NOON, send_message, turn_ended_events, turn_started_events
from everturn.testing.contracts.user_memory import text_at


class TestDictUserMemory(UserMemoryContract):
    async def make(self) -> UserMemory:
        return DictUserMemory()


class TestSqliteUserMemory(UserMemoryContract):
    """Two nodes are two connections to one file."""

    @pytest.fixture(autouse=True)
    async def _place(self, tmp_path: Path) -> AsyncIterator[None]:
        self.path, self.opened = tmp_path / "a.db", list[SqlStore]()
        yield
        for store in self.opened:
            await store.aclose()

    async def make(self) -> UserMemory:
        self.opened.append(SqlStore.sqlite(empty_database(self.path)))
        return self.opened[-1].user_memory

    async def make_two(self) -> tuple[UserMemory, UserMemory]:
        return await self.make(), await self.make()


@pytest.mark.live
class TestPostgresUserMemory(UserMemoryContract):
    """Two nodes are two stores on one schema."""

    @pytest.fixture(autouse=True)
    async def _place(self) -> AsyncIterator[None]:
        self.place = Place()
        yield
        await self.place.aclose()

    async def make(self) -> UserMemory:
        return self.place.store().user_memory

    async def make_two(self) -> tuple[UserMemory, UserMemory]:
        return await self.make(), await self.make()


def test_a_store_has_its_memory():
    store = MemoryStore()
    assert store.user_memory is store.user_memory


async def test_an_erased_session_leaves_the_files_and_no_trace_of_its_calls(store: Store):
    await store.admit(send_message())
    await store.append("s", 0, [*turn_started_events(), *turn_ended_events()])
    origin = MemoryOrigin("s", "call_1")
    await store.user_memory.change("local", "ada", MemoryCreate("a", "x"), at=NOON)
    await store.user_memory.change("local", "ada", MemoryInsert("a", 0, "y"), at=NOON, origin=origin)
    await store.erase("s")
    assert await text_at(store.user_memory, "a", "local") == "y\nx"
    await store.user_memory.change("local", "ada", MemoryInsert("a", 0, "z"), at=NOON, origin=origin)
    assert await text_at(store.user_memory, "a", "local") == "z\ny\nx"
