"""Sharing of conversations: people, roles, links, and notices to their authors."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from everturn.api.base import Body, Name, View
from everturn.core.tenants.accounts import Role
from everturn.core.tenants.sharing import SessionLevel, ShareKind, ShareLevel


class NewShare(Body, frozen=True, kw_only=True):
    """Share a session with a user, or with everybody who has at least a role."""

    user: Name = ""
    role: Role | None = None
    level: ShareLevel = "read"  # "write": also send messages
    expires: Annotated[float, Meta(ge=0, lt=1e11)] = 0.0  # Unix time; 0: until it is revoked


class NewLink(Body, frozen=True, kw_only=True):
    """Create a read-only link to a session, for the users of the tenant."""

    expires: Annotated[float, Meta(ge=0, lt=1e11)] = 0.0  # Unix time; 0: until it is revoked


class OpenLink(Body, frozen=True, kw_only=True):
    """Open a link."""

    link: Annotated[str, Meta(min_length=1, max_length=200)]


class OpenAsAdministrator(Body, frozen=True, kw_only=True):
    """Read a private session for a short time; its author is told the reason."""

    reason: Annotated[str, Meta(min_length=1, max_length=500)]
    minutes: Annotated[int, Meta(ge=1, le=60)] = 15


class PersonView(View, frozen=True, kw_only=True):
    """A user whom a conversation can be shared with."""

    id: str
    name: str


class PeopleList(View, frozen=True, kw_only=True):
    """The users of the tenant, by id."""

    people: list[PersonView]


class ShareView(View, frozen=True, kw_only=True):
    """A permission to see a session: of a user, a role, a link, or an administrator who opened it."""

    id: str
    kind: ShareKind
    name: str  # the user or the role; "" for a link
    level: ShareLevel
    by: str  # who shared it
    created: float
    expires: float  # 0: until it is revoked
    reason: str = ""  # that an administrator gave
    via: str = ""  # the link that the user has opened


class SharingView(View, frozen=True, kw_only=True):
    """Who may see a session. `shares` is shown to its author only."""

    author: str  # "": it belongs to the owners of the tenant
    level: SessionLevel  # what the caller may do in it
    shares: list[ShareView]
    temporary_until: float = 0.0  # when it is erased; 0: it is not temporary


class LinkView(View, frozen=True, kw_only=True):
    """A new link. `link` is its secret, which is shown once."""

    share: ShareView
    link: str


class OpenedLink(View, frozen=True, kw_only=True):
    """The session that a link leads to."""

    session: str


class NoticeView(View, frozen=True, kw_only=True):
    """An administrator opened a conversation of the caller."""

    id: str
    session: str
    title: str
    by: str
    reason: str
    at: float
    expires: float


class NoticeList(View, frozen=True, kw_only=True):
    """The notices that the caller has not dismissed, oldest first."""

    notices: list[NoticeView]
