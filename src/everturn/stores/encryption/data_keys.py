"""Data keys in use: the ciphers of tenants in this process, and a look every few seconds at which were destroyed.

The operations of a database cannot wait for a key. One that needs a key which is not here raises `KeyNeeded`; its caller
loads the key and runs it again.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from everturn.core.tenants.encryption import DATA_KEY_BYTES, KeyProvider
from everturn.errors import ConfigError, TenantKeyDestroyed
from everturn.stores.encryption.tenant_cipher import TenantCipher

CACHE_SECONDS: Final = 10.0
"""Seconds after which every process has noticed that a key was destroyed."""

CIPHERS_LIMIT: Final = 4096


class KeyNeeded(Exception):
    """An operation needs the key of a tenant, to be loaded before it is run again."""

    def __init__(self, tenant: str) -> None:
        super().__init__(f"the key of tenant {tenant!r} is not loaded")
        self.tenant = tenant


class DataKeys:
    """The ciphers of tenants, loaded from a provider when they are first needed."""

    def __init__(self, provider: KeyProvider, now: Callable[[], float] = time.monotonic) -> None:
        self.provider, self._now = provider, now
        self._ciphers: OrderedDict[str, TenantCipher] = OrderedDict()
        self._destroyed: set[str] = set()
        self._checked = now()

    def cipher(self, tenant: str) -> TenantCipher:
        """Return the cipher of a tenant.

        Raises:
            TenantKeyDestroyed: its key was destroyed.
            KeyNeeded: its key is to be loaded first.
        """
        if (cipher := self._ciphers.get(tenant)) is not None:
            return cipher
        if tenant in self._destroyed:
            raise key_destroyed(tenant)
        raise KeyNeeded(tenant)

    async def load(self, tenant: str) -> TenantCipher | None:
        """Load the key of a tenant; None if it was destroyed."""
        if (cipher := self._ciphers.get(tenant)) is not None:
            return cipher
        try:
            data_key = await self.provider.data_key(tenant)
        except TenantKeyDestroyed:
            self._destroyed.add(tenant)
            return None
        if len(data_key) != DATA_KEY_BYTES:
            raise ConfigError(
                f"the key provider returned {len(data_key)} bytes as a data key; it needs {DATA_KEY_BYTES}"
            )
        cipher = self._ciphers[tenant] = TenantCipher(tenant, data_key)
        if len(self._ciphers) > CIPHERS_LIMIT:
            self._ciphers.popitem(last=False)
        return cipher

    @property
    def is_due(self) -> bool:
        """Whether the keys are to be checked again."""
        return self._now() - self._checked > CACHE_SECONDS

    async def refresh(self) -> None:
        """Drop the keys that were destroyed since the last check."""
        self._checked = self._now()
        for tenant in await self.provider.destroyed(list(self._ciphers)) if self._ciphers else ():
            del self._ciphers[tenant]
            self._destroyed.add(tenant)

    async def destroy(self, tenant: str, at: float) -> bool:
        """Destroy the key of a tenant; False if it was destroyed before."""
        is_new = await self.provider.destroy(tenant, at)
        self._ciphers.pop(tenant, None)
        self._destroyed.add(tenant)
        return is_new


def key_destroyed(tenant: str) -> TenantKeyDestroyed:
    """Return the error for a tenant whose key was destroyed."""
    return TenantKeyDestroyed(
        f"the encryption key of tenant {tenant!r} was destroyed: nothing that it wrote can be read any more, and nothing "
        "can be written for it; `everturn admin erase --all-users` removes what is left of it"
    )
