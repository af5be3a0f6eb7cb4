"""Encrypted blobs: stored under a keyed hash of their name, a blob of its own for each tenant.

The name of a blob is the hash of its content, which would tell who has a known file, and two tenants with the same file
would share a blob that only one of them has the key of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from everturn.core.tenants.accounts import LOCAL
from everturn.core.tenants.encryption import blob_tenant
from everturn.stores.encryption.tenant_cipher import SEALED_BYTES, Place, TenantCipher
from everturn.stores.sql.blobs import THREAD_FROM, SqlBlobs, check_blob_name, damaged_blob, hash_blob
from everturn.stores.sql.encrypted_database import EncryptedDatabase
from everturn.stores.sql.row_security import current_tenant

TRIES: Final = 2


class EncryptedBlobs:
    """The blobs of an encrypted database, for the tenant of the current task (`core.tenants.encryption.blobs_of_tenant`)."""

    def __init__(self, database: EncryptedDatabase, blobs: SqlBlobs) -> None:
        self._database, self._blobs = database, blobs

    async def put(self, data: bytes) -> str:
        """Store bytes, and return their hash."""
        name = await hash_blob(data)
        cipher = await self._cipher()
        stored = cipher.hash_name(name)
        if not await self._blobs.touch(stored, len(data) + SEALED_BYTES):
            await self._blobs.write(stored, await _in_thread(cipher.seal, data, _place(stored)))
        return name

    async def get(self, name: str) -> bytes:
        """Return the bytes of a hash.

        Raises:
            UnknownMessage: this tenant has no such blob.
            UnreadableLog: its bytes are damaged or missing.
            TenantKeyDestroyed: the key of the tenant was destroyed.
        """
        check_blob_name(name)
        cipher = await self._cipher()
        stored = cipher.hash_name(name)
        for _ in range(TRIES):  # a file may be removed and put again between the two reads
            sealed = await self._blobs.read(stored)
            if sealed is not None:
                data = await _in_thread(cipher.open, sealed, _place(stored))
                if await hash_blob(data) == name:
                    return data
        raise damaged_blob(name)

    async def _cipher(self) -> TenantCipher:
        return await self._database.cipher(blob_tenant() or current_tenant() or LOCAL)


def _place(stored: str) -> Place:
    return "blobs", "data", stored


async def _in_thread(work: Callable[[bytes, Place], bytes], data: bytes, place: Place) -> bytes:
    return work(data, place) if len(data) < THREAD_FROM else await asyncio.to_thread(work, data, place)
