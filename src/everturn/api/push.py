"""Push subscriptions of browsers."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from everturn.api.base import Body, Name, View


class NewPushSubscription(Body, frozen=True, kw_only=True):
    """A push subscription of a browser: its endpoint and keys, as `PushSubscription.toJSON()` has them."""

    endpoint: Annotated[str, Meta(min_length=1, max_length=2000)]
    p256dh: Annotated[str, Meta(min_length=1, max_length=200)]
    auth: Annotated[str, Meta(min_length=1, max_length=100)]
    key: Annotated[str, Meta(max_length=200)]  # of the server, with which it was made
    language: Literal["en", "zh"] = "en"
    label: Name = ""
    site: Annotated[str, Meta(max_length=200, pattern=r"^(https://[^\s/]+)?$")] = ""  # the origin of the server


class PushSubscriptionView(View, frozen=True, kw_only=True):
    """A browser that is told of approvals."""

    id: str
    label: str
    created: float
    credential: str  # the login that it belongs to


class PushView(View, frozen=True, kw_only=True):
    """The public key to subscribe with, base64url ("": there is no push), and the browsers of the caller."""

    key: str
    subscriptions: list[PushSubscriptionView]
