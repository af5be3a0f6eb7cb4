"""Users, keys, tenants and what was done: as those may see to it who own a tenant, or operate the house.

Nobody gives away more than they have, and nobody touches somebody who may do more.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from typing import Final

from everturn import api
from everturn.access.inside import Inside, checked_name
from everturn.access.needs import needs
from everturn.core.accounts import LOCAL, Credential, Role, Tenant, User, is_at_least, is_last_owner
from everturn.errors import ConfigError, Forbidden, UnknownKey
from everturn.stores.accounts import LAST

KEY_PREFIX: Final = "evk_"
MOST_RECORDS: Final = 1000
_TENANT: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")


def new_secret(prefix: str) -> tuple[str, str]:
    """A secret that nobody can guess, and the hash that is kept of it."""
    secret = prefix + secrets.token_urlsafe(32)
    return secret, hash_of(secret)


def hash_of(secret: str) -> str:
    """What is kept of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class People(Inside):
    """What somebody may do about others."""

    @needs("owner")
    async def users(self) -> api.UserList:
        """The users of the tenant."""
        return api.UserList(users=[user_view(user) for user in await self.house.accounts.users(self.principal.tenant)])

    @needs("owner")
    async def put_user(self, user: str, put: api.PutUser) -> api.UserView:
        """Make a user, or change one."""
        accounts, tenant = self.house.accounts, self.principal.tenant
        checked_name(user, "the id of a user")
        self._refuse_more(put.role, "a role")
        async with self.house.changing:
            there = {one.id: one for one in await accounts.users(tenant)}
            before = there.get(user)
            if before is not None:
                self._refuse_more(before.role, "a user")
            after = User(
                tenant=tenant,
                id=user,
                name=put.name,
                role=put.role,
                is_active=put.is_active,
                created=before.created if before is not None else self.house.runtime.clock.now(),
                origin=put.origin if put.origin is not None else before.origin if before is not None else "",
            )
            if is_last_owner(there.values(), after):
                raise Forbidden(LAST)
            # First, as all that is noted here: what was done and nobody knows of is worse than what came to nothing.
            did = "user.create" if before is None else "user.change" if put.is_active else "user.deactivate"
            await self.note(did, user, role=put.role, is_active=put.is_active, origin=after.origin)
            await accounts.put_user(after, keeps_owner=True)
        return user_view(after)

    @needs("owner")
    async def keys(self) -> api.KeyList:
        """The keys and logins of the tenant, without their secrets."""
        found = await self.house.accounts.credentials(self.principal.tenant)
        return api.KeyList(keys=[key_view(one) for one in found if one.kind != "link"])

    @needs("owner")
    async def make_key(self, new: api.NewKey) -> api.NewKeyView:
        """A new key for a user of the tenant, who may do at most this much with it."""
        accounts, tenant, now = self.house.accounts, self.principal.tenant, self.house.runtime.clock.now()
        self._refuse_more(new.role, "a key with a role")
        found = await accounts.user(tenant, new.user or self.principal.user)
        if found is None or not found[0].is_active:
            raise ConfigError(f"there is no user {(new.user or self.principal.user)[:80]!r} who could use a key")
        self._refuse_more(found[0].role, "a key for somebody with a role")
        if new.expires and new.expires <= now:
            raise ConfigError("expires: a time to come, in seconds since 1970; 0 is until it is revoked")
        secret, kept = new_secret(KEY_PREFIX)
        made = Credential(
            id=f"key_{secrets.token_hex(8)}",
            tenant=tenant,
            user=found[0].id,
            kind="key",
            hash=kept,
            name=new.name,
            role=new.role,
            created=now,
            expires=new.expires,
        )
        await self.note("key.create", made.id, user=made.user, role=made.role, expires=made.expires)
        await accounts.put_credential(made)
        view = key_view(made)
        return api.NewKeyView(**{name: getattr(view, name) for name in api.KeyView.__struct_fields__}, secret=secret)

    @needs("owner")
    async def revoke_key(self, key: str) -> None:
        """Let a key or a login hold no more; what is open with it ends within seconds."""
        accounts, tenant = self.house.accounts, self.principal.tenant
        found = next((one for one in await accounts.credentials(tenant) if one.id == key), None)
        if found is None:
            raise UnknownKey("there is no such key")
        whose = await accounts.user(tenant, found.user)
        if whose is not None:
            self._refuse_more(whose[0].role, "a key of somebody with a role")
        if not found.revoked:
            await self.note("key.revoke", key, user=found.user)
            await accounts.revoke(tenant, key, self.house.runtime.clock.now())

    @needs("owner")
    async def audit(self, after: int = 0, limit: int = 100) -> api.AuditPage:
        """What was done in the tenant, oldest first."""
        limit = max(1, min(limit, MOST_RECORDS))
        return api.AuditPage(records=await self.house.accounts.audit(self.principal.tenant, max(0, after), limit))

    @needs("operator")
    async def tenants(self) -> api.TenantList:
        """All tenants."""
        return api.TenantList(tenants=[tenant_view(one) for one in await self.house.accounts.tenants()])

    @needs("operator")
    async def put_tenant(self, tenant: str, put: api.PutTenant) -> api.TenantView:
        """Make a tenant, or change one."""
        if not _TENANT.fullmatch(tenant):
            raise ConfigError("the id of a tenant: up to 63 small letters, digits, dots, dashes and underscores")
        if not put.is_active and tenant in (LOCAL, self.principal.tenant):
            raise Forbidden("nobody can lock themselves out: this tenant stays active")
        before = next((one for one in await self.house.accounts.tenants() if one.id == tenant), None)
        created = before.created if before is not None else self.house.runtime.clock.now()
        made = Tenant(tenant, put.name, put.is_active, created)
        await self.note("tenant.create" if before is None else "tenant.change", tenant, is_active=put.is_active)
        await self.house.accounts.put_tenant(made)
        return tenant_view(made)

    def _refuse_more(self, role: Role, what: str) -> None:
        if not is_at_least(self.principal.role, role):
            raise Forbidden(f"{what} of {role!r} is above yours, which is {self.principal.role!r}")


def user_view(user: User) -> api.UserView:
    """A user, as others see them."""
    return api.UserView(id=user.id, name=user.name, role=user.role, is_active=user.is_active, origin=user.origin)


def key_view(one: Credential) -> api.KeyView:
    """A credential without what opens the door."""
    return api.KeyView(
        id=one.id,
        user=one.user,
        kind=one.kind,
        name=one.name,
        role=one.role,
        created=one.created,
        expires=one.expires,
        revoked=one.revoked,
    )


def tenant_view(tenant: Tenant) -> api.TenantView:
    """A tenant."""
    return api.TenantView(id=tenant.id, name=tenant.name, is_active=tenant.is_active)
