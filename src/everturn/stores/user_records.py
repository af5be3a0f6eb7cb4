"""In-memory `UserRecords`: the reference implementation.

No method awaits anything between its first read and its last write, so each is one transaction.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from everturn.core.tenants.accounts import AuditRecord, Credential
from everturn.core.tenants.user_records import AuditFilter, Invitation, UserBudget, UserRecord


class MemoryUserRecords:
    """Records of users of one process; `credentials` and `audit` are the tables of its accounts."""

    def __init__(self, credentials: dict[str, Credential], audit: dict[str, list[AuditRecord]]) -> None:
        self._credentials, self._audit = credentials, audit
        self._records: dict[tuple[str, str], UserRecord] = {}
        self._invitations: dict[str, Invitation] = {}
        self._uses: dict[str, float] = {}

    async def record(self, tenant: str, user: str) -> UserRecord:
        """Return the record of a user."""
        return self._records.get((tenant, user), UserRecord(user))

    async def all_records(self, tenant: str) -> dict[str, UserRecord]:
        """Return the records of a tenant."""
        return {user: record for (owner, user), record in sorted(self._records.items()) if owner == tenant}

    async def set_password(self, tenant: str, user: str, hash: str, now: float) -> None:
        """Store the hash of a password."""
        self._records[tenant, user] = replace(await self.record(tenant, user), password=hash, changed=now)

    async def set_budget(self, tenant: str, user: str, budget: UserBudget) -> None:
        """Store the budget of a user."""
        self._records[tenant, user] = replace(await self.record(tenant, user), budget=budget)

    async def remove_user(self, tenant: str, user: str, now: float) -> None:
        """Mark a user as removed."""
        self._records[tenant, user] = UserRecord(user, removed=now)

    async def revoke_credentials(self, tenant: str, user: str, now: float, *, with_keys: bool, but: str = "") -> int:
        """Revoke the logins of a user."""
        kinds = ("login", "link", "key") if with_keys else ("login", "link")
        found = [
            row
            for row in self._credentials.values()
            if (row.tenant, row.user) == (tenant, user) and row.kind in kinds and row.id != but and not row.revoked
        ]
        for row in found:
            self._credentials[row.id] = replace(row, revoked=now)
        return len(found)

    async def add_invitation(self, invitation: Invitation) -> None:
        """Store a new invitation."""
        self._invitations[invitation.id] = invitation

    async def invitations(self, tenant: str) -> list[Invitation]:
        """Return the invitations of a tenant, newest first."""
        found = [row for row in self._invitations.values() if row.tenant == tenant]
        return sorted(found, key=lambda row: (-row.created, row.id))

    async def find_invitation(self, hash: str) -> Invitation | None:
        """Return the invitation with this hash."""
        return next((row for row in self._invitations.values() if row.hash == hash), None)

    async def use_invitation(self, hash: str, now: float) -> Invitation | None:
        """Use an invitation up."""
        row = await self.find_invitation(hash)
        if row is None or not row.is_open(now):
            return None
        self._invitations[row.id] = replace(row, used=now)
        return row

    async def revoke_invitation(self, tenant: str, invitation: str, now: float) -> bool:
        """Revoke an invitation."""
        row = self._invitations.get(invitation)
        if row is None or row.tenant != tenant or not row.is_open(now):
            return False
        self._invitations[row.id] = replace(row, revoked=now)
        return True

    async def note_uses(self, uses: Mapping[str, float]) -> None:
        """Store when credentials were last used."""
        for name, at in uses.items():
            if name in self._credentials:
                self._uses[name] = max(at, self._uses.get(name, 0.0))

    async def last_uses(self, tenant: str) -> dict[str, float]:
        """Return when the credentials of a tenant were last used."""
        return {name: at for name, at in self._uses.items() if self._credentials[name].tenant == tenant}

    async def search_audit(
        self, tenant: str, where: AuditFilter, before: int = 0, limit: int = 100
    ) -> list[AuditRecord]:
        """Return the matching audit records, newest first."""
        rows = [row for row in reversed(self._audit.get(tenant, [])) if not before or row.n < before]
        return [row for row in rows if _matches(row, where)][: max(limit, 0)]


def _matches(record: AuditRecord, where: AuditFilter) -> bool:
    return (
        where.by in ("", record.by)
        and (where.did in ("", record.did) or record.did.startswith(where.did + "."))
        and where.on in ("", record.on)
        and record.at >= where.since
        and (not where.until or record.at < where.until)
    )
