"""Push routes: browsers that are told of approvals, and the service worker that shows the notification."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.push import PushAccess
from everturn.server.route import Route
from everturn.server.routes.api import route_for

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/push",
        PushAccess.get,
        "The public key for push subscriptions, and the browsers of the caller.",
        lambda a: a.access.push.get(),
        name="push",
        answer=api.PushView,
    ),
    route_for(
        "POST",
        "/api/push/subscriptions",
        PushAccess.subscribe,
        "Send push notifications of approvals to a browser of the caller, until its login ends.",
        lambda a: a.access.push.subscribe(a.body),
        name="subscribe_push",
        body=api.NewPushSubscription,
        answer=api.PushSubscriptionView,
        status=201,
    ),
    route_for(
        "DELETE",
        "/api/push/subscriptions/{subscription}",
        PushAccess.unsubscribe,
        "Remove a browser of the caller.",
        lambda a: a.access.push.unsubscribe(a.ids["subscription"]),
        name="unsubscribe_push",
        status=204,
    ),
]
