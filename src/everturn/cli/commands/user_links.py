"""`everturn users invite`, `reset-password`, `invitations`, `disable`, `enable` and `remove`, directly in the store."""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import time
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from everturn.cli.config_options import OPERATOR
from everturn.core.tenants.accounts import LOCAL, Accounts, AuditRecord, User
from everturn.core.tenants.user_records import INVITATION_PREFIX, Invitation
from everturn.errors import ConfigError

RESET_HOURS = 24.0
REMOVED = "this user was removed, and the id belongs to their conversations; take another id, or erase them first"


async def invite_user(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    """Create an invitation; return its secret.

    Raises:
        ConfigError: there is such a user, or the id is invalid.
    """
    from everturn.access.context.scope import check_user_id

    check_user_id(options.user, "the id of a user")
    if (await accounts.records.record(options.tenant, options.user)).removed:
        raise ConfigError(REMOVED)
    if await accounts.user(options.tenant, options.user) is not None:
        raise ConfigError(f"user {options.user!r} already exists in {options.tenant!r}")
    row = Invitation("", options.tenant, "invitation", options.user, "", options.name, options.role)
    return [await _add(accounts, row, options.hours, "user.invite")]


async def reset_user_password(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    """Create a link that sets a new password; return its secret.

    Raises:
        ConfigError: there is no such user.
    """
    user = await _user(options, accounts)
    if not user.is_active:
        raise ConfigError(f"{user.id!r} is disabled; run `everturn users enable` first")
    row = Invitation("", user.tenant, "reset", user.id, "", user.name, user.role)
    return [await _add(accounts, row, RESET_HOURS, "user.reset_password")]


async def list_invitations(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    """Return a line for each open invitation."""
    now = time.time()
    rows = [row for row in await accounts.records.invitations(options.tenant) if row.is_open(now)]
    lines = [
        f"{row.id}  {row.user!r}  {row.role:<8}  {row.kind}  until "
        f"{datetime.fromtimestamp(row.expires, UTC):%Y-%m-%d %H:%M} UTC"
        for row in rows
    ]
    return lines or [f"no open invitations in {options.tenant!r}"]


async def set_user_active(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    """Disable a user, whose logins end, or enable them again.

    Raises:
        ConfigError: there is no such user.
        Forbidden: it is the last owner.
    """
    user, is_active = await _user(options, accounts), options.about == "enable"
    await _audit(accounts, user.tenant, "user.change" if is_active else "user.deactivate", user.id)
    await accounts.put_user(replace(user, is_active=is_active), keeps_owner=True)
    if not is_active:
        await accounts.records.revoke_credentials(user.tenant, user.id, time.time(), with_keys=False)
    return [f"{user.id} is {'enabled' if is_active else 'disabled'}"]


async def remove_user(options: argparse.Namespace, accounts: Accounts) -> list[str]:
    """Remove a user: keys and logins end, conversations stay.

    Raises:
        ConfigError: there is no such user.
        Forbidden: it is the last owner.
    """
    user, now = await _user(options, accounts), time.time()
    await _audit(accounts, user.tenant, "user.remove", user.id, role=user.role)
    await accounts.put_user(replace(user, name="", is_active=False), keeps_owner=True)
    await accounts.records.remove_user(user.tenant, user.id, now)
    await accounts.records.revoke_credentials(user.tenant, user.id, now, with_keys=True)
    for row in await accounts.records.invitations(user.tenant):
        if row.user == user.id:
            await accounts.records.revoke_invitation(user.tenant, row.id, now)
    return [f"{user.id} is removed; `everturn admin erase --user` also erases what they wrote"]


async def _user(options: argparse.Namespace, accounts: Accounts) -> User:
    known = await accounts.user(options.tenant, options.user)
    removed = (await accounts.records.record(options.tenant, options.user)).removed
    if known is None or (removed and not known[0].is_active):
        raise ConfigError(f"there is no user {options.user!r} in {options.tenant!r}; `everturn users list` lists them")
    if (known[0].tenant, known[0].id) == (LOCAL, LOCAL) and options.about in ("disable", "remove"):
        raise ConfigError(f"{LOCAL!r} is the operator of the server and cannot be changed; name another user")
    return known[0]


async def _add(accounts: Accounts, row: Invitation, hours: float, action: str) -> str:
    secret, now = f"{INVITATION_PREFIX}{secrets.token_urlsafe(32)}", time.time()
    made = replace(
        row,
        id=f"invite_{secrets.token_hex(8)}",
        hash=hashlib.sha256(secret.encode()).hexdigest(),
        by=OPERATOR,
        created=now,
        expires=now + hours * 3600.0,
    )
    await _audit(accounts, made.tenant, action, made.user, invitation=made.id, role=made.role)
    for other in await accounts.records.invitations(row.tenant):
        if other.user == row.user:
            await accounts.records.revoke_invitation(row.tenant, other.id, now)
    await accounts.records.add_invitation(made)
    return secret


async def _audit(accounts: Accounts, tenant: str, action: str, target: str, **detail: Any) -> None:
    text = json.dumps(detail, sort_keys=True) if detail else ""
    await accounts.append_audit(AuditRecord(tenant, time.time(), OPERATOR, "", action, target, text))
