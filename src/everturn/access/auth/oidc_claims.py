"""OpenID Connect claims: maps the claims of a token to a user and a role of a tenant.

Users can often choose their names at the provider, and the same name may be another user here: a token only stands for
users that were created by the same issuer or assigned to it. A token never makes anyone an operator.
"""

from __future__ import annotations

from typing import Any, Final, cast

from msgspec import DecodeError, json
from msgspec.structs import replace

from everturn.access.auth.options import OidcOptions
from everturn.access.context.scope import check_user_id
from everturn.core.canonical_json import encode_canonical, hash_values
from everturn.core.tenants.accounts import ROLES, Accounts, AuditRecord, Principal, Role, User, is_at_least, lower_role
from everturn.errors import ConfigError

ROLE_CHANGES: Final = ("user.create", "user.change", "user.deactivate")
"""The audit actions that change a role."""

MAX_TOKEN_ROLE: Final[Role] = "owner"
"""The highest role that a token can give."""


async def principal_from_claims(
    accounts: Accounts, options: OidcOptions, claims: dict[str, Any], unique: str, now: float
) -> Principal | None:
    """The principal of a token's claims; None if the tenant has no such user. `unique` identifies a token without `jti`."""
    tenant = claims.get(options.tenant_claim) if options.tenant_claim else options.tenant
    user, jti = claims.get(options.user_claim), claims.get("jti")
    if not isinstance(tenant, str) or not isinstance(user, str):
        return None
    try:
        check_user_id(user, "user")
    except ConfigError:  # it would sign as the runtime or a plugin
        return None
    role = await _role_in(accounts, tenant, user, options, role_from_claims(options, claims), _issued(claims), now)
    if role is None:
        return None
    name = hash_values(options.issuer, jti) if isinstance(jti, str) and jti else unique
    return Principal(tenant, user, role, f"token_{name[:32]}", "token", float(claims["exp"]) + options.leeway)


async def _role_in(
    accounts: Accounts,
    tenant: str,
    user: str,
    options: OidcOptions,
    claimed_role: Role | None,
    issued: float,
    now: float,
) -> Role | None:
    found = await accounts.user(tenant, user)
    if found is not None:
        if not is_user_of_issuer(options, found[0]) or not found[0].is_active or not found[1].is_active:
            return None
        if not options.role_claim:
            return lower_role(found[0].role, MAX_TOKEN_ROLE)
        # The user's keys and logins are capped by the stored role, so a role that the provider revokes is revoked there too.
        role = lower_role(claimed_role or ROLES[0], MAX_TOKEN_ROLE)
        if role != found[0].role and is_at_least(MAX_TOKEN_ROLE, found[0].role):
            if issued < _last_word(await accounts.last_audit(tenant, user, ROLE_CHANGES)):
                # The role was changed later: this token changes nothing, and gets the lower of both roles.
                return None if claimed_role is None else lower_role(role, found[0].role)
            detail = encode_canonical({"issued": issued, "role": role})
            await accounts.append_audit(AuditRecord(tenant, now, user, "", "user.change", user, detail))
            await accounts.put_user(replace(found[0], role=role))
        return None if claimed_role is None else role
    tenants = {row.id: row for row in await accounts.tenants()}
    if claimed_role is None or tenant not in tenants or not tenants[tenant].is_active:
        return None
    # Stored, so that owners can see and deactivate the user.
    claimed_role = lower_role(claimed_role, MAX_TOKEN_ROLE)
    if not await accounts.add_user(User(tenant, user, role=claimed_role, created=now, origin=options.issuer)):
        # Another request has created the user first.
        return await _role_in(accounts, tenant, user, options, claimed_role, issued, now)
    await accounts.append_audit(
        AuditRecord(tenant, now, user, "", "user.create", user, encode_canonical({"issued": issued}))
    )
    return claimed_role


def _issued(claims: dict[str, Any]) -> float:
    """When a token was issued; one without `iat` is older than everything."""
    value = claims.get("iat")
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def _last_word(record: AuditRecord | None) -> float:
    """When the role was last changed: by a token, at its date of issue, or by a person, at the time of the entry."""
    if record is None:
        return 0.0
    try:
        detail = json.decode(record.detail, type=dict[str, Any]) if record.detail else {}
    except DecodeError:
        detail = {}
    issued = detail.get("issued")
    return float(issued) if isinstance(issued, int | float) else record.at


def is_user_of_issuer(options: OidcOptions, user: User) -> bool:
    """Whether tokens of this provider may stand for a user."""
    return bool(options.issuer) and user.origin == options.issuer


def role_from_claims(options: OidcOptions, claims: dict[str, Any]) -> Role | None:
    """The highest role in a token's claims. Unlisted values give none; without any, the configured `role`."""
    value: Any = claims.get(options.role_claim) if options.role_claim else None
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    best: Role | None = None
    for name in values:
        role = options.roles.get(name) if isinstance(name, str) else None
        if role is not None and (best is None or is_at_least(role, best)):
            best = role
    return best or options.role
