"""Sharing routes: who may see a conversation, links to it, and notices of administrators who opened one."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.conversations.sharing import SharingAccess
from everturn.server.route import HttpRequestContext, Route
from everturn.server.routes.api import SESSION, route_for


async def _revoke(context: HttpRequestContext) -> None:
    await context.access.sharing.revoke(context.ids["session"], context.ids["share"])
    await context.streams.end_lost_access()


ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/people",
        SharingAccess.people,
        "Users of the tenant, whom a conversation can be shared with.",
        lambda a: a.access.sharing.people(),
        answer=api.PeopleList,
    ),
    route_for(
        "GET",
        SESSION + "/sharing",
        SharingAccess.get,
        "Who may see a conversation, and what the caller may do in it.",
        lambda a: a.access.sharing.get(a.ids["session"]),
        name="sharing",
        answer=api.SharingView,
    ),
    route_for(
        "POST",
        SESSION + "/shares",
        SharingAccess.share,
        "Share a conversation with a user or a role. Only its author can.",
        lambda a: a.access.sharing.share(a.ids["session"], a.body),
        body=api.NewShare,
        answer=api.ShareView,
        status=201,
    ),
    route_for(
        "DELETE",
        SESSION + "/shares/{share}",
        SharingAccess.revoke,
        "Revoke a share or a link. Open streams of those who lose access end.",
        _revoke,
        name="revoke_share",
        status=204,
    ),
    route_for(
        "POST",
        SESSION + "/links",
        SharingAccess.create_link,
        "Create a read-only link to a conversation, for users of the tenant. Its secret is shown once.",
        lambda a: a.access.sharing.create_link(a.ids["session"], a.body),
        body=api.NewLink,
        answer=api.LinkView,
        status=201,
        is_secret=True,
    ),
    route_for(
        "POST",
        "/api/links/open",
        SharingAccess.open_link,
        "Open a link: the caller may read its conversation until the link expires or is revoked.",
        lambda a: a.access.sharing.open_link(a.body),
        body=api.OpenLink,
        answer=api.OpenedLink,
    ),
    route_for(
        "POST",
        SESSION + "/admin-access",
        SharingAccess.open_as_administrator,
        "Read a private conversation as administrator, for up to an hour. It is audited, and the author is told.",
        lambda a: a.access.sharing.open_as_administrator(a.ids["session"], a.body),
        body=api.OpenAsAdministrator,
        answer=api.ShareView,
        status=201,
    ),
    route_for(
        "GET",
        "/api/notices",
        SharingAccess.notices,
        "When administrators opened conversations of the caller.",
        lambda a: a.access.sharing.notices(),
        answer=api.NoticeList,
    ),
    route_for(
        "DELETE",
        "/api/notices/{notice}",
        SharingAccess.dismiss_notice,
        "Dismiss a notice.",
        lambda a: a.access.sharing.dismiss_notice(a.ids["notice"]),
        status=204,
    ),
]
