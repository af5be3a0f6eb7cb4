"""What a token of a provider claims → who that is here, and what they may do.

What people are called there is often for them to choose, and here it may be somebody else's name: a token only speaks of
users who were made by one of the same issuer, or marked for it. And it makes nobody an operator, whatever they are here.
"""

from __future__ import annotations

from typing import Any, Final, cast

from msgspec import DecodeError, json
from msgspec.structs import replace

from everturn.access.inside import checked_name
from everturn.access.options import OidcOptions
from everturn.core.accounts import ROLES, Accounts, AuditRecord, Principal, Role, User, is_at_least, least
from everturn.core.canonical import canonical, digest
from everturn.errors import ConfigError

CHANGES: Final = ("user.create", "user.change", "user.deactivate")
"""What is noted when somebody becomes more or less."""

MOST: Final[Role] = "owner"
"""What a token can make of somebody at most."""


async def claimed(
    accounts: Accounts, options: OidcOptions, claims: dict[str, Any], unique: str, now: float
) -> Principal | None:
    """Whom the claims of a token speak of; None when that is nobody here. `unique` names a token that has no name."""
    tenant = claims.get(options.tenant_claim) if options.tenant_claim else options.tenant
    user, jti = claims.get(options.user_claim), claims.get("jti")
    if not isinstance(tenant, str) or not isinstance(user, str):
        return None
    try:
        checked_name(user, "user")
    except ConfigError:  # it would sign as somebody else
        return None
    role = await _role_in(accounts, tenant, user, options, said_role(options, claims), _issued(claims), now)
    if role is None:
        return None
    name = digest(options.issuer, jti) if isinstance(jti, str) and jti else unique
    return Principal(tenant, user, role, f"token_{name[:32]}", "token", float(claims["exp"]) + options.leeway)


async def _role_in(
    accounts: Accounts, tenant: str, user: str, options: OidcOptions, said: Role | None, issued: float, now: float
) -> Role | None:
    found = await accounts.user(tenant, user)
    if found is not None:
        if not speaks_of(options, found[0]) or not found[0].is_active or not found[1].is_active:
            return None
        if not options.role_claim:
            return least(found[0].role, MOST)
        # Their keys and logins are good for what the row says: what the provider takes away is taken from them too.
        role = least(said or ROLES[0], MOST)
        if role != found[0].role and is_at_least(MOST, found[0].role):
            if issued < _last_word(await accounts.last_note(tenant, user, CHANGES)):
                # Something newer was said: this token makes them neither more nor less, and is good for the lesser.
                return None if said is None else least(role, found[0].role)
            detail = canonical({"issued": issued, "role": role})
            await accounts.note(AuditRecord(tenant, now, user, "", "user.change", user, detail))
            await accounts.put_user(replace(found[0], role=role))
        return None if said is None else role
    tenants = {one.id: one for one in await accounts.tenants()}
    if said is None or tenant not in tenants or not tenants[tenant].is_active:
        return None
    # So that there is somebody who can be seen, and turned away.
    said = least(said, MOST)
    if not await accounts.add_user(User(tenant, user, role=said, created=now, origin=options.issuer)):
        return await _role_in(accounts, tenant, user, options, said, issued, now)  # somebody was first
    await accounts.note(AuditRecord(tenant, now, user, "", "user.create", user, canonical({"issued": issued})))
    return said


def _issued(claims: dict[str, Any]) -> float:
    """When a token was issued; one that does not say so is older than everything."""
    value = claims.get("iat")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _last_word(record: AuditRecord | None) -> float:
    """When what somebody may do was last said: by a token, which has a date, or by a person, just then."""
    if record is None:
        return 0.0
    try:
        detail = json.decode(record.detail, type=dict[str, Any]) if record.detail else {}
    except DecodeError:
        detail = {}
    issued = detail.get("issued")
    return float(issued) if isinstance(issued, int | float) else record.at


def speaks_of(options: OidcOptions, user: User) -> bool:
    """Whether tokens of this provider may speak of a user."""
    return bool(options.issuer) and user.origin == options.issuer


def said_role(options: OidcOptions, claims: dict[str, Any]) -> Role | None:
    """The highest role that a token gives; what nobody has listed gives none, and whoever has none is given `role`."""
    value: Any = claims.get(options.role_claim) if options.role_claim else None
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    best: Role | None = None
    for one in values:
        role = options.roles.get(one) if isinstance(one, str) else None
        if role is not None and (best is None or is_at_least(role, best)):
            best = role
    return best or options.role
