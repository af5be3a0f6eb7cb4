"""The store contract with encryption on: on SQLite and on PostgreSQL."""

import base64
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.helpers.sqlite_files import empty_database
from tests.stores.test_postgres import borrowed_store

from everturn.core.store_ports import Store
from everturn.stores.encryption.keyring import Keyring, open_keyring
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts import StoreContract


def make_keyring(folder: Path) -> Keyring:
    return open_keyring(str(folder / "keyring"), [base64.b64encode(os.urandom(32)).decode()])


class TestEncryptedSqlite(StoreContract):
    @pytest.fixture(autouse=True)
    async def _files(self, tmp_path: Path) -> AsyncIterator[None]:
        self.keys, self.folder, self.made = make_keyring(tmp_path), tmp_path, list[SqlStore]()
        yield
        for store in self.made:
            await store.aclose()

    async def make(self) -> Store:
        self.made.append(SqlStore.sqlite(empty_database(self.folder / f"{len(self.made)}.db")).encrypt(self.keys))
        return self.made[-1]


class TestEncryptedPostgres(StoreContract):
    @pytest.fixture(autouse=True)
    async def _schemas(self, tmp_path: Path) -> AsyncIterator[None]:
        self.keys = make_keyring(tmp_path)
        async with AsyncExitStack() as self.stack:
            yield

    async def make(self) -> Store:
        return (await borrowed_store(self.stack)).encrypt(self.keys)
