"""The reference of the `Accounts` port: who may come in, in dictionaries.

No method awaits anything between its first read and its last write, so each is one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from msgspec.structs import replace

from everturn.core.accounts import AuditRecord, Credential, Known, Mark, Tenant, User, chained, is_last_owner
from everturn.errors import Forbidden, KeyConflict

LAST = "this is the last owner of the tenant; make somebody else one first"
TAKEN = "there is a credential of this id or hash already; make a new secret"


def is_good_link(credential: Credential, now: float) -> bool:
    """Whether a credential is a link that can still be used."""
    return credential.kind == "link" and not credential.revoked and (not credential.expires or now < credential.expires)


class MemoryAccounts:
    """Tenants, users, credentials and what was done, for one process and one lifetime."""

    def __init__(self) -> None:
        self._tenants: dict[str, Tenant] = {}
        self._users: dict[tuple[str, str], User] = {}
        self._credentials: dict[str, Credential] = {}
        self._by_hash: dict[str, str] = {}
        self._secrets: dict[str, bytes] = {}
        self._audit: dict[str, list[AuditRecord]] = {}
        self._marks: dict[tuple[str, str], Mark] = {}

    async def put_tenant(self, tenant: Tenant) -> None:
        """Make a tenant, or change it."""
        self._tenants[tenant.id] = tenant

    async def tenants(self) -> list[Tenant]:
        """All of them, by id."""
        return sorted(self._tenants.values(), key=lambda tenant: tenant.id)

    async def put_user(self, user: User, *, keeps_owner: bool = False) -> None:
        """Make a user, or change one."""
        if keeps_owner and is_last_owner((one for one in self._users.values() if one.tenant == user.tenant), user):
            raise Forbidden(LAST)
        self._users[user.tenant, user.id] = user

    async def add_user(self, user: User) -> bool:
        """Make a user, unless there is one of this id."""
        return self._users.setdefault((user.tenant, user.id), user) is user

    async def users(self, tenant: str) -> list[User]:
        """The users of a tenant, by id."""
        return sorted((user for user in self._users.values() if user.tenant == tenant), key=lambda user: user.id)

    async def user(self, tenant: str, user: str) -> tuple[User, Tenant] | None:
        """One of them, and their tenant."""
        found, home = self._users.get((tenant, user)), self._tenants.get(tenant)
        return None if found is None or home is None else (found, home)

    async def put_credential(self, credential: Credential) -> None:
        """Keep a new credential."""
        if credential.id in self._credentials or credential.hash in self._by_hash:
            raise KeyConflict(TAKEN)
        self._credentials[credential.id] = credential
        self._by_hash[credential.hash] = credential.id

    async def known(self, hash: str) -> Known | None:
        """Whose credential this is, whether it holds or not."""
        return self._known(self._by_hash.get(hash, ""))

    async def credentials(self, tenant: str, user: str | None = None) -> list[Credential]:
        """The credentials of a tenant, or of one of its users, oldest first."""
        found = (one for one in self._credentials.values() if one.tenant == tenant and user in (None, one.user))
        return sorted(found, key=lambda one: (one.created, one.id))

    async def use_link(self, hash: str, now: float) -> Known | None:
        """Use up a link: of two who try one has it."""
        known = self._known(self._by_hash.get(hash, ""))
        if known is None or not is_good_link(known.credential, now):
            return None
        self._credentials[known.credential.id] = replace(known.credential, revoked=now)
        return self._known(known.credential.id)

    async def revoke(self, tenant: str, credential: str, now: float) -> bool:
        """Let a credential hold no more; False when this tenant has none of this id that did."""
        found = self._credentials.get(credential)
        if found is None or found.tenant != tenant or found.revoked:
            return False
        self._credentials[credential] = replace(found, revoked=now)
        return True

    async def standing(self, credentials: Collection[str]) -> dict[str, Known]:
        """Those of these credentials that are there, as they are now."""
        found = {name: self._known(name) for name in credentials}
        return {name: known for name, known in found.items() if known is not None}

    async def secret(self, name: str) -> bytes:
        """32 random bytes of this name, made by whoever asks first."""
        return self._secrets.setdefault(name, os.urandom(32))

    async def note(self, record: AuditRecord) -> AuditRecord:
        """Write down what was done, behind what was done before in this tenant."""
        chain = self._audit.setdefault(record.tenant, [])
        chain.append(chained(record, chain[-1] if chain else None))
        return chain[-1]

    async def last_note(self, tenant: str, on: str, did: Collection[str]) -> AuditRecord | None:
        """The last record of one of these deeds to this subject."""
        chain = reversed(self._audit.get(tenant, []))
        return next((record for record in chain if record.on == on and record.did in did), None)

    async def audit(self, tenant: str, after: int = 0, limit: int = 100) -> list[AuditRecord]:
        """What was done in a tenant, oldest first."""
        return self._audit.get(tenant, [])[max(after, 0) :][: max(limit, 0)]

    async def put_mark(self, tenant: str, hash: str, mark: Mark, now: float) -> None:
        """Remember where a conversation ended; the last one of a hash counts."""
        self._marks[tenant, hash] = mark

    async def mark(self, tenant: str, hash: str) -> Mark | None:
        """Where a conversation with this hash ended here."""
        return self._marks.get((tenant, hash))

    def forget(self, session: str) -> None:
        """Let the marks go that lead into a session which was erased."""
        self._marks = {place: mark for place, mark in self._marks.items() if mark.session != session}

    def _known(self, name: str) -> Known | None:
        credential = self._credentials.get(name)
        if credential is None:
            return None
        user, tenant = self._users.get((credential.tenant, credential.user)), self._tenants.get(credential.tenant)
        return None if user is None or tenant is None else Known(credential, user, tenant)
