"""Webhooks: which events of a log are told to whom, and the outbox of deliveries. Pure.

An append writes a delivery for each subscriber of its events, in its own transaction: an event that is in the log is in
the outbox, and one that is not was never told. A sender delivers them later, at least once and in no promised order; each
has the position of its event (`seq`), and the same id whenever it is sent again.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from typing import Any, Final, Literal, Protocol, get_args

from msgspec import Struct

from everturn.core.canonical_json import encode_canonical, hash_values
from everturn.core.events import Event, GateOpened, GateResolved, TurnCancelled, TurnCompleted, TurnFailed
from everturn.core.tenants.accounts import LOCAL

WebhookEvent = Literal["turn.completed", "turn.failed", "turn.cancelled", "gate.opened", "gate.resolved"]
WEBHOOK_EVENTS: Final[tuple[WebhookEvent, ...]] = get_args(WebhookEvent)
DeliveryState = Literal["pending", "delivered", "dead"]
SECRET_PREFIX: Final = "whsec_"


class PushTarget(Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """A browser that is told of approvals by Web Push; its URL is the endpoint of its push service."""

    user: str
    credential: str  # the login in which it was made; it ends with it
    p256dh: str  # the public key of the browser, base64url
    auth: str  # the secret of the subscription, base64url
    key: str  # the public key of this server that the browser was given
    language: Literal["en", "zh"] = "en"
    label: str = ""  # the browser, for its user
    site: str = ""  # the URL of this server as the browser knows it


class Webhook(Struct, frozen=True, kw_only=True, omit_defaults=True, repr_omit_defaults=True):
    """A subscription of a tenant: a URL that is told of events. Its secret is derived, and not stored."""

    id: str
    tenant: str = LOCAL
    url: str
    events: tuple[WebhookEvent, ...]
    description: str = ""
    created: float = 0.0
    by: str = ""
    version: int = 1  # of the secret
    rotated: float = 0.0  # until when the secret before is used, too
    disabled: str = ""  # why it is told nothing; "": it is told
    is_paused: bool = False  # a person has stopped it; rotating its secret does not resume it
    push: PushTarget | None = None  # a browser, not another system

    @property
    def needle(self) -> str:
        """Its events as one text, in which a store looks for `,type,`."""
        return f",{','.join(self.events)}," if not self.disabled and not self.is_paused else ""


class Delivery(Struct, frozen=True, kw_only=True):
    """An event that a webhook is told of."""

    tenant: str
    webhook: str
    session: str
    seq: int  # the position of the event
    type: str
    at: float
    data: str  # JSON
    state: DeliveryState = "pending"
    due: float | None = None  # of a pending one
    tries: int = 0
    status: int = 0  # of the last response; 0: there was none
    problem: str = ""
    updated: float = 0.0

    @property
    def id(self) -> str:
        """The same whenever it is sent: by it a receiver knows a delivery that it has seen."""
        return f"msg_{hash_values(self.tenant, self.webhook, self.session, str(self.seq))[:32]}"


class DeliveryFailures(Struct, frozen=True, kw_only=True):
    """Deliveries of a webhook that failed since the last one that succeeded, when that began, and the last problem."""

    count: int
    since: float
    problem: str


def delivery_failures(unsuccessful: Iterable[Delivery], delivered: Iterable[Delivery]) -> DeliveryFailures | None:
    """What failed after the last success, of dead and pending deliveries; None: the last try succeeded, or there was none."""
    success = max((row.updated for row in delivered), default=0.0)
    failed = [row for row in unsuccessful if row.tries and row.problem and row.updated > success]
    if not failed:
        return None
    last = max(failed, key=lambda row: row.updated)
    since = max(success, min(row.at for row in failed))  # one that is tried for days may have failed before the success
    return DeliveryFailures(count=len(failed), since=since, problem=last.problem)


def webhook_event(event: Event) -> tuple[WebhookEvent, str] | None:
    """The type of an event and its ids, as JSON; None if nobody is told of it. Content is never in it."""
    match event:
        case TurnCompleted():
            return "turn.completed", encode_canonical({"turn": event.turn})
        case TurnFailed():
            return "turn.failed", encode_canonical({"turn": event.turn, "kind": event.problem.kind})
        case TurnCancelled():
            return "turn.cancelled", encode_canonical({"turn": event.turn})
        case GateOpened():
            gate = event.gate
            shown: dict[str, Any] = {"turn": event.turn, "gate": gate.id, "kind": gate.kind, "tool": gate.tool}
            return "gate.opened", encode_canonical({**shown, "hash": gate.hash, "expires": gate.expires})
        case GateResolved():
            return "gate.resolved", encode_canonical({"turn": event.turn, "gate": event.gate})
        case _:
            return None


def derive_secret(installation: bytes, webhook: Webhook, version: int) -> str:
    """A secret of a webhook, from that of the installation: it is in no table and in no backup of one."""
    source = encode_canonical(["webhook", webhook.tenant, webhook.id, repr(webhook.created), version])
    return SECRET_PREFIX + base64.b64encode(hmac.digest(installation, source.encode(), hashlib.sha256)).decode()


def sign_payload(secret: str, id: str, timestamp: int, body: bytes) -> str:
    """A signature as Standard Webhooks defines it: `v1,` and the HMAC-SHA256 of `id.timestamp.body`."""
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    mac = hmac.digest(key, f"{id}.{timestamp}.".encode() + body, hashlib.sha256)
    return f"v1,{base64.b64encode(mac).decode()}"


class WebhookStore(Protocol):
    """Keeps webhooks and their outbox. Each method is one transaction; appends to the log add the deliveries."""

    async def put(self, webhook: Webhook) -> None:
        """Add a webhook, or replace the one with this id."""
        ...

    async def get(self, tenant: str, id: str) -> Webhook | None:
        """One webhook; None if there is none."""
        ...

    async def list(self, tenant: str) -> list[Webhook]:
        """The webhooks of a tenant, by id."""
        ...

    async def delete(self, tenant: str, id: str) -> bool:
        """Delete a webhook and its deliveries; False if there is none."""
        ...

    async def is_used(self) -> bool:
        """Whether any tenant has a webhook, or a delivery is pending."""
        ...

    async def next_due(self) -> float | None:
        """The earliest time at which a delivery is due; None: none is pending."""
        ...

    async def claim(self, now: float, until: float, limit: int) -> list[Delivery]:
        """Take due deliveries, oldest first, and count a try of each; at `until` they are due again.

        Of processes that call this at once, one gets each delivery.
        """
        ...

    async def finish(self, delivery: Delivery) -> None:
        """Record the outcome of a try: state, due, status, problem and time. A delivery that is delivered stays so."""
        ...

    async def deliveries(self, tenant: str, webhook: str, state: DeliveryState, limit: int = 100) -> list[Delivery]:
        """The deliveries of a webhook in a state, newest first."""
        ...

    async def replay(self, tenant: str, webhook: str, session: str, seq: int, now: float) -> int:
        """Make dead deliveries pending again: all of a webhook, or (with a session) one. Return their number.

        One that was delivered is sent again only when it is named.
        """
        ...

    async def purge(self, before: float) -> int:
        """Remove what was delivered before a time, and return its number."""
        ...
