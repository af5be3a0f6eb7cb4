"""Sharing: the contract on every store, and row-level security for readers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.helpers.sqlite_files import empty_database
from tests.stores.test_postgres import Place
from tests.stores.test_row_security import everything

from everturn.core.store_ports import Store
from everturn.core.tenants.sharing import reader_of
from everturn.errors import UnknownSession
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts.sharing import ADA, BOB, SharingStoreContract, make_share


class TestMemorySharing(SharingStoreContract):
    async def make(self) -> Store:
        return MemoryStore()


class TestSqliteSharing(SharingStoreContract):
    @pytest.fixture(autouse=True)
    async def _place(self, tmp_path: Path) -> AsyncIterator[None]:
        self.path, self.opened = tmp_path / "a.db", list[SqlStore]()
        yield
        for store in self.opened:
            await store.aclose()

    async def make(self) -> Store:
        self.opened.append(SqlStore.sqlite(empty_database(self.path)))
        return self.opened[-1]


@pytest.mark.live
class TestPostgresSharing(SharingStoreContract):
    @pytest.fixture(autouse=True)
    async def _place(self) -> AsyncIterator[None]:
        self.place = Place()
        yield
        await self.place.aclose()

    async def make(self) -> Store:
        return self.place.store()

    async def test_a_query_that_forgot_its_reader_sees_only_what_they_may_see(self) -> None:
        store = await self.filled()
        assert isinstance(store, SqlStore)
        postgres = self.place.opened[-1]
        await store.sharing.set_temporary("a", "of-ada", 4e9)
        await store.sharing.add(make_share("s9", user="vera"))
        for table in (
            "sessions",
            "events",
            "messages",
            "turns",
            "inbox",
            "lookup",
            "temporary_sessions",
            "session_shares",
        ):
            for principal, is_shown in ((ADA, True), (BOB, False)):
                with store.restrict_to_tenant("a", reader_of(principal, 0)):
                    rows = await postgres.read(lambda table=table: everything(table))
                assert any("of-ada" in str(row) for row in rows) == is_shown, table
                assert is_shown or all("of-bob" in str(row) for row in rows), table

    async def test_a_session_that_is_private_to_others_is_not_there(self) -> None:
        store = await self.filled()
        for is_shared in (False, True):
            with store.restrict_to_tenant("a", reader_of(BOB, 0)):
                if is_shared:
                    assert len(await store.events("of-ada")) > 0
                else:
                    with pytest.raises(UnknownSession):
                        await store.events("of-ada")
            await store.sharing.add(make_share())

    async def test_walls_of_a_reader_are_not_left_by_nesting(self) -> None:
        store = await self.filled()
        with store.restrict_to_tenant("a", reader_of(BOB, 0)):
            with store.restrict_to_tenant("a"):
                assert [info.id for info in await store.sessions()] == ["of-bob"]
            with pytest.raises(ValueError, match="another reader"), store.restrict_to_tenant("a", reader_of(ADA, 0)):
                pass
