"""Sharing access: who may see a conversation, links to it, and administrators who open one.

A conversation is private to its author. Only the author shares it; an owner of the tenant may open it as administrator, for
a short time, with a reason, in the audit log, and the author is told.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import DEEPEST, ScopedAccess, is_id
from everturn.access.context.server_context import ServerContext
from everturn.core.store_ports import SessionInfo, Store
from everturn.core.tenants.accounts import Principal
from everturn.core.tenants.sharing import ADMIN_SECONDS, Share, level_of, reader_of, role_subject, user_subject
from everturn.errors import ConfigError, UnknownLink, UnknownShare

MOST_SHARES: Final = 200  # of a session, that count
LINK_BYTES: Final = 24


class SharingAccess:
    """Access to the shares of conversations."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def get(self, session: str) -> api.SharingView:
        """Who may see a session. The author sees all shares, others only their own level."""
        info = await self.scope.readable_session(session)
        level = await self.scope.session_level(info)
        root = (await self.scope.root_sessions({session})).get(session, info)
        with self.scope.tenant_scope(whole=True):
            shares = await self.scope.store.sharing.shares([root.id]) if level == "manage" else []
            temporary = await self.scope.store.sharing.temporary([root.id])
        now = self._now()
        shown = [share_view(share) for share in shares if share.is_active(now) or share.kind == "admin"]
        return api.SharingView(
            author=root.by, level=level or "read", shares=shown, temporary_until=temporary.get(root.id, 0.0)
        )

    @needs("member")
    async def people(self) -> api.PeopleList:
        """The users of the tenant, whom a conversation can be shared with."""
        users = await self.scope.server_context.accounts.users(self.scope.principal.tenant)
        return api.PeopleList(people=[api.PersonView(id=user.id, name=user.name) for user in users if user.is_active])

    @needs("member")
    async def share(self, session: str, share: api.NewShare) -> api.ShareView:
        """Share a session with a user, or with everybody who has at least a role."""
        info = await self.scope.own_root_session(session, "manage")
        if bool(share.user) == bool(share.role):
            raise ConfigError("share it with a user or with a role: name one of them")
        if share.user:
            account = await self.scope.server_context.accounts.user(self.scope.principal.tenant, share.user)
            if account is None or not account[0].is_active:
                raise ConfigError("user: there is no such user")
        subject = user_subject(share.user) if share.user else role_subject(share.role or "viewer")
        kind = "user" if share.user else "role"
        # The same subject has one share: sharing it again changes that.
        name = hashlib.sha256(f"{info.id}\n{subject}".encode()).hexdigest()[:32]
        base = await self._new_share(info, f"share_{name}", share.expires)
        row = replace(base, kind=kind, subject=subject, level=share.level)
        await self.scope.audit_action("session.share", session, share=row.id, kind=kind, with_=subject, level=row.level)
        await self.scope.store.sharing.add(row)
        return share_view(row)

    @needs("member")
    async def create_link(self, session: str, link: api.NewLink) -> api.LinkView:
        """Create a link that lets users of the tenant read a session. Its secret is shown once."""
        info = await self.scope.own_root_session(session, "manage")
        secret = secrets.token_urlsafe(LINK_BYTES)
        base = await self._new_share(info, f"link_{secrets.token_hex(8)}", link.expires)
        row = replace(base, hash=_hash(secret))
        await self.scope.audit_action("session.link", session, share=row.id, expires=row.expires)
        await self.scope.store.sharing.add(row)
        return api.LinkView(share=share_view(row), link=secret)

    @needs("viewer")
    async def open_link(self, opened: api.OpenLink) -> api.OpenedLink:
        """Open a link: the caller may read its session until the link expires or is revoked."""
        principal, now = self.scope.principal, self._now()
        with self.scope.tenant_scope(whole=True):
            link = await self.scope.store.sharing.link(principal.tenant, _hash(opened.link))
            infos = await self.scope.store.infos([link.session]) if link is not None else {}
        if link is None or not link.is_active(now) or link.session not in infos:
            raise UnknownLink("there is no such link")
        info = infos[link.session]
        if await self.scope.session_level(info) is None:
            name = hashlib.sha256(f"{link.id}\n{principal.user}".encode()).hexdigest()[:32]
            share = replace(
                link, id=f"share_{name}", kind="user", subject=user_subject(principal.user), hash="", via=link.id
            )
            await self.scope.audit_action("session.open_link", info.id, share=link.id)
            await self.scope.store.sharing.add(replace(share, created=now, by=link.by))
        return api.OpenedLink(session=info.id)

    @needs("member")
    async def revoke(self, session: str, share: str) -> None:
        """Revoke a share or a link; open streams of those who lose access end."""
        await self.scope.own_root_session(session, "manage")
        now = self._now()
        if not is_id(share) or not await self.scope.store.sharing.revoke(
            self.scope.principal.tenant, session, share, now
        ):
            raise UnknownShare("there is no such share")
        await self.scope.audit_action("session.unshare", session, share=share)

    @needs("owner")
    async def open_as_administrator(self, session: str, request: api.OpenAsAdministrator) -> api.ShareView:
        """Read a private session for a short time. It is audited first, and its author is told."""
        info = await self.scope.private_root_session(session)
        principal, now = self.scope.principal, self._now()
        seconds = min(request.minutes * 60.0, ADMIN_SECONDS)
        base = await self._new_share(info, f"admin_{secrets.token_hex(8)}", now + seconds)
        row = replace(base, kind="admin", subject=user_subject(principal.user), reason=request.reason)
        await self.scope.audit_action("session.open_as_administrator", session, share=row.id, reason=request.reason)
        await self.scope.store.sharing.add(row)
        return share_view(row)

    @needs("viewer")
    async def notices(self) -> api.NoticeList:
        """When administrators opened conversations of the caller, until the caller dismisses it."""
        principal = self.scope.principal
        with self.scope.tenant_scope():
            found = await self.scope.store.sharing.notices(principal.tenant, principal.user)
            infos = await self.scope.store.infos([share.session for share in found])
        return api.NoticeList(
            notices=[
                api.NoticeView(
                    id=share.id,
                    session=share.session,
                    title=infos[share.session].title,
                    by=share.by,
                    reason=share.reason,
                    at=share.created,
                    expires=share.expires,
                )
                for share in found
                if share.session in infos
            ]
        )

    @needs("viewer")
    async def dismiss_notice(self, notice: str) -> None:
        """Dismiss a notice; the share stays in the list of the conversation."""
        principal, now = self.scope.principal, self._now()
        if not is_id(notice) or not await self.scope.store.sharing.dismiss(
            principal.tenant, principal.user, notice, now
        ):
            raise UnknownShare("there is no such notice")

    async def _new_share(self, info: SessionInfo, id: str, expires: float) -> Share:
        now = self._now()
        if expires and expires <= now:
            raise ConfigError("expires: a time in the future, in seconds since 1970; 0: never")
        shares = await self.scope.store.sharing.shares([info.id])
        if sum(share.is_active(now) for share in shares) >= MOST_SHARES:
            raise ConfigError(f"a conversation has at most {MOST_SHARES} shares; revoke one, or share it with a role")
        by, tenant = self.scope.principal.user, self.scope.principal.tenant
        return Share(id=id, tenant=tenant, session=info.id, kind="link", by=by, created=now, expires=expires)

    def _now(self) -> float:
        return self.scope.server_context.app.clock.now()


