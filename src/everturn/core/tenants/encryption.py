"""Key provider port: the data keys of tenants, by which a store encrypts what it writes.

A store never sees a master key. It asks the provider for the data key of a tenant and keeps that in memory for as long as
the provider says that it is not destroyed.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol

DATA_KEY_BYTES = 32
"""Size of a data key: AES-256."""


SEALED_PREFIX = b"\xe5\x01"
"""The first bytes of an encrypted value: not the beginning of any JSON."""


def is_sealed(value: bytes) -> bool:
    """Return whether a stored value is encrypted."""
    return value[:2] == SEALED_PREFIX


class KeyProvider(Protocol):
    """Makes, keeps and destroys the data key of each tenant: a keyring of our own, or a key management service."""

    async def id(self) -> str:
        """Return the id of the place that has the keys. A store refuses keys of another place than its own.

        Raises:
            ConfigError: the place cannot be used, or its master key is missing or wrong; the text names the setting.
        """
        ...

    async def data_key(self, tenant: str) -> bytes:
        """Return the data key of a tenant, 32 bytes; the first call for a tenant makes it.

        Raises:
            TenantKeyDestroyed: it was destroyed; no key is made for this tenant again.
            ConfigError: the master key that it is wrapped with is missing.
        """
        ...

    async def destroyed(self, tenants: Sequence[str]) -> set[str]:
        """Return those of the tenants whose key was destroyed."""
        ...

    async def destroy(self, tenant: str, at: float) -> bool:
        """Destroy the key of a tenant for good; False if it was destroyed before."""
        ...

    async def rewrap(self) -> int:
        """Wrap all data keys with the newest master key, and return how many had another one."""
        ...

    async def aclose(self) -> None:
        """Close connections."""
        ...


_blob_tenant: ContextVar[str | None] = ContextVar("everturn_blob_tenant", default=None)


@contextmanager
def blobs_of_tenant(tenant: str) -> Generator[None]:
    """Put and read blobs for a tenant, in this task and those it starts meanwhile: an encrypted blob has an owner."""
    token = _blob_tenant.set(tenant)
    try:
        yield
    finally:
        _blob_tenant.reset(token)


def blob_tenant() -> str | None:
    """Return the tenant that blobs are put and read for; None: no block says so."""
    return _blob_tenant.get()
