"""User administration: removal, budgets, invitations, links that reset a password, usage by user, and audit searches."""

from __future__ import annotations

import secrets
from typing import Final

from msgspec.structs import replace

from everturn import api
from everturn.access.administration.accounts import AUDIT_PAGE_LIMIT, REMOVED_USER, new_secret, refuse_higher_role
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, check_user_id
from everturn.access.mcp.logins import erase_logins
from everturn.access.push import remove_pushes
from everturn.core.options import Budget
from everturn.core.tenants.accounts import User
from everturn.core.tenants.user_records import INVITATION_PREFIX, AuditFilter, Invitation, InvitationKind, UserBudget
from everturn.errors import ConfigError, Forbidden, UnknownLink

RESET_HOURS: Final = 24.0  # after which a link that resets a password expires
MOST_INVITATIONS: Final = 200  # of a tenant, that are open


class UserAccess:
    """Access to what administrators do with users, beside their accounts."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("owner")
    async def remove(self, user: str) -> None:
        """Remove a user: their keys and logins end. Their conversations stay, and nobody else gets the id."""
        account = await self._user(user)
        principal, accounts, now = self.scope.principal, self.scope.server_context.accounts, self._now()
        if user == principal.user:
            raise Forbidden("you cannot remove yourself; another owner can")
        async with self.scope.server_context.user_lock:
            await self.scope.audit_action("user.remove", user, role=account.role)
            await accounts.put_user(replace(account, name="", is_active=False), keeps_owner=True)
            await accounts.records.remove_user(principal.tenant, user, now)
            await accounts.records.revoke_credentials(principal.tenant, user, now, with_keys=True)
            await remove_pushes(self.scope, user)
            await erase_logins(self.scope, user)
            for row in await accounts.records.invitations(principal.tenant):
                if row.user == user:
                    await accounts.records.revoke_invitation(principal.tenant, row.id, now)

    @needs("owner")
    async def set_budget(self, user: str, put: api.PutUserBudget) -> None:
        """Limit what a user may use."""
        await self._user(user)
        limits = Budget(put.steps, put.calls, put.tokens, put.cost)
        budget = UserBudget() if limits == Budget() else UserBudget(limits, put.period)
        detail = {"steps": put.steps, "calls": put.calls, "tokens": put.tokens, "cost": put.cost, "period": put.period}
        await self.scope.audit_action("user.budget", user, **detail)
        await self.scope.server_context.accounts.records.set_budget(self.scope.principal.tenant, user, budget)

    # Invitations -----------------------------------------------------------------------------------------------------

    @needs("owner")
    async def invitations(self) -> api.InvitationList:
        """The invitations of the tenant, newest first."""
        found = await self.scope.server_context.accounts.records.invitations(self.scope.principal.tenant)
        return api.InvitationList(
            invitations=[invitation_view(row) for row in found], passwords=self.scope.server_context.password_support
        )

    @needs("owner")
    async def invite(self, new: api.NewInvitation) -> api.NewInvitationView:
        """Invite a person. The link works once, and creates the user."""
        accounts, tenant = self.scope.server_context.accounts, self.scope.principal.tenant
        check_user_id(new.user, "the id of a user")
        refuse_higher_role(self.scope.principal, new.role, "an invitation with a role")
        if (await accounts.records.record(tenant, new.user)).removed:
            raise ConfigError(REMOVED_USER)
        if await accounts.user(tenant, new.user) is not None:
            raise ConfigError("user: a user with this id already exists")
        row = Invitation("", tenant, "invitation", new.user, "", new.name, new.role)
        return await self._add(row, new.hours, "user.invite")

    @needs("owner")
    async def reset_password(self, user: str) -> api.NewInvitationView:
        """Create a link by which a user sets a new password, once. The password they have works until then."""
        account = await self._user(user)
        if self.scope.server_context.password_support != "on":
            raise ConfigError("passwords are off: set passwords = true under [auth]")
        if not account.is_active:
            raise ConfigError("user: this user is disabled; enable the user first")
        row = Invitation("", account.tenant, "reset", account.id, "", account.name, account.role)
        return await self._add(row, RESET_HOURS, "user.reset_password")

    @needs("owner")
    async def revoke_invitation(self, invitation: str) -> None:
        """Revoke an invitation, or a link that resets a password."""
        records, tenant = self.scope.server_context.accounts.records, self.scope.principal.tenant
        row = next((row for row in await records.invitations(tenant) if row.id == invitation), None)
        if row is None:
            raise UnknownLink("there is no such invitation")
        refuse_higher_role(self.scope.principal, row.role, "an invitation with a role")
        if row.is_open(self._now()):
            await self.scope.audit_action("user.revoke_invitation", invitation, user=row.user, kind=row.kind)
            await records.revoke_invitation(tenant, invitation, self._now())

    async def _add(self, row: Invitation, hours: float, action: str) -> api.NewInvitationView:
        records, now = self.scope.server_context.accounts.records, self._now()
        rows = await records.invitations(row.tenant)
        if sum(other.is_open(now) for other in rows) >= MOST_INVITATIONS:
            raise ConfigError(f"{MOST_INVITATIONS} invitations are open; revoke one first")
        secret, secret_hash = new_secret(INVITATION_PREFIX)
        made = replace(
            row,
            id=f"invite_{secrets.token_hex(8)}",
            hash=secret_hash,
            by=self.scope.principal.user,
            created=now,
            expires=now + hours * 3600.0,
        )
        await self.scope.audit_action(action, made.user, invitation=made.id, role=made.role, expires=made.expires)
        # One link for one user: an older one that got lost must not stay open.
        for other in rows:
            if other.user == row.user and other.is_open(now):
                await records.revoke_invitation(row.tenant, other.id, now)
        await records.add_invitation(made)
        view = invitation_view(made)
        fields = {name: getattr(view, name) for name in api.InvitationView.__struct_fields__}
        return api.NewInvitationView(**fields, secret=secret)

    # Usage and audit -------------------------------------------------------------------------------------------------

    @needs("owner")
    async def usage(self, since: float = 0.0) -> api.UserUsageView:
        """The usage of the tenant since a time, by user, model and agent."""
        if not 0 <= since < 1e12:
            raise ConfigError("since: seconds since 1970; 0 is from the beginning")
        with self.scope.tenant_scope(whole=True):
            rows = await self.scope.store.usage_by_user(self.scope.principal.tenant, since)
        usages = [api.UserUsage(user=user, model=model, agent=agent, spent=spent) for user, model, agent, spent in rows]
        return api.UserUsageView(since=since, rows=usages)

    @needs("owner")
    async def search_audit(
        self,
        by: str = "",
        did: str = "",
        on: str = "",
        since: float = 0.0,
        until: float = 0.0,
        before: int = 0,
        limit: int = 100,
    ) -> api.AuditPage:
        """The matching audit records of the tenant, newest first."""
        where, limit = AuditFilter(by, did, on, since, until), max(1, min(limit, AUDIT_PAGE_LIMIT))
        records = self.scope.server_context.accounts.records
        return api.AuditPage(records=await records.search_audit(self.scope.principal.tenant, where, before, limit))

    async def _user(self, user: str) -> User:
        """A user of the tenant, whose role is not above the caller's."""
        accounts, tenant = self.scope.server_context.accounts, self.scope.principal.tenant
        account = await accounts.user(tenant, user)
        if account is None or ((await accounts.records.record(tenant, user)).removed and not account[0].is_active):
            raise ConfigError("user: there is no such user")
        refuse_higher_role(self.scope.principal, account[0].role, "a user with a role")
        return account[0]

    def _now(self) -> float:
        return self.scope.server_context.app.clock.now()


def invitation_view(row: Invitation) -> api.InvitationView:
    """An invitation, as the API shows it, without its hash."""
    kind: InvitationKind = row.kind
    return api.InvitationView(
        id=row.id,
        kind=kind,
        user=row.user,
        name=row.name,
        role=row.role,
        by=row.by,
        created=row.created,
        expires=row.expires,
        used=row.used,
        revoked=row.revoked,
    )