def share_view(share: Share) -> api.ShareView:
    """A share, as the API shows it, without the hash of a link."""
    _, _, name = share.subject.partition(":")
    return api.ShareView(
        id=share.id,
        kind=share.kind,
        name=name,
        level=share.level,
        by=share.by,
        reason=share.reason,
        created=share.created,
        expires=share.expires,
        via=share.via,
    )


def outside_view(view: api.SessionView, title: str) -> api.SessionView:
    """A session for an approver who is not part of it: its title, and nothing else."""
    return api.SessionView(
        id=view.id,
        title=title,
        agent="",
        by="",
        created=0.0,
        updated=0.0,
        leaf=None,
        is_awake=False,
        quarantined="",
        is_listed=False,
    )


class Audience:
    """Who may see each of some sessions: read once, and then compared with many principals."""

    def __init__(self, roots: dict[str, SessionInfo], shares: list[Share], temporary: Collection[str]) -> None:
        self._roots, self._temporary = roots, temporary
        self._shares: dict[str, list[Share]] = {}
        for share in shares:
            self._shares.setdefault(share.session, []).append(share)

    def knows(self, session: str) -> bool:
        """Whether the session exists."""
        return session in self._roots

    def includes(self, principal: Principal, session: str, now: float) -> bool:
        """Whether a principal may see a session."""
        root = self._roots.get(session)
        if root is None or root.tenant != principal.tenant:
            return False
        return level_of(reader_of(principal, now), root.by, self._shares.get(root.id, ())) is not None

    def is_listed(self, session: str) -> bool:
        """Whether a session is in lists: a temporary one is not."""
        root = self._roots.get(session)
        return root is not None and root.id not in self._temporary


async def read_audience(store: Store, sessions: Collection[str]) -> Audience:
    """Read who may see these sessions, in a few queries, however many there are."""
    known: dict[str, SessionInfo] = {}
    wanted = set(sessions)
    for _ in range(DEEPEST):
        if not wanted:
            break
        found = await store.infos(sorted(wanted))
        known |= found
        wanted = {info.parent for info in found.values() if info.parent} - known.keys()
    roots: dict[str, SessionInfo] = {}
    for session in sessions:
        info = known.get(session)
        for _ in range(DEEPEST):
            if info is None or not info.parent:
                break
            info = known.get(info.parent)
        if info is not None and not info.parent:
            roots[session] = info
    names = sorted({info.id for info in roots.values()})
    return Audience(roots, await store.sharing.shares(names), await store.sharing.temporary(names))


async def find_lost_access(
    context: ServerContext, streams: Collection[tuple[Principal, str]]
) -> set[tuple[str, str, str]]:
    """Those of these (principal, session) that may no longer see it, as (tenant, user, session).

    A session that is absent is left out: its streams end as erased.
    """
    audience, now = await read_audience(context.app.store, {session for _, session in streams}), context.app.clock.now()
    return {
        (principal.tenant, principal.user, session)
        for principal, session in streams
        if audience.knows(session) and not audience.includes(principal, session, now)
    }


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
