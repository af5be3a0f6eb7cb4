"""Keyring: the built-in `KeyProvider`. It keeps one wrapped data key per tenant, apart from the store.

Apart, because a destroyed key must not come back with a backup: the backups of a store have no key at all, and a keyring
is copied over its own last copy, so that no copy has a key that was destroyed.

The row without a tenant has the id of the keyring, wrapped as well: it shows at start whether the master key is right.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from everturn.core.tenants.encryption import DATA_KEY_BYTES
from everturn.errors import ConfigError, TenantKeyDestroyed
from everturn.stores.encryption.data_keys import key_destroyed
from everturn.stores.encryption.key_rows import KeyringStorage, KeyRow
from everturn.stores.encryption.master_keys import MasterKeys

ID_ROW: Final = "keyring"
_TENANT: Final = "tenant:"


class Keyring:
    """Data keys wrapped with a master key."""

    def __init__(self, storage: KeyringStorage, masters: MasterKeys) -> None:
        self._storage, self._masters = storage, masters

    async def id(self) -> str:
        """Return the id of this keyring, made when it is first used.

        Raises:
            ConfigError: the master key is missing or wrong, or the keyring cannot be used.
        """
        return (await self._key(ID_ROW)).hex()[:32]

    async def data_key(self, tenant: str) -> bytes:
        """Return the data key of a tenant, made when it is first used.

        Raises:
            TenantKeyDestroyed: it was destroyed.
            ConfigError: its master key is not configured.
        """
        try:
            return await self._key(_TENANT + tenant)
        except TenantKeyDestroyed:
            raise key_destroyed(tenant) from None

    async def _key(self, name: str) -> bytes:
        rows = await self._storage.rows([name])
        row = rows[0] if rows else await self._storage.add(self._wrap(name, os.urandom(DATA_KEY_BYTES)))
        if row.destroyed:
            raise TenantKeyDestroyed(f"the key {name!r} was destroyed")
        return self._masters.unwrap(row.master, row.wrapped, name)

    async def destroyed(self, tenants: Sequence[str]) -> set[str]:
        """Return those of the tenants whose key was destroyed."""
        rows = await self._storage.rows([_TENANT + tenant for tenant in tenants])
        return {row.name.removeprefix(_TENANT) for row in rows if row.destroyed}

    async def destroy(self, tenant: str, at: float) -> bool:
        """Replace the key of a tenant by the time at which it was destroyed; False if it was destroyed before."""
        return await self._storage.replace(KeyRow(_TENANT + tenant, destroyed=at))

    async def rewrap(self) -> int:
        """Wrap all keys with the first master key, and return how many had another one.

        Raises:
            ConfigError: a master key that is still in use is not configured; the keys before it are rewrapped.
        """
        count = 0
        for row in await self._storage.rows():
            if not row.destroyed and row.master != self._masters.newest:
                data_key = self._masters.unwrap(row.master, row.wrapped, row.name)
                count += await self._storage.replace(self._wrap(row.name, data_key))
        return count

    async def check(self) -> None:
        """Check that the master keys open every key. Nothing is created.

        Raises:
            ConfigError: one is missing or wrong.
        """
        for row in await self._storage.rows():
            if not row.destroyed:
                self._masters.unwrap(row.master, row.wrapped, row.name)

    async def describe(self) -> tuple[dict[str, int], int]:
        """Return how many tenants' keys each master key wraps, by its fingerprint, and how many were destroyed."""
        rows = [row for row in await self._storage.rows() if row.name != ID_ROW]
        wrapped = [row.master for row in rows if not row.destroyed]
        return {master: wrapped.count(master) for master in sorted(set(wrapped))}, len(rows) - len(wrapped)

    @property
    def newest_master(self) -> str:
        """The fingerprint of the master key that wraps."""
        return self._masters.newest

    async def aclose(self) -> None:
        """Close the connections of the storage."""
        await self._storage.aclose()

    def _wrap(self, name: str, data_key: bytes) -> KeyRow:
        return KeyRow(name, *self._masters.wrap(data_key, name))


def open_keyring(place: str, master_keys: Sequence[str], store: str = "") -> Keyring:
    """Return the keyring in a folder or, for a postgresql:// URL, in a database of its own.

    Raises:
        ConfigError: a master key is invalid, or the keyring would be in the store itself.
    """
    from everturn.postgres.address import is_postgres_url

    if not place:
        raise ConfigError(
            "[store.encryption] keyring is missing: name a folder, or a PostgreSQL database, that is not in the backups of "
            "the store"
        )
    masters = MasterKeys(master_keys)
    if is_postgres_url(place):
        if place.partition("?")[0] == store.partition("?")[0]:
            raise ConfigError(
                "[store.encryption] keyring is the database of the store: its backups would have the keys; name another"
            )
        from everturn.stores.encryption.postgres_keyring import PostgresKeyring

        return Keyring(PostgresKeyring(place), masters)
    from everturn.stores.encryption.file_keyring import FileKeyring

    return Keyring(FileKeyring(place), masters)
