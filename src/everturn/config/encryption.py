"""Encryption of the store: the key provider that `[store.encryption]` configures."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from everturn.config.modules import load_object
from everturn.core.tenants.encryption import KeyProvider
from everturn.errors import ConfigError
from everturn.postgres.address import is_postgres_url

if TYPE_CHECKING:
    from everturn.config.load import LoadedConfig
    from everturn.stores.encryption.keyring import Keyring


def encrypt_store(store: Any, loaded: LoadedConfig, environ: Mapping[str, str], name: str = "") -> None:
    """Encrypt a store as it is configured. `name` is its file or URL.

    Raises:
        ConfigError: a key is missing or invalid, or this kind of store cannot be encrypted.
    """
    provider = key_provider(loaded, environ, name)
    if provider is None:
        return
    encrypt = getattr(store, "encrypt", None)
    if encrypt is None:
        raise ConfigError("[store.encryption] is for a store in a file or in PostgreSQL; this one has no encryption")
    encrypt(provider, allow_plaintext=loaded.config.store.encryption.allow_plaintext)


def key_provider(loaded: LoadedConfig, environ: Mapping[str, str], store: str = "") -> KeyProvider | None:
    """Return the configured key provider; None if encryption is not configured.

    Raises:
        ConfigError: a key is missing or invalid.
    """
    table = loaded.config.store.encryption
    if not table.provider:
        return configured_keyring(loaded, environ, store)
    if table.keyring or table.master_keys:
        raise ConfigError("[store.encryption] has a provider, which keeps the keys: remove keyring and master_keys")
    where = loaded.tree.where(("store", "encryption", "provider"))
    return load_object(table.provider, Path(where.source).resolve().parent if where.line else None)()


def configured_keyring(loaded: LoadedConfig, environ: Mapping[str, str], store: str = "") -> Keyring | None:
    """Return the configured keyring, if there is one.

    Raises:
        ConfigError: a key is missing or invalid, or a package is not installed.
    """
    table = loaded.config.store.encryption
    if not table.keyring and not table.master_keys:
        return None
    place = str(table.keyring.resolved(environ))
    where = loaded.tree.where(("store", "encryption", "keyring"))
    if place and not is_postgres_url(place) and where.line:
        place = str(Path(where.source).resolve().parent / place)  # beside the configuration
    try:
        from everturn.stores.encryption.keyring import open_keyring
    except ModuleNotFoundError as error:
        raise ConfigError(f"{error.name} is not installed; `pip install 'everturn[encryption]'`") from error
    return open_keyring(place, [str(key.resolved(environ)) for key in table.master_keys], store)
