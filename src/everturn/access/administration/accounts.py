"""Account access: users, API keys, tenants, usage and the audit log, for owners of a tenant and operators.

No one can give away a role above their own, or change a user with a higher role.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from everturn import api
from everturn.access.administration.cache_usage import read_cache_usage
from everturn.access.context.quotas import budget_start
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, check_user_id
from everturn.core.options import Spent
from everturn.core.tenants.accounts import LOCAL, Credential, Principal, Role, Tenant, User, is_at_least, is_last_owner
from everturn.core.tenants.user_records import UserBudget, UserRecord
from everturn.errors import ConfigError, Forbidden, UnknownKey
from everturn.stores.accounts import LAST_OWNER

KEY_PREFIX: Final = "evk_"
AUDIT_PAGE_LIMIT: Final = 1000
DAY: Final = 86_400
LAST_DAY: Final = 2_932_896  # of the year 9999: a clock may have been wrong
REMOVED_USER: Final = (
    "user: this one was removed, and the id belongs to their conversations; take another id, or erase them with "
    "`everturn admin erase --user`"
)
_TENANT: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")


def new_secret(prefix: str) -> tuple[str, str]:
    """A new random secret, and the hash that is stored of it."""
    secret = prefix + secrets.token_urlsafe(32)
    return secret, hash_secret(secret)


def hash_secret(secret: str) -> str:
    """The hash that is stored of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class AccountAccess:
    """Access to users, keys and tenants."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("owner")
    async def users(self) -> api.UserList:
        """The users of the tenant."""
        accounts, tenant = self.scope.server_context.accounts, self.scope.principal.tenant
        records, uses = await accounts.records.all_records(tenant), await accounts.records.last_uses(tenant)
        last: dict[str, float] = {}
        for credential in await accounts.credentials(tenant):
            last[credential.user] = max(last.get(credential.user, 0.0), uses.get(credential.id, 0.0))
        views: list[api.UserView] = []
        for user in await accounts.users(tenant):
            record = records.get(user.id, UserRecord(user.id))
            if record.removed and not user.is_active:
                continue
            budget = await self._budget_view(record)
            view = replace(user_view(user), has_password=bool(record.password), budget=budget)
            views.append(replace(view, last_used=last.get(user.id, 0.0)))
        return api.UserList(users=views)

    async def _budget_view(self, record: UserRecord) -> api.UserBudgetView | None:
        if record.budget == UserBudget():
            return None
        now, budget = self.scope.server_context.app.clock.now(), record.budget.budget
        with self.scope.tenant_scope(whole=True):
            spent = await self.scope.store.user_spent(
                self.scope.principal.tenant, record.user, budget_start(record.budget, now)
            )
        return api.UserBudgetView(
            steps=budget.steps,
            calls=budget.calls,
            tokens=budget.tokens,
            cost=budget.cost,
            period=record.budget.period,
            spent=spent,
        )

    @needs("owner")
    async def put_user(self, user: str, put: api.PutUser) -> api.UserView:
        """Create or change a user."""
        accounts, tenant = self.scope.server_context.accounts, self.scope.principal.tenant
        check_user_id(user, "the id of a user")
        refuse_higher_role(self.scope.principal, put.role, "a role")
        async with self.scope.server_context.user_lock:
            users = {user_row.id: user_row for user_row in await accounts.users(tenant)}
            before = users.get(user)
            if before is not None:
                refuse_higher_role(self.scope.principal, before.role, "a user")
            after = User(
                tenant=tenant,
                id=user,
                name=put.name,
                role=put.role,
                is_active=put.is_active,
                created=before.created if before is not None else self.scope.server_context.app.clock.now(),
                origin=put.origin if put.origin is not None else before.origin if before is not None else "",
            )
            if is_last_owner(users.values(), after):
                raise Forbidden(LAST_OWNER)
            if (await accounts.records.record(tenant, user)).removed:
                raise ConfigError(REMOVED_USER)
            # Audited first, as everywhere here: an action without an audit record is worse than a record without an action.
            action = "user.create" if before is None else "user.change" if put.is_active else "user.deactivate"
            await self.scope.audit_action(action, user, role=put.role, is_active=put.is_active, origin=after.origin)
            await accounts.put_user(after, keeps_owner=True)
            if not put.is_active:  # a user who is enabled again logs in again
                now = self.scope.server_context.app.clock.now()
                await accounts.records.revoke_credentials(tenant, user, now, with_keys=False)
        return user_view(after)

    @needs("owner")
    async def keys(self) -> api.KeyList:
        """The keys and logins of the tenant, without their secrets."""
        credentials = await self.scope.server_context.accounts.credentials(self.scope.principal.tenant)
        uses = await self.scope.server_context.accounts.records.last_uses(self.scope.principal.tenant)
        shown = [credential for credential in credentials if credential.kind != "link"]
        return api.KeyList(keys=[replace(key_view(row), used=uses.get(row.id, 0.0)) for row in shown])

    @needs("owner")
    async def create_key(self, new: api.NewKey) -> api.NewKeyView:
        """Create a key for a user of the tenant, with at most this role."""
        accounts, tenant, now = (
            self.scope.server_context.accounts,
            self.scope.principal.tenant,
            self.scope.server_context.app.clock.now(),
        )
        refuse_higher_role(self.scope.principal, new.role, "a key with a role")
        account = await accounts.user(tenant, new.user or self.scope.principal.user)
        if account is None or not account[0].is_active:
            raise ConfigError(f"there is no user {(new.user or self.scope.principal.user)[:80]!r} who could use a key")
        refuse_higher_role(self.scope.principal, account[0].role, "a key for a user with a role")
        if new.expires and new.expires <= now:
            raise ConfigError("expires: a time in the future, in seconds since 1970; 0: until it is revoked")
        secret, secret_hash = new_secret(KEY_PREFIX)
        credential = Credential(
            id=f"key_{secrets.token_hex(8)}",
            tenant=tenant,
            user=account[0].id,
            kind="key",
            hash=secret_hash,
            name=new.name,
            role=new.role,
            created=now,
            expires=new.expires,
        )
        await self.scope.audit_action(
            "key.create", credential.id, user=credential.user, role=credential.role, expires=credential.expires
        )
        await accounts.put_credential(credential)
        view = key_view(credential)
        return api.NewKeyView(**{name: getattr(view, name) for name in api.KeyView.__struct_fields__}, secret=secret)

    @needs("owner")
    async def revoke_key(self, key: str) -> None:
        """Revoke a key or a login; its open streams end within seconds."""
        accounts, tenant = self.scope.server_context.accounts, self.scope.principal.tenant
        credential = next((row for row in await accounts.credentials(tenant) if row.id == key), None)
        if credential is None:
            raise UnknownKey("there is no such key")
        account = await accounts.user(tenant, credential.user)
        if account is not None:
            refuse_higher_role(self.scope.principal, account[0].role, "a key of a user with a role")
        if not credential.revoked:
            await self.scope.audit_action("key.revoke", key, user=credential.user)
            await accounts.revoke(tenant, key, self.scope.server_context.app.clock.now())

    @needs("owner")
    async def audit(self, after: int = 0, limit: int = 100) -> api.AuditPage:
        """The audit log of the tenant, oldest first."""
        limit = max(1, min(limit, AUDIT_PAGE_LIMIT))
        return api.AuditPage(
            records=await self.scope.server_context.accounts.audit(self.scope.principal.tenant, max(0, after), limit)
        )

    @needs("operator")
    async def tenants(self) -> api.TenantList:
        """All tenants."""
        return api.TenantList(
            tenants=[tenant_view(tenant) for tenant in await self.scope.server_context.accounts.tenants()]
        )

    @needs("operator")
    async def put_tenant(self, tenant: str, put: api.PutTenant) -> api.TenantView:
        """Create or change a tenant."""
        if not _TENANT.fullmatch(tenant):
            raise ConfigError("a tenant id has up to 63 lowercase letters, digits, dots, dashes and underscores")
        if not put.is_active and tenant in (LOCAL, self.scope.principal.tenant):
            raise Forbidden("you cannot suspend your own tenant")
        before = next((row for row in await self.scope.server_context.accounts.tenants() if row.id == tenant), None)
        created = before.created if before is not None else self.scope.server_context.app.clock.now()
        changed = Tenant(tenant, put.name, put.is_active, created)
        await self.scope.audit_action(
            "tenant.create" if before is None else "tenant.change", tenant, is_active=put.is_active
        )
        await self.scope.server_context.accounts.put_tenant(changed)
        return tenant_view(changed)

    @needs("viewer")
    async def usage(self, since: float = 0.0) -> api.UsageView:
        """The usage of the tenant since a time, by day and agent."""
        if not 0 <= since < 1e12:
            raise ConfigError("since: seconds since 1970; 0: from the beginning")
        with self.scope.tenant_scope():
            used = await self.scope.store.usage_by_day(self.scope.principal.tenant, since)
        total = sum((spent for _, _, spent in used), Spent())
        days = [api.DailyUsage(day=_day(day), agent=agent, spent=spent) for day, agent, spent in used]
        return api.UsageView(since=since, total=total, days=days)

    @needs("viewer")
    async def cache_usage(self, since: float = 0.0) -> api.CacheUsageView:
        """The requests of the tenant that missed the prompt cache since a time, by cause and model: counts, and no text."""
        if not 0 <= since < 1e12:
            raise ConfigError("since: seconds since 1970; 0: from the beginning")
        with self.scope.tenant_scope(whole=True):
            return await read_cache_usage(self.scope.store, self.scope.principal.tenant, since)


def refuse_higher_role(principal: Principal, role: Role, subject: str) -> None:
    """Refuse a principal who acts on a role above their own.

    Raises:
        Forbidden: the role is higher.
    """
    if not is_at_least(principal.role, role):
        raise Forbidden(f"{subject} of {role!r} is higher than your role,{principal.role!r}")


def user_view(user: User) -> api.UserView:
    """A user, as the API shows it."""
    return api.UserView(
        id=user.id, name=user.name, role=user.role, is_active=user.is_active, origin=user.origin, created=user.created
    )


def key_view(credential: Credential) -> api.KeyView:
    """A credential, as the API shows it, without its hash."""
    return api.KeyView(
        id=credential.id,
        user=credential.user,
        kind=credential.kind,
        name=credential.name,
        role=credential.role,
        created=credential.created,
        expires=credential.expires,
        revoked=credential.revoked,
    )


def tenant_view(tenant: Tenant) -> api.TenantView:
    """A tenant, as the API shows it."""
    return api.TenantView(id=tenant.id, name=tenant.name, is_active=tenant.is_active)


def _day(day: int) -> str:
    return datetime.fromtimestamp(max(0, min(day, LAST_DAY)) * DAY, UTC).date().isoformat()
