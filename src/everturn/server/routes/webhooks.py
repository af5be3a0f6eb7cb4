"""Webhook routes: URLs that are told of events, and their deliveries."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.webhooks import WebhookAccess
from everturn.server.route import Param, Route
from everturn.server.routes.api import LIMIT, route_for

STATE: Final = {"type": "string", "enum": ["pending", "delivered", "dead"]}
WEBHOOK: Final = "/api/webhooks/{webhook}"

ROUTES: Final[list[Route]] = [
    route_for(
        "GET",
        "/api/webhooks",
        WebhookAccess.list,
        "List the webhooks.",
        lambda a: a.access.webhooks.list(),
        name="webhooks",
        answer=api.WebhookList,
    ),
    route_for(
        "POST",
        "/api/webhooks",
        WebhookAccess.create,
        "Create a webhook. Only this response contains its secret.",
        lambda a: a.access.webhooks.create(a.body),
        name="create_webhook",
        body=api.NewWebhook,
        answer=api.WebhookWithSecret,
        status=201,
        is_secret=True,
    ),
    route_for(
        "GET",
        WEBHOOK,
        WebhookAccess.get,
        "Get a webhook.",
        lambda a: a.access.webhooks.get(a.ids["webhook"]),
        name="webhook",
        answer=api.WebhookView,
    ),
    route_for(
        "PATCH",
        WEBHOOK,
        WebhookAccess.update,
        "Change the URL, events or description of a webhook, or pause it; its secret stays.",
        lambda a: a.access.webhooks.update(a.ids["webhook"], a.body),
        name="update_webhook",
        body=api.PatchWebhook,
        answer=api.WebhookView,
    ),
    route_for(
        "DELETE",
        WEBHOOK,
        WebhookAccess.delete,
        "Delete a webhook and its deliveries.",
        lambda a: a.access.webhooks.delete(a.ids["webhook"]),
        name="delete_webhook",
        status=204,
    ),
    route_for(
        "POST",
        f"{WEBHOOK}/secret",
        WebhookAccess.rotate_secret,
        "Rotate the secret; for a day deliveries are signed with both.",
        lambda a: a.access.webhooks.rotate_secret(a.ids["webhook"]),
        name="rotate_webhook_secret",
        answer=api.WebhookWithSecret,
        is_secret=True,
    ),
    route_for(
        "POST",
        f"{WEBHOOK}/pause",
        WebhookAccess.pause,
        "Pause a webhook: nothing is sent until it is resumed.",
        lambda a: a.access.webhooks.pause(a.ids["webhook"]),
        name="pause_webhook",
        answer=api.WebhookView,
    ),
    route_for(
        "POST",
        f"{WEBHOOK}/resume",
        WebhookAccess.resume,
        "Resume a webhook that was paused or disabled.",
        lambda a: a.access.webhooks.resume(a.ids["webhook"]),
        name="resume_webhook",
        answer=api.WebhookView,
    ),
    route_for(
        "POST",
        f"{WEBHOOK}/test",
        WebhookAccess.send_test,
        "Send a test event now, and return what the receiver answered.",
        lambda a: a.access.webhooks.send_test(a.ids["webhook"]),
        name="test_webhook",
        answer=api.WebhookTestView,
    ),
    route_for(
        "GET",
        f"{WEBHOOK}/deliveries",
        WebhookAccess.deliveries,
        "List deliveries in a state, newest first.",
        lambda a: a.access.webhooks.deliveries(a.ids["webhook"], **a.query),
        name="webhook_deliveries",
        answer=api.DeliveryList,
        query=(Param("state", STATE, "`dead` by default"), Param("limit", LIMIT)),
    ),
    route_for(
        "POST",
        f"{WEBHOOK}/replay",
        WebhookAccess.replay,
        "Send all dead deliveries again, or that of one event.",
        lambda a: a.access.webhooks.replay(a.ids["webhook"], a.body),
        name="replay_webhook",
        body=api.ReplayDeliveries,
        answer=api.ReplayedDeliveries,
    ),
]
