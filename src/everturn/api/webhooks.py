"""Outbound webhooks, their deliveries, and inbound hooks."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from everturn.api.base import Body, View
from everturn.core.rate_limits import Priority
from everturn.core.schedules import Origin
from everturn.core.webhooks import DeliveryState, WebhookEvent


class NewWebhook(Body, frozen=True, kw_only=True):
    """A URL that is to be told of events; without `events`, of all."""

    url: Annotated[str, Meta(min_length=1, max_length=2000)]
    events: list[WebhookEvent] = []
    description: Annotated[str, Meta(max_length=500)] = ""


class PatchWebhook(Body, frozen=True, kw_only=True):
    """What of a webhook is changed; what is left out stays, and so does its secret."""

    url: Annotated[str, Meta(min_length=1, max_length=2000)] | None = None
    events: Annotated[list[WebhookEvent], Meta(min_length=1)] | None = None
    description: Annotated[str, Meta(max_length=500)] | None = None
    is_paused: bool | None = None


class ReplayDeliveries(Body, frozen=True, kw_only=True):
    """Which deliveries are sent again: all dead ones, or that of one event."""

    session: Annotated[str, Meta(max_length=1000)] = ""
    seq: Annotated[int, Meta(ge=0, le=2**53)] = 0


class WebhookFailures(View, frozen=True, kw_only=True):
    """Deliveries that failed since the last one that succeeded, since when, and the last problem. At most 200 are counted."""

    count: int
    since: float
    problem: str


class WebhookView(View, frozen=True, kw_only=True):
    """A URL that is told of events. `disabled` says why it is not; its secret is never shown again.

    `failing` is in lists, and in the answer to a GET of one webhook.
    """

    id: str
    url: str
    events: list[WebhookEvent]
    description: str
    created: float
    by: str
    disabled: str
    origin: Origin
    is_paused: bool
    failing: WebhookFailures | None = None  # its last deliveries failed


class WebhookList(View, frozen=True, kw_only=True):
    """The webhooks of a tenant, by id."""

    webhooks: list[WebhookView]


class WebhookWithSecret(View, frozen=True, kw_only=True):
    """A webhook, and the secret that its receiver verifies signatures with."""

    webhook: WebhookView
    secret: str


class WebhookTestView(View, frozen=True, kw_only=True):
    """What a receiver answered to a test event; `status` 0: nothing. `problem` says why it is not a success."""

    id: str
    status: int
    problem: str


class DeliveryView(View, frozen=True, kw_only=True):
    """An event that a webhook is told of. `id` is the header `webhook-id`."""

    id: str
    session: str
    seq: int
    type: str
    at: float
    state: DeliveryState
    due: float | None
    tries: int
    status: int
    problem: str
    updated: float


class DeliveryList(View, frozen=True, kw_only=True):
    """Deliveries of a webhook, newest first."""

    deliveries: list[DeliveryView]


class ReplayedDeliveries(View, frozen=True, kw_only=True):
    """How many deliveries are sent again."""

    count: int


class HookView(View, frozen=True, kw_only=True):
    """An inbound hook: other systems deliver signed requests at its path. Its secret is never shown."""

    name: str
    path: str
    scheme: Literal["standard", "github", "slack"]
    action: Literal["send", "complete", "answer"]
    agent: str
    session: str
    text: str
    by: str
    priority: Priority
    max_bytes: int
    origin: Origin
    when: dict[str, list[str]]
    fields: list[str]
    version: int = 0  # of one that an administrator has created
    at: float = 0.0
    problem: str = ""  # why it is not in use


class HookList(View, frozen=True, kw_only=True):
    """The inbound hooks of a tenant, by name. `problem` says why the caller can create none; "": they can."""

    hooks: list[HookView]
    problem: str


class NewHook(Body, frozen=True, kw_only=True):
    """An inbound hook that starts turns, with the authority of the caller.

    `secret` is that of the other system; "" keeps the one stored, and makes one for a new hook. `version` is the one that
    was seen, 0 for a new hook.
    """

    scheme: Literal["standard", "github", "slack"]
    text: Annotated[str, Meta(min_length=1, max_length=20_000)]
    agent: Annotated[str, Meta(max_length=200)] = ""
    session: Annotated[str, Meta(max_length=2000)] = ""
    when: Annotated[dict[str, list[str]], Meta(max_length=50)] = {}
    fields: Annotated[list[str], Meta(max_length=200)] = []
    secret: Annotated[str, Meta(max_length=4096)] = ""
    version: int | None = None


class NewHookSecret(Body, frozen=True, kw_only=True):
    """A new secret; "": one is made."""

    secret: Annotated[str, Meta(max_length=4096)] = ""


class HookWithSecret(View, frozen=True, kw_only=True):
    """A hook, and the secret that was made for it; "": the one that was there, or was entered."""

    hook: HookView
    secret: str


class HookCallView(View, frozen=True, kw_only=True):
    """A call of a hook: the turn that it started, or why it did nothing."""

    at: float
    outcome: Literal["started", "completed", "answered", "ignored", "repeated", "refused"]
    session: str
    turn: str
    reason: str


class HookCallList(View, frozen=True, kw_only=True):
    """The last calls of a hook, newest first. Of those that did nothing, one a minute is listed."""

    calls: list[HookCallView]


class HookReceiptView(View, frozen=True, kw_only=True):
    """What became of a delivery to an inbound hook. `is_new` is false for one that was received before."""

    outcome: Literal["started", "completed", "answered", "ignored", "challenge"]
    session: str
    turn: str
    is_new: bool
