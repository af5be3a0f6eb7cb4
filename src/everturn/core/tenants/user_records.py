"""User records: passwords, budgets and invitations of users, when credentials were last used, and searches of the audit log.

A user who was removed keeps a record, so that nobody else gets the id and, with it, the conversations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, Protocol

from msgspec import Struct

from everturn.core.options import Budget
from everturn.core.tenants.audit import AuditRecord, Role

INVITATION_PREFIX: Final = "evi_"

InvitationKind = Literal["invitation", "reset"]
"""`invitation`: creates a user. `reset`: lets an existing user set a new password."""


PasswordSupport = Literal["on", "off", "missing"]
"""Whether people log in with passwords; `missing`: they should, and argon2 is not installed."""


class Invitation(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A link that works once: it creates a user with a role, or sets the password of one. Only its hash is stored."""

    id: str
    tenant: str
    kind: InvitationKind
    user: str
    hash: str  # SHA-256 of the secret, in hex
    name: str = ""
    role: Role = "member"
    by: str = ""  # the administrator who made it
    created: float = 0.0
    expires: float = 0.0
    used: float = 0.0  # when
    revoked: float = 0.0  # when

    def is_open(self, now: float) -> bool:
        """Whether it can still be used."""
        return not self.used and not self.revoked and now < self.expires


class UserBudget(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What one user may use in a period, in all conversations together."""

    budget: Budget = Budget()
    period: float = 0.0  # seconds back from now; 0: ever


class UserRecord(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What is stored of a user beside the account."""

    user: str
    password: str = ""  # the encoded argon2 hash; "": none
    changed: float = 0.0  # when the password was set
    budget: UserBudget = UserBudget()
    removed: float = 0.0  # when the user was removed; 0: they were not


class AuditFilter(Struct, frozen=True):
    """Which audit records are searched for; an empty field matches all."""

    by: str = ""
    did: str = ""  # an action, or the first part of one: "session", "key"
    on: str = ""
    since: float = 0.0
    until: float = 0.0  # 0: no end


class UserRecords(Protocol):
    """The port for passwords, budgets, invitations and removed users. `Accounts.records` returns it."""

    async def record(self, tenant: str, user: str) -> UserRecord:
        """The record of a user; an empty one if nothing was stored."""
        ...

    async def all_records(self, tenant: str) -> dict[str, UserRecord]:
        """The stored records of a tenant, by user."""
        ...

    async def set_password(self, tenant: str, user: str, hash: str, now: float) -> None:
        """Store the hash of a password; "" removes it."""
        ...

    async def set_budget(self, tenant: str, user: str, budget: UserBudget) -> None:
        """Store the budget of a user."""
        ...

    async def remove_user(self, tenant: str, user: str, now: float) -> None:
        """Mark a user as removed, and drop the password and the budget."""
        ...

    async def revoke_credentials(self, tenant: str, user: str, now: float, *, with_keys: bool, but: str = "") -> int:
        """Revoke the logins and login links of a user, with `with_keys` also the API keys; `but` is the id of one to keep.

        Returns how many were revoked.
        """
        ...

    async def add_invitation(self, invitation: Invitation) -> None:
        """Store a new invitation."""
        ...

    async def invitations(self, tenant: str) -> list[Invitation]:
        """The invitations of a tenant, newest first."""
        ...

    async def find_invitation(self, hash: str) -> Invitation | None:
        """The invitation with this hash, whether it can still be used or not."""
        ...

    async def use_invitation(self, hash: str, now: float) -> Invitation | None:
        """Use an invitation up: of two concurrent attempts one succeeds. None: it cannot be used any more."""
        ...

    async def revoke_invitation(self, tenant: str, invitation: str, now: float) -> bool:
        """Revoke an invitation; False if the tenant has no such open one."""
        ...

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        """Store when credentials were last used, by their ids; an earlier time changes nothing."""
        ...

    async def last_uses(self, tenant: str) -> dict[str, float]:
        """When the credentials of a tenant were last used, by their ids."""
        ...

    async def search_audit(
        self, tenant: str, where: AuditFilter, before: int = 0, limit: int = 100
    ) -> list[AuditRecord]:
        """The matching audit records of a tenant before a number (0: from the last one), newest first."""
        ...
