"""Accounts: `everturn login`, `keys` and `users` create and list logins, API keys and users directly in the store."""

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
from shlex import quote
from typing import Any
from urllib.parse import urlsplit

from everturn.cli.commands import user_links
from everturn.cli.commands.serve import address_file
from everturn.cli.config_options import OPERATOR, config_file, require_existing_store, resolve_store
from everturn.cli.output import show_slow_operation
from everturn.cli.store.server import find_server, sidecar_path
from everturn.clock import SystemClock
from everturn.config.build import CommandLineOverrides, server_options, token_file
from everturn.config.load import load_config
from everturn.core.tenants.accounts import LOCAL, Accounts, AuditRecord, Credential, Role, Tenant, User
from everturn.errors import ConfigError
from everturn.stores.registry import get_store

DAY = 86_400.0  # seconds


def run_account_command(options: argparse.Namespace) -> int:
    """Run a login, keys or users command, and print its result.

    Raises:
        ConfigError: there is no such store, user or key.
    """
    with show_slow_operation("asking the store"):
        lines = asyncio.run(_run(options, require_existing_store(resolve_store(options))))
    if options.command == "login":
        url = (options.url or _server_url(options)).rstrip("/")
        lines = [f"{url}/login?token={link}" for link in lines]
    elif getattr(options, "about", "") in ("invite", "reset-password"):
        url = (options.url or _server_url(options)).rstrip("/")
        lines = [f"{url}/#/invite/{secret}" for secret in lines]
    for line in lines:
        print(line)
    return 0


async def _run(options: argparse.Namespace, name: str) -> list[str]:
    store: Any = get_store(name)
    try:
        accounts: Accounts = store.accounts
        about = options.command if options.command == "login" else f"{options.command} {options.about}"
        return await _HANDLERS[about](options, accounts)
    finally:
        await store.aclose()


async def _login(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    from everturn.access.auth.authentication import Authenticator
    from everturn.client.http import validate_urls

    if options.url:
        validate_urls(options.url)
    if options.user != LOCAL or options.tenant != LOCAL:
        await _require_user(accounts, options.tenant, options.user)
    link = await Authenticator(accounts, SystemClock()).login_link(options.tenant, options.user)
    await _audit(accounts, options.tenant, "link.create", options.user)
    return [link]


def _server_url(options: argparse.Namespace) -> str:
    """Return the URL of the server: its public URL, the address it published at its start, or the configured one."""
    loaded = load_config(config_file(options))
    server = server_options(loaded, CommandLineOverrides(), {**os.environ})
    if server.public_url:
        return server.public_url
    store = resolve_store(options)
    if (running := asyncio.run(find_server(sidecar_path(store, os.environ)))) is not None:
        return running.address
    published = address_file(token_file(loaded, store, os.environ))
    host = f"[{server.host}]" if ":" in server.host else server.host
    url = f"http://{host}:{server.port}"
    with suppress(OSError):
        url = published.read_text(encoding="utf-8").strip()
    if not is_listening(url):  # a server that was killed has not removed its address file
        print(f"note: no server answers at {url}; give the address of the server with --url", file=sys.stderr)
    return url


def is_listening(url: str) -> bool:
    """Whether a server accepts connections at a URL; the published address may be outdated."""
    try:
        address = urlsplit(url)
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=1.0):
            return True
    except (OSError, ValueError):
        return False


async def _add_key(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    await _require_user(accounts, options.tenant, options.user)
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
    await _audit(accounts, options.tenant, "key.create", credential.id, user=options.user, role=options.role)
    return [secret]


async def _list_keys(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    keys = [key for key in await accounts.credentials(options.tenant) if key.kind == "key"]
    return [f"{key.id}  {key.user!r}  {key.role:<8}  {_validity(key)}  {key.name!r}" for key in keys] or [
        f"no keys in {options.tenant!r}"
    ]


async def _revoke_key(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    if not await accounts.revoke(options.tenant, options.key, time.time()):
        list_command = f"everturn keys list{_tenant_option(options.tenant)}"
        raise ConfigError(f"there is no key {options.key!r} that is valid; `{list_command}` lists them")
    await _audit(accounts, options.tenant, "key.revoke", options.key)
    return [f"{options.key} is revoked"]


async def _add_user(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    from everturn.access.context.scope import check_user_id

    check_user_id(options.user, "the id of a user")
    known, now = await accounts.user(options.tenant, options.user), time.time()
    if options.tenant not in {tenant.id for tenant in await accounts.tenants()}:
        if options.tenant != LOCAL:
            raise ConfigError(f"there is no tenant {options.tenant!r}; name it in the configuration: [tenants.NAME]")
        await accounts.put_tenant(Tenant(LOCAL, created=now))
    existing = known[0] if known is not None else User(options.tenant, options.user, created=now)
    origin = existing.origin if options.origin is None else options.origin
    role: Role = options.role or existing.role
    if (existing.tenant, existing.id) == (LOCAL, LOCAL) and role != "operator":
        raise ConfigError(f"{LOCAL!r} is the operator of the server and cannot be changed; name another user")
    updated = User(existing.tenant, existing.id, options.name or existing.name, role, True, existing.created, origin)
    await accounts.put_user(updated)
    await _audit(accounts, options.tenant, "user.put", options.user, role=role, origin=origin)
    issuer = f", also with tokens of {origin}" if origin else ""
    add_key_command = f"everturn keys add {quote(updated.id)}{_tenant_option(updated.tenant)}"
    return [f"{updated.id} is {updated.role} of {updated.tenant}{issuer}; a key for them: {add_key_command}"]


async def _list_users(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    users = await accounts.users(options.tenant)
    lines = [
        f"{user.id!r}  {user.role:<8}  {user.name!r}{'' if user.is_active else '  not active'}"
        f"{f'  tokens of {user.origin}' if user.origin else ''}"
        for user in users
    ]
    return lines or [f"no users in {options.tenant!r}"]


_HANDLERS = {
    "login": _login,
    "keys add": _add_key,
    "keys list": _list_keys,
    "keys revoke": _revoke_key,
    "users add": _add_user,
    "users list": _list_users,
    "users invite": user_links.invite_user,
    "users reset-password": user_links.reset_user_password,
    "users invitations": user_links.list_invitations,
    "users disable": user_links.set_user_active,
    "users enable": user_links.set_user_active,
    "users remove": user_links.remove_user,
}


async def _require_user(accounts: Accounts, tenant: str, user: str) -> User:
    known = await accounts.user(tenant, user)
    if known is None:
        add_command = f"everturn users add {quote(user)}{_tenant_option(tenant)}"
        raise ConfigError(f"there is no user {user!r} in {tenant!r}; `{add_command}` creates one")
    return known[0]


def _tenant_option(tenant: str) -> str:
    """Return the `--tenant` option for a tenant, "" for the default one."""
    return "" if tenant == LOCAL else f" --tenant {quote(tenant)}"


async def _audit(accounts: Accounts, tenant: str, action: str, target: str, **detail: str) -> None:
    text = json.dumps(detail, sort_keys=True) if detail else ""
    await accounts.append_audit(AuditRecord(tenant, time.time(), OPERATOR, "", action, target, text))


def _validity(credential: Credential) -> str:
    if credential.revoked:
        return f"revoked {_date(credential.revoked)}"
    return f"until {_date(credential.expires)}" if credential.expires else f"since {_date(credential.created)}"


def _date(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}"
