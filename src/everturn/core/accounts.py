"""Who may come in: tenants, their users and what those show at the door; and the port behind which they are kept.

A tenant is the wall: whatever is kept belongs to one, and nothing is seen through it. Inside of it a role says what
somebody may do. Of what people show at the door only a hash is kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from typing import Final, Literal, Protocol

import msgspec
from msgspec import Struct
from msgspec.structs import replace

Role = Literal["viewer", "member", "approver", "owner", "operator"]
"""What somebody may do: read; talk and cancel; answer gates; see to users, keys and what is allowed everywhere; and, of
the whole installation, see to the processes. Each may do what those before it may."""

ROLES: Final[tuple[Role, ...]] = ("viewer", "member", "approver", "owner", "operator")

LOCAL: Final = "local"
"""The tenant of whoever runs the server on their own machine."""


def is_at_least(role: Role, needed: Role) -> bool:
    """Whether a role is enough."""
    return ROLES.index(role) >= ROLES.index(needed)


def least(one: Role, other: Role) -> Role:
    """The one that may do less."""
    return one if is_at_least(other, one) else other


class Tenant(Struct, frozen=True, omit_defaults=True):
    """Whom sessions belong to."""

    id: str
    name: str = ""
    is_active: bool = True
    created: float = 0.0


class User(Struct, frozen=True, omit_defaults=True):
    """Somebody in a tenant. Whoever is in two of them is two."""

    tenant: str
    id: str
    name: str = ""
    role: Role = "member"
    is_active: bool = True
    created: float = 0.0
    origin: str = ""  # the issuer whose tokens speak of them; "": none does, whatever it calls somebody


def is_last_owner(users: Iterable[User], after: User) -> bool:
    """Whether nobody is left who sees to a tenant once somebody is as they are to be."""
    owners = {one.id for one in users if one.is_active and is_at_least(one.role, "owner")}
    return owners == {after.id} and not (after.is_active and is_at_least(after.role, "owner"))


CredentialKind = Literal["key", "login", "link"]
"""An API key; a browser that has logged in; a link that logs one in, once."""


class Credential(Struct, frozen=True, omit_defaults=True):
    """What somebody shows at the door, without the secret itself: `hash` is all that is kept of it."""

    id: str
    tenant: str
    user: str
    kind: CredentialKind
    hash: str  # SHA-256 of the secret, in hex; secrets are long and random, so that no slower one is needed
    name: str = ""
    role: Role = "operator"  # at most this, whatever the user may do
    created: float = 0.0
    expires: float = 0.0  # 0: until it is revoked
    revoked: float = 0.0  # when


class Known(Struct, frozen=True):
    """A credential that was found by its hash, and whose it is; whether it holds is for the finder to say."""

    credential: Credential
    user: User
    tenant: Tenant


class Principal(Struct, frozen=True, omit_defaults=True):
    """Whoever asks for something, as they were recognised at the door."""

    tenant: str
    user: str
    role: Role
    credential: str = ""  # its id; of a token that somebody else has issued, a hash of it
    kind: Literal["key", "login", "token"] = "key"
    expires: float = 0.0  # 0: until it is revoked


class AuditRecord(Struct, frozen=True, omit_defaults=True):
    """Something that somebody did, or was refused. `hash` covers all of it and the record before, so that none can go."""

    tenant: str
    at: float
    by: str  # the user
    credential: str
    did: str  # "session.erase", "gate.answer", "key.create", "door.refused", …
    on: str = ""  # the id it was done to
    detail: str = ""  # JSON; never a secret, never what was said in a conversation
    n: int = 0  # its number in the tenant, from 1
    hash: str = ""


def chained(record: AuditRecord, before: AuditRecord | None) -> AuditRecord:
    """A record as it stands behind another, or (None) as the first of its tenant: with its number and its hash."""
    n, link = (1, "") if before is None else (before.n + 1, before.hash)
    covered = (link, record.tenant, n, record.at, record.by, record.credential, record.did, record.on, record.detail)
    return replace(record, n=n, hash=hashlib.sha256(msgspec.json.encode(covered)).hexdigest())


def check_chain(records: Iterable[AuditRecord], before: AuditRecord | None = None) -> list[str]:
    """What is wrong with the records of one tenant, oldest first, in words; `before` is the one they stand behind.

    That the last ones were taken away cannot be seen in what is left: whoever has to know keeps the last hash elsewhere.
    """
    violations: list[str] = []
    for record in records:
        place = 1 if before is None else before.n + 1
        if before is not None and record.tenant != before.tenant:
            violations.append(f"record {record.n} is of tenant {record.tenant!r}, not of {before.tenant!r}")
        if record.n != place:
            violations.append(f"where record {place} should be there is record {record.n}")
        elif record != chained(record, before):
            violations.append(f"record {record.n} is not what was written, or not behind what was written before it")
        before = record
    return violations


class Mark(Struct, frozen=True):
    """By what a conversation is known again that a client brings along as text: where it ended here."""

    session: str
    message: str


class Accounts(Protocol):
    """Tenants, users, credentials, and what was done. Kept beside sessions, and shared by all nodes."""

    async def put_tenant(self, tenant: Tenant) -> None:
        """Make a tenant, or change it."""
        ...

    async def tenants(self) -> list[Tenant]:
        """All of them, by id."""
        ...

    async def put_user(self, user: User, *, keeps_owner: bool = False) -> None:
        """Make a user, or change one; with `keeps_owner` not so that nobody is left who sees to the tenant.

        Raises:
            Forbidden: nobody would be; of two at once who demote each other, one is refused.
        """
        ...

    async def add_user(self, user: User) -> bool:
        """Make a user; False, and nothing is changed, when there is one of this id."""
        ...

    async def users(self, tenant: str) -> list[User]:
        """The users of a tenant, by id."""
        ...

    async def user(self, tenant: str, user: str) -> tuple[User, Tenant] | None:
        """One of them, and their tenant."""
        ...

    async def put_credential(self, credential: Credential) -> None:
        """Keep a new credential.

        Raises:
            KeyConflict: there is one of this id or hash.
        """
        ...

    async def known(self, hash: str) -> Known | None:
        """Whose credential this is; also one that is revoked or expired, or whose user is no longer active."""
        ...

    async def credentials(self, tenant: str, user: str | None = None) -> list[Credential]:
        """The credentials of a tenant, or of one of its users, oldest first."""
        ...

    async def use_link(self, hash: str, now: float) -> Known | None:
        """Use up a link: it is revoked in the same write, so of two who try one has it.

        None: there is no such link, or it was used, revoked or has expired. Whether its user is active is for the caller.
        """
        ...

    async def revoke(self, tenant: str, credential: str, now: float) -> bool:
        """Let a credential hold no more; False when this tenant has none of this id that did."""
        ...

    async def standing(self, credentials: Collection[str]) -> dict[str, Known]:
        """Those of these credentials that are there, as they are now: how a node sees what was revoked elsewhere."""
        ...

    async def secret(self, name: str) -> bytes:
        """32 random bytes of this name, made by whoever asks first and the same on every node ever after."""
        ...

    async def note(self, record: AuditRecord) -> AuditRecord:
        """Write down what was done, behind what was done before in this tenant; `n` and `hash` are given here."""
        ...

    async def last_note(self, tenant: str, on: str, did: Collection[str]) -> AuditRecord | None:
        """The last record of one of these deeds to this subject; None when there is none."""
        ...

    async def audit(self, tenant: str, after: int = 0, limit: int = 100) -> list[AuditRecord]:
        """What was done in a tenant, oldest first."""
        ...

    async def put_mark(self, tenant: str, hash: str, mark: Mark, now: float) -> None:
        """Remember where a conversation ended; the last one of a hash counts. Old ones go, and those of erased sessions."""
        ...

    async def mark(self, tenant: str, hash: str) -> Mark | None:
        """Where a conversation with this hash ended here."""
        ...
