"""Partial stores: a store that implements only the ports that run turns (`TurnStore`) is completed with the others, whose
methods say that they are missing.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn, cast

from everturn.core.store_ports import BlobStore, CommandInbox, EventLog, SessionDirectory, Store, TurnStore
from everturn.core.tenants.sharing import Reader
from everturn.errors import ConfigError


def _methods(port: type) -> list[str]:
    return [name for name in vars(port) if not name.startswith("_")]


OPTIONAL_METHODS = {name: port.__name__ for port in (SessionDirectory, BlobStore) for name in _methods(port)} | {
    "accounts": "Accounts",
    "user_memory": "UserMemory",
    "schedules": "ScheduleStore",
    "settings": "SettingStore",
    "sharing": "SharingStore",
    "webhooks": "WebhookStore",
}
"""Method → the port that it belongs to: what a store need not have."""


class PartialStore:
    """A store with the two ports that run turns; a method of another port raises `ConfigError`."""

    def __init__(self, store: TurnStore) -> None:
        self._store = store

    def restrict_to_tenant(self, tenant: str, reader: Reader | None = None) -> AbstractContextManager[None]:
        """Restrict reads to a tenant and a reader, if the store can."""
        restrict = getattr(self._store, "restrict_to_tenant", None)
        return nullcontext() if restrict is None else restrict(tenant, reader)

    def __getattr__(self, name: str) -> Any:
        port = OPTIONAL_METHODS.get(name)
        if port is None or hasattr(self._store, name):
            return getattr(self._store, name)
        store = type(self._store).__name__
        why = f"{store} has no `{name}`: it does not implement the port {port} (everturn.core.ports), which this needs"
        if port in (
            "Accounts",
            "UserMemory",
            "ScheduleStore",
            "SharingStore",
            "WebhookStore",
        ):  # properties, not methods
            raise ConfigError(why)

        async def missing(*_: object, **__: object) -> NoReturn:
            raise ConfigError(why)

        return missing


def complete_store(store: TurnStore) -> Store:
    """Return the store itself if it implements all ports, or else with the missing methods added.

    Raises:
        ConfigError: it cannot run turns; the message names the missing methods.
    """
    if not hasattr(store, "append"):
        raise ConfigError(f'{store!r} is not a store; for example store="talks.db"')
    needed = [name for port in (EventLog, CommandInbox) for name in _methods(port)]
    if missing := [name for name in needed if not hasattr(store, name)]:
        raise ConfigError(
            f"{type(store).__name__} cannot run turns: it has no {', '.join(f'`{name}`' for name in missing)}; the ports "
            "EventLog and CommandInbox (everturn.core.ports) say what each does"
        )
    if all(hasattr(type(store), name) or hasattr(store, name) for name in OPTIONAL_METHODS):
        return cast("Store", store)
    return cast("Store", PartialStore(store))
