"""`everturn admin keys`: lists, rotates and retires the keys that tokens are signed with."""

from __future__ import annotations

import argparse
import time
from datetime import UTC, datetime
from typing import Final

from everturn.cli.config_options import OPERATOR, resolve_signing_keys
from everturn.cli.output import count_nouns
from everturn.core.accounts import LOCAL, AuditRecord
from everturn.core.signing_keys import KEY_NAMES, KeyName, SigningKeys
from everturn.errors import ConfigError
from everturn.stores.signing_keys import CACHE_SECONDS
from everturn.stores.sql.store import SqlStore

_NEXT: Final = (
    "`everturn admin keys retire` ends the rotation, when nothing that the old keys signed is needed any more"
)


async def manage_keys(options: argparse.Namespace, store: SqlStore, name: str) -> list[str]:
    """Run a command about signing keys.

    Raises:
        ConfigError: there are no keys of such a name; or a key would be retired that is in use.
    """
    names: list[KeyName] = [_key_name(given) for given in options.names] or list(KEY_NAMES)
    store.accounts.keys.configured = resolve_signing_keys(options)
    if options.action == "list":
        return await _list(names, store.accounts.keys)
    now = time.time()
    if options.action == "rotate":
        if store.accounts.keys.configured:
            raise ConfigError("[auth] signing_keys has the keys: put a new one in front of them")
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
        raise ConfigError("--all leaves no key that signs: configure [auth] signing_keys first")
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


def _key_name(given: str) -> KeyName:
    for name in KEY_NAMES:
        if given == name:
            return name
    raise ConfigError(f"there are no keys {given!r}; there are {', '.join(KEY_NAMES)}")
