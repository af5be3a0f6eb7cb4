"""Presence route: who looks at a conversation or an approval now."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.conversations.presence import PresenceAccess
from everturn.server.route import Route
from everturn.server.routes.api import route_for

ROUTES: Final[list[Route]] = [
    route_for(
        "POST",
        "/api/presence",
        PresenceAccess.look,
        "Say which conversations and approvals a tab shows, and learn who else looks at them. Nothing is stored; it does "
        "not count against the tenant's rate limit.",
        lambda a: a.access.presence.look(a.body),
        name="presence",
        body=api.Looking,
        answer=api.PresenceView,
        is_uncounted=True,
    ),
]
