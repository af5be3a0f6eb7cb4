"""Accounts: tenants, users, credentials and audit records, and the port of the store that keeps them.

A tenant isolates its data: every stored row belongs to one tenant, and no other tenant can see it. Inside a tenant, a
role decides what a user may do. The store keeps only a hash of each secret.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Final, Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from everturn.core.tenants.audit import AuditRecord, Role
from everturn.core.tenants.signing_keys import SigningKeys
from everturn.core.tenants.user_records import UserRecords

ROLES: Final[tuple[Role, ...]] = ("viewer", "member", "approver", "owner", "operator")

LOCAL: Final = "local"
"""The tenant of a server that runs on its user's own machine."""


def is_at_least(role: Role, needed: Role) -> bool:
    """Whether a role includes the needed one."""
    return ROLES.index(role) >= ROLES.index(needed)


def lower_role(first: Role, second: Role) -> Role:
    """The lower of two roles."""
    return first if is_at_least(second, first) else second


class Tenant(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """The owner of sessions, users and grants, isolated from every other tenant."""

    id: str
    name: str = ""
    is_active: bool = True
    created: float = 0.0


class User(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """A user of one tenant. A person in two tenants has two users."""

    tenant: str
    id: str
    name: str = ""
    role: Role = "member"
    is_active: bool = True
    created: float = 0.0
    origin: str = ""  # the issuer whose tokens may authenticate this user; "": no issuer may, whatever its tokens claim


def is_last_owner(users: Iterable[User], after: User) -> bool:
    """Whether the change to `after` would leave a tenant without an active owner."""
    owners = {user.id for user in users if user.is_active and is_at_least(user.role, "owner")}
    return owners == {after.id} and not (after.is_active and is_at_least(after.role, "owner"))


CredentialKind = Literal["key", "login", "link"]
"""`key`: an API key. `login`: a browser session. `link`: a login link that works once."""


class Credential(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """An API key, browser session or login link. The secret itself is not stored, only its `hash`."""

    id: str
    tenant: str
    user: str
    kind: CredentialKind
    hash: str  # SHA-256 of the secret, in hex; secrets are long and random, so no slower hash is needed
    name: str = ""
    role: Role = "operator"  # at most this, whatever the user may do
    created: float = 0.0
    expires: float = 0.0  # 0: until it is revoked
    revoked: float = 0.0  # when


class KnownCredential(Struct, frozen=True):
    """A credential found by its hash, with its user and tenant. The caller checks whether it is still valid."""

    credential: Credential
    user: User
    tenant: Tenant


class Principal(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """The authenticated identity of a request: tenant, user and effective role."""

    tenant: str
    user: str
    role: Role
    credential: str = ""  # its id; for a token of an external issuer, a hash of the token
    kind: Literal["key", "login", "token"] = "key"
    expires: float = 0.0  # 0: until it is revoked


def principal_of(known: KnownCredential, now: float) -> Principal | None:
    """The principal of a stored credential; None when it is no longer valid. The one place where this is decided."""
    credential, user, tenant = known.credential, known.user, known.tenant
    is_over = bool(credential.revoked) or (credential.expires and credential.expires <= now)
    if is_over or not user.is_active or not tenant.is_active:
        return None
    kind = "login" if credential.kind == "login" else "key"
    return Principal(
        credential.tenant,
        credential.user,
        lower_role(credential.role, user.role),
        credential.id,
        kind,
        credential.expires,
    )


def append_to_chain(record: AuditRecord, before: AuditRecord | None) -> AuditRecord:
    """A record with its number and hash, following `before` (None: the first record of its tenant)."""
    n, link = (1, "") if before is None else (before.n + 1, before.hash)
    covered = (link, record.tenant, n, record.at, record.by, record.credential, record.did, record.on, record.detail)
    return replace(record, n=n, hash=hashlib.sha256(msgspec.json.encode(covered)).hexdigest())


def check_chain(records: Iterable[AuditRecord], before: AuditRecord | None = None) -> list[str]:
    """The violations in the hash chain of one tenant's records, oldest first; `before` is the record they follow.

    The chain cannot show that its last records were removed. To detect that, keep the last hash elsewhere.
    """
    violations: list[str] = []
    for record in records:
        expected = 1 if before is None else before.n + 1
        if before is not None and record.tenant != before.tenant:
            violations.append(f"record {record.n} is of tenant {record.tenant!r}, not of {before.tenant!r}")
        if record.n != expected:
            violations.append(f"where record {expected} should be there is record {record.n}")
        elif record != append_to_chain(record, before):
            violations.append(f"record {record.n} is not what was written, or not behind what was written before it")
        before = record
    return violations


class ConversationFingerprint(Struct, frozen=True):
    """Where a conversation ended here, so that a client that resends it as text continues in the same session."""

    session: str
    message: str


class Accounts(Protocol):
    """The port for tenants, users, credentials and the audit log. All nodes share one, beside the sessions."""

    async def put_tenant(self, tenant: Tenant) -> None:
        """Create or update a tenant."""
        ...

    async def tenants(self) -> list[Tenant]:
        """All tenants, by id."""
        ...

    async def put_user(self, user: User, *, keeps_owner: bool = False) -> None:
        """Create or update a user; with `keeps_owner`, only if the tenant still has an active owner afterwards.

        Raises:
            Forbidden: the tenant would have no owner; if two owners demote each other at once, one of them is refused.
        """
        ...

    async def add_user(self, user: User) -> bool:
        """Create a user; False, and nothing changes, if the id is taken."""
        ...

    async def users(self, tenant: str) -> list[User]:
        """The users of a tenant, by id."""
        ...

    async def user(self, tenant: str, user: str) -> tuple[User, Tenant] | None:
        """A user and its tenant."""
        ...

    async def put_credential(self, credential: Credential) -> None:
        """Store a new credential.

        Raises:
            KeyConflict: a credential with this id or hash exists.
        """
        ...

    async def find_credential(self, hash: str) -> KnownCredential | None:
        """The credential with this hash, even if it is revoked or expired, or its user is inactive."""
        ...

    async def credentials(self, tenant: str, user: str | None = None) -> list[Credential]:
        """The credentials of a tenant, or of one of its users, oldest first."""
        ...

    async def use_link(self, hash: str, now: float) -> KnownCredential | None:
        """Use a login link. The same write revokes it, so that of two concurrent attempts one succeeds.

        None: the link does not exist, or was used, revoked or has expired. The caller checks that its user is active.
        """
        ...

    async def revoke(self, tenant: str, credential: str, now: float) -> bool:
        """Revoke a credential; False if this tenant has no valid credential with this id."""
        ...

    async def active_credentials(self, credentials: Collection[str]) -> dict[str, KnownCredential]:
        """The current state of those of these credentials that exist: how a node learns of revocations on other nodes."""
        ...

    async def secret(self, name: str) -> bytes:
        """32 random bytes under this name; the first call creates them, and every node reads the same ones afterwards."""
        ...

    @property
    def keys(self) -> SigningKeys:
        """The keys that tokens are signed with."""
        ...

    @property
    def records(self) -> UserRecords:
        """Passwords, budgets and invitations of users, and searches of the audit log."""
        ...

    async def append_audit(self, record: AuditRecord) -> AuditRecord:
        """Append an audit record to its tenant's chain. The store sets `n` and `hash`."""
        ...

    async def last_audit(self, tenant: str, on: str, did: Collection[str]) -> AuditRecord | None:
        """The last record of one of these actions on this object; None if there is none."""
        ...

    async def audit(self, tenant: str, after: int = 0, limit: int = 100) -> list[AuditRecord]:
        """The audit records of a tenant, oldest first."""
        ...

    async def put_fingerprint(self, tenant: str, hash: str, mark: ConversationFingerprint, now: float) -> None:
        """Store where a conversation ended; the last write for a hash wins.

        Old ones and those of erased sessions expire.
        """
        ...

    async def fingerprint(self, tenant: str, hash: str) -> ConversationFingerprint | None:
        """Where a conversation with this hash ended here."""
        ...
