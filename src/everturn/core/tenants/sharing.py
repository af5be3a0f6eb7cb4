"""Sharing of conversations: who may read or write in a session, and the port of the store that keeps it. Pure.

A conversation is private: only its author may see it. A `Share` lets others in: a user, everybody who has a role, a user
who opened a read-only link, or an administrator for a short time. The sessions of sub-agents follow their root session.
A session without an author (of a program, or an inbound hook that names no user) belongs to the owners of its tenant.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, Protocol

import msgspec
from msgspec import Struct

from everturn.core.tenants.accounts import ROLES, Principal, Role, is_at_least

ShareKind = Literal["user", "role", "link", "admin"]
"""`user`: one user. `role`: all users with at least this role. `link`: the link itself, which is no reader. `admin`: an
administrator who opened the conversation."""
ShareLevel = Literal["read", "write"]
SessionLevel = Literal["read", "write", "manage"]
"""`read`: see everything in it. `write`: also send messages and change it. `manage`: also share and erase it."""

LEVELS: Final[tuple[SessionLevel, ...]] = ("read", "write", "manage")
ADMIN_SECONDS: Final = 3600.0  # the longest time for which an administrator opens a conversation
TEMPORARY_SECONDS: Final = 86_400.0  # after which a temporary chat is erased


class Share(Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """One permission to see a session."""

    id: str
    tenant: str
    session: str
    kind: ShareKind
    subject: str = ""  # `user_subject(…)` or `role_subject(…)`; "" for a link
    level: ShareLevel = "read"
    hash: str = ""  # of the secret of a link
    via: str = ""  # the link that this user has opened
    by: str = ""  # who shared it
    reason: str = ""  # that an administrator gave
    created: float = 0.0
    expires: float = 0.0  # 0: until it is revoked
    revoked: float = 0.0  # when
    seen: float = 0.0  # when the author has dismissed the notice of an administrator

    def is_active(self, now: float) -> bool:
        """Whether it counts at a time."""
        return not self.revoked and (not self.expires or self.expires > now)


class Reader(Struct, frozen=True):
    """A principal, as far as it matters for what they may read. `now` is the time at which shares must be valid."""

    user: str
    creators: tuple[str, ...]  # the authors whose sessions are theirs
    subjects: tuple[str, ...]  # the subjects of shares that let them in
    now: float = 0.0

    def as_json(self) -> str:
        """For a query of a database."""
        return msgspec.json.encode({"creators": self.creators, "subjects": self.subjects}).decode()


def user_subject(user: str) -> str:
    """The subject of a share with a user."""
    return f"user:{user}"


def role_subject(role: Role) -> str:
    """The subject of a share with everybody who has at least a role."""
    return f"role:{role}"


def reader_of(principal: Principal, now: float) -> Reader:
    """A principal as a reader. Sessions without an author belong to owners."""
    unowned = ("",) if is_at_least(principal.role, "owner") else ()
    roles = (role_subject(role) for role in ROLES if is_at_least(principal.role, role))
    return Reader(principal.user, (principal.user, *unowned), (user_subject(principal.user), *roles), now)


def level_of(reader: Reader, author: str, shares: Iterable[Share]) -> SessionLevel | None:
    """What a reader may do in a root session, by its author and its shares; None: it is not there for them."""
    if author in reader.creators:
        return "manage"
    found: SessionLevel | None = None
    for share in shares:
        if share.kind != "link" and share.is_active(reader.now) and share.subject in reader.subjects:
            found = "write" if "write" in (found, share.level) else "read"
    return found


def is_level(level: SessionLevel | None, needed: SessionLevel) -> bool:
    """Whether a level includes the needed one."""
    return level is not None and LEVELS.index(level) >= LEVELS.index(needed)


class SharingStore(Protocol):
    """Keeps shares, and which sessions are temporary. Each method is one transaction."""

    async def add(self, share: Share) -> None:
        """Add a share; one with the same id is replaced."""
        ...

    async def shares(self, sessions: Sequence[str]) -> list[Share]:
        """All shares of these sessions, oldest first, those that no longer count included."""
        ...

    async def link(self, tenant: str, hash: str) -> Share | None:
        """The link of a tenant with this hash of its secret."""
        ...

    async def revoke(self, tenant: str, session: str, id: str, now: float) -> bool:
        """Revoke a share and, for a link, those of the users who opened it; False if there is none."""
        ...

    async def notices(self, tenant: str, author: str) -> list[Share]:
        """The times when an administrator opened a session of this author, and the author has not dismissed it."""
        ...

    async def dismiss(self, tenant: str, author: str, id: str, now: float) -> bool:
        """Dismiss a notice of this author; False if there is none."""
        ...

    async def set_temporary(self, tenant: str, session: str, until: float) -> None:
        """Let a session be temporary: it is in no list, and is erased after a time. The first call counts."""
        ...

    async def temporary(self, sessions: Sequence[str]) -> dict[str, float]:
        """Those of these sessions that are temporary, and until when."""
        ...

    async def forget_temporary(self, session: str) -> None:
        """Forget that a session was temporary, once it is erased."""
        ...

    async def expired(self, now: float, limit: int = 200) -> list[str]:
        """Temporary sessions whose time is over."""
        ...
