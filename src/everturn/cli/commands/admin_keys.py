"""`everturn admin keys`: the keys that tokens are signed with, and the keys of tenants that the store is encrypted with."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from typing import Any, Final

from everturn.cli.config_options import OPERATOR, resolve_signing_keys
from everturn.cli.output import count_nouns
from everturn.core.tenants.accounts import LOCAL, AuditRecord
from everturn.core.tenants.signing_keys import KEY_NAMES, KeyName, SigningKeys
from everturn.errors import ConfigError
from everturn.stores.signing_keys import CACHE_SECONDS
from everturn.stores.sql.store import SqlStore

NOT_ENCRYPTED: Final = "the store is not encrypted: configure [store.encryption] first"
_NEXT: Final = (
    "`everturn admin keys retire` ends the rotation, when nothing that the old keys signed is needed any more"
)


async def manage_keys(options: argparse.Namespace, store: SqlStore, name: str) -> list[str]:
    """Run a command about keys.

    Raises:
        ConfigError: there are no keys of such a name; a key would be retired that is in use; or the store is not encrypted.
    """
    if options.action in ("rewrap", "destroy"):
        return await (_rewrap if options.action == "rewrap" else _destroy)(options, store)
    names: list[KeyName] = [_key_name(text) for text in options.names] or list(KEY_NAMES)
    store.accounts.keys.configured = resolve_signing_keys(options)
    if options.action == "list":
        return [*await _list(names, store.accounts.keys), *await _list_encryption(store)]
    now = time.time()
    if options.action == "rotate":
        if store.accounts.keys.configured:
            raise ConfigError("the keys are in [auth] signing_keys: add a new one at the beginning of that list")
        for key in names:
            await store.accounts.keys.add(key, now)
        lines = [f"new keys sign: {', '.join(names)}; the keys before them verify", _NEXT]
    else:
        lines = await _retire(options, names, store.accounts.keys, now)
    detail = ",".join(names)
    await store.accounts.append_audit(AuditRecord(LOCAL, now, OPERATOR, "", f"keys.{options.action}", detail))
    return lines


async def _list(names: list[KeyName], keys: SigningKeys) -> list[str]:
    lines: list[str] = []
    if keys.configured:
        lines.append(f"[auth] signing_keys: {count_nouns(key=len(keys.configured))}; the first signs, all verify")
    for name in names:
        stored = await keys.stored(name)
        for position, key in enumerate(stored):
            since = (
                datetime.fromtimestamp(key.created, UTC).isoformat(timespec="seconds") if key.created else "the start"
            )
            does = "signs" if position == 0 and not keys.configured else "verifies"
            lines.append(f"{name:10} {does:9} since {since}")
        if not stored:
            lines.append(f"{name:10} no stored key")
    return lines


async def _retire(options: argparse.Namespace, names: list[KeyName], keys: SigningKeys, now: float) -> list[str]:
    if options.all and not keys.configured:
        raise ConfigError("with --all, no signing key would remain: configure [auth] signing_keys first")
    for name in names:
        newest = (await keys.stored(name) or [None])[0]
        if newest is not None and newest.created > now - CACHE_SECONDS:
            raise ConfigError(
                f"the newest key of {name} is not yet used by every process; wait {CACHE_SECONDS:.0f} seconds"
            )
    count = 0
    for name in names:
        count += await keys.retire(name, keeps_newest=not options.all)
    return [
        f"retired: {count_nouns(key=count)}; within {CACHE_SECONDS:.0f} seconds every process refuses what they signed"
    ]


# Encryption -----------------------------------------------------------------------------------------------------------


async def _list_encryption(store: SqlStore) -> list[str]:
    provider = store.key_provider
    describe: Any = getattr(provider, "describe", None)
    if describe is None:
        return [] if provider is None else ["encryption: the keys of tenants are with the configured provider"]
    counts, destroyed = await describe()
    newest: str = getattr(provider, "newest_master", "")
    lines = [
        f"encryption {'wraps' if master == newest else 'unwraps':9} {count_nouns(tenant=count)}, master key {master}"
        for master, count in (counts or {newest: 0}).items()
    ]
    return [*lines, f"encryption {'destroyed':9} {count_nouns(tenant=destroyed)}"] if destroyed else lines


async def _rewrap(options: argparse.Namespace, store: SqlStore) -> list[str]:
    if store.key_provider is None:
        raise ConfigError(NOT_ENCRYPTED)
    count = await store.key_provider.rewrap()
    await store.accounts.append_audit(AuditRecord(LOCAL, time.time(), OPERATOR, "", "keys.rewrap", "encryption"))
    return [
        f"rewrapped: {count_nouns(key=count)}; the first of master_keys wraps them all, and the others can be removed"
    ]


async def _destroy(options: argparse.Namespace, store: SqlStore) -> list[str]:
    if store.key_provider is None:
        raise ConfigError(NOT_ENCRYPTED)
    tenant: str = options.tenant
    # First: a process that dies in between leaves a record.
    await store.accounts.append_audit(AuditRecord(tenant, time.time(), OPERATOR, "", "keys.destroy", tenant))
    if not await store.destroy_key(tenant):
        return [f"the key of {tenant} was destroyed before"]
    return [
        f"the key of {tenant} is destroyed: nothing that it wrote can be read, here or in a backup of the store",
        "delete other copies of the keyring; `everturn admin erase --all-users` removes what cannot be read",
    ]


def _key_name(text: str) -> KeyName:
    for name in KEY_NAMES:
        if text == name:
            return name
    raise ConfigError(f"there are no keys {text!r}; there are {', '.join(KEY_NAMES)}")
