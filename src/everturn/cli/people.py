"""`everturn login`, `keys` and `users`: who may come in, seen to by whoever has the store at hand."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import secrets
import socket
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import urlsplit

from everturn.cli.saying import long_wait
from everturn.cli.serving import address_file, config_file
from everturn.cli.store_server import beside, find_server
from everturn.clock import SystemClock
from everturn.config.building import Given, cluster_of, server_options, store_of, token_file
from everturn.config.loading import load
from everturn.core.accounts import LOCAL, Accounts, AuditRecord, Credential, Role, Tenant, User
from everturn.errors import ConfigError, StoreUnavailable
from everturn.stores.named import SUFFIXES, named_store

DAY = 86_400.0  # seconds
BY = "operator"  # how it is written down: whoever has the store may do anything


def store_meant(options: argparse.Namespace) -> str:
    """The store that is said, or configured: that of the cluster, where a database is configured for one.

    Raises:
        ConfigError: the configuration makes no sense.
    """
    if options.store:
        return options.store
    loaded = load(config_file(options))
    if not loaded.config.store.url and (loaded.config.cluster.database or os.environ.get("EVERTURN_DATABASE")):
        return cluster_of(loaded, {}, os.environ).database
    return store_of(loaded, "", os.environ)


def there(store: str) -> str:
    """The name of a store that was made before: looking must not make one.

    Raises:
        ConfigError: there is none.
        StoreUnavailable: it is on a server, and nobody answers there; to connect is tried for half a minute, and a
            person who mistyped an address is not made to wait for that.
    """
    if store == "memory":
        raise ConfigError("what is in memory only its own process sees; name a file or a database with --store")
    if "://" not in store and Path(store).suffix in SUFFIXES and not Path(store).exists():
        raise ConfigError(f"there is no store {store} yet; start `everturn serve` first, or name another with --store")
    with suppress(ValueError):  # which is no address, and `named_store` says so
        where = urlsplit(store)
        if where.scheme in ("postgresql", "postgres") and where.hostname and "," not in where.netloc:
            _refuse_if_silent(where.hostname, where.port or 5432)
    return store


def _refuse_if_silent(host: str, port: int) -> None:
    try:
        socket.create_connection((host, port), timeout=5.0).close()
    except OSError as error:
        raise StoreUnavailable(f"nobody answers at {host}:{port} ({error.strerror or error})") from None


def people(options: argparse.Namespace) -> int:
    """Do what is asked, and say what came of it.

    Raises:
        ConfigError: there is no such store, user or key.
    """
    with long_wait("asking the store"):
        lines = asyncio.run(_people(options, there(store_meant(options))))
    if options.command == "login":
        url = (options.url or _where_it_is(options)).rstrip("/")
        lines = [f"{url}/login?token={link}" for link in lines]
    for line in lines:
        print(line)
    return 0


async def _people(options: argparse.Namespace, name: str) -> list[str]:
    store: Any = named_store(name)
    try:
        accounts: Accounts = store.accounts
        about = options.command if options.command == "login" else f"{options.command} {options.about}"
        return await _DOES[about](options, accounts)
    finally:
        await store.aclose()


async def _login(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    from everturn.access.entrance import Entrance
    from everturn.client.speaking import checked_urls

    if options.url:
        checked_urls(options.url)
    if options.user != LOCAL or options.tenant != LOCAL:
        await _user(accounts, options.tenant, options.user)
    link = await Entrance(accounts, SystemClock()).login_link(options.tenant, options.user)
    await _note(accounts, options.tenant, "link.create", options.user)
    return [link]


def _where_it_is(options: argparse.Namespace) -> str:
    """Where the server is: as browsers know it, as it said itself when it began, or as it is configured."""
    loaded = load(config_file(options))
    how = server_options(loaded, Given(), {**os.environ})
    if how.public_url:
        return how.public_url
    store = store_meant(options)
    if (found := asyncio.run(find_server(beside(store, os.environ)))) is not None:
        return found.address
    place = address_file(token_file(loaded, store, os.environ))
    host = f"[{how.host}]" if ":" in how.host else how.host
    url = f"http://{host}:{how.port}"
    with suppress(OSError):
        url = place.read_text(encoding="utf-8").strip()
    if not answers(url):  # a server that was killed has not taken its word back
        print(f"note: nobody listens at {url} now; if the server is elsewhere, say where: --url", file=sys.stderr)
    return url


def answers(url: str) -> bool:
    """Whether somebody listens there: a server that was told another port may not be known here."""
    try:
        where = urlsplit(url)
        with socket.create_connection((where.hostname or "", where.port or 0), timeout=1.0):
            return True
    except (OSError, ValueError):
        return False


async def _add_key(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    await _user(accounts, options.tenant, options.user)
    secret, now = f"evk_{secrets.token_urlsafe(32)}", time.time()
    credential = Credential(
        id=f"key_{secrets.token_hex(8)}",
        tenant=options.tenant,
        user=options.user,
        kind="key",
        hash=hashlib.sha256(secret.encode()).hexdigest(),
        name=options.name,
        role=options.role,
        created=now,
        expires=now + options.days * DAY if options.days else 0.0,
    )
    await accounts.put_credential(credential)
    await _note(accounts, options.tenant, "key.create", credential.id, user=options.user, role=options.role)
    return [secret]


async def _list_keys(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    found = [one for one in await accounts.credentials(options.tenant) if one.kind == "key"]
    return [f"{one.id}  {one.user!r}  {one.role:<8}  {_holds(one)}  {one.name!r}" for one in found] or [
        f"no keys in {options.tenant!r}"
    ]


async def _revoke_key(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    if not await accounts.revoke(options.tenant, options.key, time.time()):
        listed = f"everturn keys list{_of(options.tenant)}"
        raise ConfigError(f"there is no key {options.key!r} that holds; `{listed}` shows those that there are")
    await _note(accounts, options.tenant, "key.revoke", options.key)
    return [f"{options.key} holds no more"]


async def _add_user(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    from everturn.access.inside import checked_name

    checked_name(options.user, "the id of a user")
    known, now = await accounts.user(options.tenant, options.user), time.time()
    if options.tenant not in {tenant.id for tenant in await accounts.tenants()}:
        if options.tenant != LOCAL:
            raise ConfigError(f"there is no tenant {options.tenant!r}; name it in the configuration: [tenants.NAME]")
        await accounts.put_tenant(Tenant(LOCAL, created=now))
    old = known[0] if known is not None else User(options.tenant, options.user, created=now)
    origin = old.origin if options.origin is None else options.origin
    role: Role = options.role or old.role
    if (old.tenant, old.id) == (LOCAL, LOCAL) and role != "operator":
        raise ConfigError(f"{LOCAL!r} is whoever runs the server, and stays its operator; name somebody else")
    new = User(old.tenant, old.id, options.name or old.name, role, True, old.created, origin)
    await accounts.put_user(new)
    await _note(accounts, options.tenant, "user.put", options.user, role=role, origin=origin)
    comes = f", also with tokens of {origin}" if origin else ""
    key = f"everturn keys add {quote(new.id)}{_of(new.tenant)}"
    return [f"{new.id} is {new.role} of {new.tenant}{comes}; a key for them: {key}"]


async def _list_users(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    found = await accounts.users(options.tenant)
    lines = [
        f"{user.id!r}  {user.role:<8}  {user.name!r}{'' if user.is_active else '  not active'}"
        f"{f'  tokens of {user.origin}' if user.origin else ''}"
        for user in found
    ]
    return lines or [f"no users in {options.tenant!r}"]


_DOES = {
    "login": _login,
    "keys add": _add_key,
    "keys list": _list_keys,
    "keys revoke": _revoke_key,
    "users add": _add_user,
    "users list": _list_users,
}


async def _user(accounts: Accounts, tenant: str, user: str) -> User:
    known = await accounts.user(tenant, user)
    if known is None:
        line = f"everturn users add {quote(user)}{_of(tenant)}"
        raise ConfigError(f"there is no user {user!r} in {tenant!r}; `{line}` makes one")
    return known[0]


def _of(tenant: str) -> str:
    """How a tenant is named on a command line."""
    return "" if tenant == LOCAL else f" --tenant {quote(tenant)}"


async def _note(accounts: Accounts, tenant: str, did: str, on: str, **detail: str) -> None:
    text = json.dumps(detail, sort_keys=True) if detail else ""
    await accounts.note(AuditRecord(tenant, time.time(), BY, "", did, on, text))


def _holds(credential: Credential) -> str:
    if credential.revoked:
        return f"revoked {_date(credential.revoked)}"
    return f"until {_date(credential.expires)}" if credential.expires else f"since {_date(credential.created)}"


def _date(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
