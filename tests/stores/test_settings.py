"""Settings and their versions: the contract on every store."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.helpers.sqlite_files import empty_database
from tests.stores.test_postgres import Place

from everturn.core.store_ports import Store
from everturn.stores.encryption.keyring import open_keyring
from everturn.stores.memory import MemoryStore
from everturn.stores.sql.store import SqlStore
from everturn.testing.contracts import SettingStoreContract
from everturn.testing.contracts.settings import make_setting


class TestMemorySettings(SettingStoreContract):
    async def make(self) -> Store:
        return MemoryStore()


class TestSqliteSettings(SettingStoreContract):
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
class TestPostgresSettings(SettingStoreContract):
    @pytest.fixture(autouse=True)
    async def _place(self) -> AsyncIterator[None]:
        self.place = Place()
        yield
        await self.place.aclose()

    async def make(self) -> Store:
        return self.place.store()

    async def make_two(self) -> tuple[Store, Store]:
        return await self.make(), await self.make()


async def test_an_encrypted_store_keeps_the_bodies_of_settings_encrypted(tmp_path: Path) -> None:
    master = base64.b64encode(bytes(32)).decode()
    store = SqlStore.sqlite(tmp_path / "a.db").encrypt(open_keyring(str(tmp_path / "keys"), [master]))
    try:
        await store.settings.add(make_setting(body=b'{"instructions":"plainly readable"}'))
        assert (await store.settings.current())[0].body == b'{"instructions":"plainly readable"}'
    finally:
        await store.aclose()
    found = b"".join(file.read_bytes() for file in tmp_path.glob("a.db*") if file.is_file())  # noqa: ASYNC240
    assert b"settings" in found
    assert b"plainly readable" not in found


async def test_a_tenant_whose_key_was_destroyed_keeps_no_other_rules_from_being_read(tmp_path: Path) -> None:
    master = base64.b64encode(bytes(32)).decode()
    store = SqlStore.sqlite(tmp_path / "a.db").encrypt(open_keyring(str(tmp_path / "keys"), [master]))
    try:
        for tenant in ("acme", "other"):
            await store.settings.add(make_setting(kind="rules", scope=tenant, body=b'{"rules":[]}'))
        await store.destroy_key("acme")
        assert [row.scope for row in await store.settings.of_tenants("rules")] == ["other"]
    finally:
        await store.aclose()
