"""In-memory `Accounts`: the reference implementation of tenants, users, credentials and the audit log.

No method awaits anything between its first read and its last write, so each is one transaction.
"""

from __future__ import annotations

import os
from collections.abc import Collection

from msgspec.structs import replace

from everturn.core.tenants.accounts import (
    AuditRecord,
    ConversationFingerprint,
    Credential,
    KnownCredential,
    Tenant,
    User,
    append_to_chain,
    is_last_owner,
)
from everturn.errors import Forbidden, KeyConflict
from everturn.stores.signing_keys import CachedSigningKeys, MemoryKeyTable
from everturn.stores.user_records import MemoryUserRecords

LAST_OWNER = "this is the last owner of the tenant; make another user an owner first"
CREDENTIAL_TAKEN = "there is a credential of this id or hash already; make a new secret"


def is_usable_link(credential: Credential, now: float) -> bool:
    """Return whether a credential is a sign-in link that can still be used."""
    return credential.kind == "link" and not credential.revoked and (not credential.expires or now < credential.expires)


class MemoryAccounts:
    """Tenants, users, credentials and the audit log of one process; they end with it."""

    def __init__(self) -> None:
        self._tenants: dict[str, Tenant] = {}
        self._users: dict[tuple[str, str], User] = {}
        self._credentials: dict[str, Credential] = {}
        self._by_hash: dict[str, str] = {}
        self._secrets: dict[str, bytes] = {}
        self.keys = CachedSigningKeys(MemoryKeyTable())
        self._audit: dict[str, list[AuditRecord]] = {}
        self._fingerprints: dict[tuple[str, str], ConversationFingerprint] = {}
        self.records = MemoryUserRecords(self._credentials, self._audit)

    async def put_tenant(self, tenant: Tenant) -> None:
        """Create or replace a tenant."""
        self._tenants[tenant.id] = tenant

    async def tenants(self) -> list[Tenant]:
        """Return all tenants, ordered by id."""
        return sorted(self._tenants.values(), key=lambda tenant: tenant.id)

    async def put_user(self, user: User, *, keeps_owner: bool = False) -> None:
        """Create or replace a user; with `keeps_owner`, never so that the tenant loses its last owner."""
        if keeps_owner and is_last_owner(
            (other for other in self._users.values() if other.tenant == user.tenant), user
        ):
            raise Forbidden(LAST_OWNER)
        self._users[user.tenant, user.id] = user

    async def add_user(self, user: User) -> bool:
        """Create a user unless the id is taken; return whether it was created."""
        return self._users.setdefault((user.tenant, user.id), user) is user

    async def users(self, tenant: str) -> list[User]:
        """Return the users of a tenant, ordered by id."""
        return sorted((user for user in self._users.values() if user.tenant == tenant), key=lambda user: user.id)

    async def user(self, tenant: str, user: str) -> tuple[User, Tenant] | None:
        """Return a user with the user's tenant."""
        record, tenant_record = self._users.get((tenant, user)), self._tenants.get(tenant)
        return None if record is None or tenant_record is None else (record, tenant_record)

    async def put_credential(self, credential: Credential) -> None:
        """Store a new credential."""
        if credential.id in self._credentials or credential.hash in self._by_hash:
            raise KeyConflict(CREDENTIAL_TAKEN)
        self._credentials[credential.id] = credential
        self._by_hash[credential.hash] = credential.id

    async def find_credential(self, hash: str) -> KnownCredential | None:
        """Return the credential with this hash, with its user and tenant, whether it is still valid or not."""
        return self._known(self._by_hash.get(hash, ""))

    async def credentials(self, tenant: str, user: str | None = None) -> list[Credential]:
        """Return the credentials of a tenant, or of one of its users, oldest first."""
        matching = (
            credential
            for credential in self._credentials.values()
            if credential.tenant == tenant and user in (None, credential.user)
        )
        return sorted(matching, key=lambda credential: (credential.created, credential.id))

    async def use_link(self, hash: str, now: float) -> KnownCredential | None:
        """Consume a sign-in link: of two concurrent attempts one succeeds."""
        known = self._known(self._by_hash.get(hash, ""))
        if known is None or not is_usable_link(known.credential, now):
            return None
        self._credentials[known.credential.id] = replace(known.credential, revoked=now)
        return self._known(known.credential.id)

    async def revoke(self, tenant: str, credential: str, now: float) -> bool:
        """Revoke a credential; False when the tenant has no active credential with this id."""
        record = self._credentials.get(credential)
        if record is None or record.tenant != tenant or record.revoked:
            return False
        self._credentials[credential] = replace(record, revoked=now)
        return True

    async def active_credentials(self, credentials: Collection[str]) -> dict[str, KnownCredential]:
        """Return those of the credentials that exist, in their current state."""
        by_id = {name: self._known(name) for name in credentials}
        return {name: known for name, known in by_id.items() if known is not None}

    async def secret(self, name: str) -> bytes:
        """Return the 32 random bytes of this name; the first call creates them."""
        return self._secrets.setdefault(name, os.urandom(32))

    async def append_audit(self, record: AuditRecord) -> AuditRecord:
        """Append a record to the tenant's audit log."""
        chain = self._audit.setdefault(record.tenant, [])
        chain.append(append_to_chain(record, chain[-1] if chain else None))
        return chain[-1]

    async def last_audit(self, tenant: str, on: str, did: Collection[str]) -> AuditRecord | None:
        """Return the last audit record with one of these actions on this subject."""
        chain = reversed(self._audit.get(tenant, []))
        return next((record for record in chain if record.on == on and record.did in did), None)

    async def audit(self, tenant: str, after: int = 0, limit: int = 100) -> list[AuditRecord]:
        """Return audit records of a tenant, oldest first."""
        return self._audit.get(tenant, [])[max(after, 0) :][: max(limit, 0)]

    async def put_fingerprint(self, tenant: str, hash: str, mark: ConversationFingerprint, now: float) -> None:
        """Store the fingerprint of a conversation's end; the last one of a hash counts."""
        self._fingerprints[tenant, hash] = mark

    async def fingerprint(self, tenant: str, hash: str) -> ConversationFingerprint | None:
        """Return where the conversation with this hash ended."""
        return self._fingerprints.get((tenant, hash))

    def forget(self, session: str) -> None:
        """Remove the fingerprints that lead to an erased session."""
        self._fingerprints = {key: mark for key, mark in self._fingerprints.items() if mark.session != session}

    def _known(self, name: str) -> KnownCredential | None:
        credential = self._credentials.get(name)
        if credential is None:
            return None
        user, tenant = self._users.get((credential.tenant, credential.user)), self._tenants.get(credential.tenant)
        return None if user is None or tenant is None else KnownCredential(credential, user, tenant)
