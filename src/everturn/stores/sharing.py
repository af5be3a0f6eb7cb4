"""In-memory `SharingStore`: the reference implementation.

No method awaits anything between its first read and its last write, so each is one transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from everturn.core.tenants.sharing import Reader, Share, level_of


class DictSharing:
    """The shares of one process; they end with it. `author_of` returns the author of a root session."""

    def __init__(self, author_of: Callable[[str], str | None]) -> None:
        self._author_of = author_of
        self._shares: dict[str, Share] = {}
        self._temporary: dict[str, float] = {}

    async def add(self, share: Share) -> None:
        """Add a share."""
        self._shares[share.id] = share

    async def shares(self, sessions: Sequence[str]) -> list[Share]:
        """Return all shares of these sessions."""
        return self._of(set(sessions))

    def _of(self, sessions: set[str]) -> list[Share]:
        return sorted(
            (share for share in self._shares.values() if share.session in sessions),
            key=lambda share: (share.created, share.id),
        )

    async def link(self, tenant: str, hash: str) -> Share | None:
        """Return the link with a hash."""
        links = (share for share in self._shares.values() if share.kind == "link" and share.tenant == tenant)
        return next((share for share in links if share.hash == hash), None)

    async def revoke(self, tenant: str, session: str, id: str, now: float) -> bool:
        """Revoke a share, and what was opened by it."""
        share = self._shares.get(id)
        if share is None or (share.tenant, share.session) != (tenant, session):
            return False
        for other in list(self._shares.values()):
            if id in (other.id, other.via) and not other.revoked:
                self._shares[other.id] = replace(other, revoked=now)
        return True

    async def notices(self, tenant: str, author: str) -> list[Share]:
        """Return what administrators opened of an author's sessions."""
        found = (share for share in self._shares.values() if self._is_notice(share, tenant, author))
        return sorted(found, key=lambda share: (share.created, share.id))

    def _is_notice(self, share: Share, tenant: str, author: str) -> bool:
        is_open = share.kind == "admin" and not share.seen and share.tenant == tenant
        return is_open and self._author_of(share.session) == author

    async def dismiss(self, tenant: str, author: str, id: str, now: float) -> bool:
        """Dismiss a notice."""
        share = self._shares.get(id)
        if share is None or not self._is_notice(share, tenant, author):
            return False
        self._shares[id] = replace(share, seen=now)
        return True

    async def set_temporary(self, tenant: str, session: str, until: float) -> None:
        """Let a session be temporary."""
        self._temporary.setdefault(session, until)

    async def temporary(self, sessions: Sequence[str]) -> dict[str, float]:
        """Return those that are temporary."""
        return {session: self._temporary[session] for session in sessions if session in self._temporary}

    async def forget_temporary(self, session: str) -> None:
        """Forget that a session was temporary."""
        self._temporary.pop(session, None)

    async def expired(self, now: float, limit: int = 200) -> list[str]:
        """Return temporary sessions whose time is over."""
        return sorted(session for session, until in self._temporary.items() if until <= now)[:limit]

    def is_temporary(self, session: str) -> bool:
        """Return whether a session is in no list."""
        return session in self._temporary

    def is_readable(self, reader: Reader, root: str, author: str) -> bool:
        """Return whether a reader may read a root session."""
        return level_of(reader, author, self._of({root})) is not None

    def forget_session(self, session: str) -> None:
        """Remove what belongs to an erased session."""
        self._temporary.pop(session, None)
        self._shares = {id: share for id, share in self._shares.items() if share.session != session}
