"""Setting store contract: versions in order, one writer wins, and only the newest version has its secret."""

from __future__ import annotations

import asyncio

from everturn.core.store_ports import Store
from everturn.core.tenants.settings import INSTALLATION, Setting
from everturn.testing.contracts.samples import NOON


def make_setting(name: str = "a", version: int = 1, **more: object) -> Setting:
    """A version of an agent."""
    fields: dict[str, object] = {"kind": "agent", "body": b'{"model":"m"}', "by": "ada", "at": NOON + version, **more}
    return Setting(name=name, version=version, **fields)  # pyright: ignore[reportArgumentType]


class SettingStoreContract:
    """The port `SettingStore` of a store. A store that several nodes share returns two in `make_two`."""

    async def make(self) -> Store:
        """An empty store."""
        raise NotImplementedError

    async def make_two(self) -> tuple[Store, Store]:
        """The same empty store on two nodes."""
        store = await self.make()
        return store, store

    async def test_the_newest_version_is_current_and_all_are_kept(self) -> None:
        settings = (await self.make()).settings
        first, second = make_setting(), make_setting(version=2, body=b'{"model":"n"}')
        assert await settings.add(first)
        assert await settings.add(second)
        assert await settings.current() == [second]
        assert await settings.versions("agent", "a") == [second, first]
        assert await settings.versions("agent", "b") == []

    async def test_a_version_is_added_once_and_without_a_gap(self) -> None:
        settings = (await self.make()).settings
        assert await settings.add(make_setting())
        assert not await settings.add(make_setting(by="eve"))
        assert not await settings.add(make_setting(version=3))
        assert await settings.versions("agent", "a") == [make_setting()]

    async def test_of_two_writers_of_one_version_one_is_refused(self) -> None:
        one, two = await self.make_two()
        await one.settings.add(make_setting())
        await two.settings.current()
        added = await asyncio.gather(
            one.settings.add(make_setting(version=2, by="ada")), two.settings.add(make_setting(version=2, by="bob"))
        )
        assert sorted(added) == [False, True]
        (newest, _) = await one.settings.versions("agent", "a")
        assert newest.by == ("ada" if added[0] else "bob")

    async def test_a_deleted_setting_is_not_current_and_can_be_made_again(self) -> None:
        settings = (await self.make()).settings
        await settings.add(make_setting())
        await settings.add(make_setting(version=2, is_deleted=True))
        assert await settings.current() == []
        await settings.add(make_setting(version=3))
        assert [row.version for row in await settings.current()] == [3]

    async def test_only_the_newest_version_has_its_secret(self) -> None:
        settings = (await self.make()).settings
        await settings.add(make_setting(kind="key", secret=b"one"))
        await settings.add(make_setting(kind="key", version=2, secret=b"two"))
        assert [row.secret for row in await settings.versions("key", "a")] == [b"two", b""]
        await settings.add(make_setting(kind="key", version=3, is_deleted=True))
        assert [row.secret for row in await settings.versions("key", "a")] == [b"", b"", b""]

    async def test_a_refused_version_erases_no_secret(self) -> None:
        settings = (await self.make()).settings
        await settings.add(make_setting(kind="key", secret=b"one"))
        assert not await settings.add(make_setting(kind="key", version=3, secret=b"three"))
        assert [row.secret for row in await settings.current()] == [b"one"]

    async def test_scopes_are_apart_and_the_oldest_setting_is_first(self) -> None:
        settings = (await self.make()).settings
        for name, scope, at in (("z", INSTALLATION, 1.0), ("b", INSTALLATION, 2.0), ("t", "acme", 3.0)):
            await settings.add(make_setting(name, scope=scope, at=at))
        await settings.add(make_setting("z", version=2, at=9.0))
        assert [row.name for row in await settings.current()] == ["z", "b"]
        assert [row.name for row in await settings.current("acme")] == ["t"]
        assert await settings.versions("agent", "t") == []

    async def test_the_settings_of_tenants_are_listed_by_kind_in_their_newest_version(self) -> None:
        settings = (await self.make()).settings
        for scope, kind, version in (
            *(("b", "rules", 1), ("b", "rules", 2), ("a", "rules", 1), ("a", "agent", 1)),
            *((INSTALLATION, "rules", 1), ("gone", "rules", 1)),
        ):
            await settings.add(make_setting(kind=kind, scope=scope, version=version, body=b'{"rules":[]}'))
        await settings.add(make_setting(kind="rules", scope="gone", version=2, is_deleted=True))
        assert [(row.scope, row.version) for row in await settings.of_tenants("rules")] == [("a", 1), ("b", 2)]
        assert await settings.of_tenants("hook") == []

    async def test_every_change_is_a_new_revision_for_all_nodes(self) -> None:
        one, two = await self.make_two()
        seen = [await two.settings.revision()]
        for setting in (make_setting(), make_setting(version=2, is_deleted=True), make_setting("b", scope="acme")):
            await one.settings.add(setting)
            seen.append(await two.settings.revision())
        assert seen == sorted(set(seen))
