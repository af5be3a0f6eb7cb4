"""The store contract with encryption on: on SQLite and on PostgreSQL."""

import base64
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.stores.test_postgres import Place

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
        self.made.append(SqlStore.sqlite(self.folder / f"{len(self.made)}.db").encrypt(self.keys))
        return self.made[-1]


class TestEncryptedPostgres(StoreContract):
    @pytest.fixture(autouse=True)
    async def _places(self, tmp_path: Path) -> AsyncIterator[None]:
        self.keys, self.places = make_keyring(tmp_path), list[Place]()
        yield
        for place in self.places:
            await place.aclose()

    async def make(self) -> Store:
        self.places.append(Place())
        return self.places[-1].store().encrypt(self.keys)
