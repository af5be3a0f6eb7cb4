"""Configuration file and store of a command: those that its options, the environment or the configuration name."""

from __future__ import annotations

import argparse
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from everturn.config.build import configured_cluster, configured_store, signing_keys
from everturn.config.encryption import encrypt_store
from everturn.config.load import load_config
from everturn.config.worker import FILE
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, StoreUnavailable
from everturn.stores.registry import SUFFIXES, get_store

OPERATOR: Final = "operator"
"""The actor of a command in the audit log of a store: a user with access to the store may do anything."""


def config_file(options: argparse.Namespace) -> str | None:
    """Return the configuration file that is named by the options or the environment, if any."""
    return options.config or os.environ.get(FILE) or None


def resolve_store(options: argparse.Namespace) -> str:
    """Return the store of the options or of the configuration; where a cluster database is configured, that one.

    Raises:
        ConfigError: the configuration is invalid.
    """
    if options.store:
        return options.store
    loaded = load_config(config_file(options))
    if not loaded.config.store.url and (loaded.config.cluster.database or os.environ.get("EVERTURN_DATABASE")):
        return configured_cluster(loaded, {}, os.environ).database
    return configured_store(loaded, "", os.environ)


def resolve_signing_keys(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the signing keys of the configuration.

    Raises:
        ConfigError: the configuration is invalid, or a key is not there.
    """
    return signing_keys(load_config(config_file(options)), os.environ)


async def open_store(options: argparse.Namespace, name: str) -> Store:
    """Open a store, with the encryption of the configuration.

    Raises:
        ConfigError: there is no such kind of store, a key is missing, or the store is encrypted and the configuration is not.
    """
    loaded = load_config(config_file(options))
    store = get_store(name)
    encrypt_store(store, loaded, os.environ, name)
    return await checked_store(store)


async def checked_store(store: Store) -> Store:
    """Return a store, unless it is encrypted with keys that it was not opened with; then it is closed.

    Raises:
        ConfigError: it is encrypted with other keys.
    """
    if (check_encryption := getattr(store, "check_encryption", None)) is not None:
        try:
            await check_encryption()
        except BaseException:
            await store.aclose()
            raise
    return store


def require_existing_store(store: str) -> str:
    """Return the name of an existing store: a command that reads must not create one.

    Raises:
        ConfigError: the store does not exist.
        StoreUnavailable: its database server does not accept connections. The database driver retries for half a
            minute, which is too long for a user who mistyped an address, so the address is tried once before.
    """
    if store == "memory":
        raise ConfigError(
            "a store in memory can be used only by its own process; name a file or a database with --store"
        )
    if "://" not in store and Path(store).suffix in SUFFIXES and not Path(store).exists():
        raise ConfigError(
            f"there is no store {store} yet; `everturn`, `everturn run` and `everturn serve` create it, and --store names another"
        )
    with suppress(ValueError):  # not an address; `named_store` reports that
        address = urlsplit(store)
        if address.scheme in ("postgresql", "postgres") and address.hostname and "," not in address.netloc:
            _check_reachable(address.hostname, address.port or 5432)
    return store


def _check_reachable(host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), timeout=5.0).close()
    except OSError as error:
        raise StoreUnavailable(f"no server answers at {host}:{port} ({error.strerror or error})") from None
