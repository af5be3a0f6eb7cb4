"""In-memory `WebhookStore`: the reference implementation. No method awaits anything, so each is one transaction."""

from __future__ import annotations

import builtins

from msgspec.structs import replace

from everturn.core.events import Event
from everturn.core.webhooks import Delivery, DeliveryState, Webhook, webhook_event


class DictWebhooks:
    """The webhooks and the outbox of one process; they end with it."""

    def __init__(self) -> None:
        self._webhooks: dict[tuple[str, str], Webhook] = {}
        self._outbox: dict[tuple[str, str, str, int], Delivery] = {}

    def record(self, session: str, tenant: str, seq: int, event: Event) -> None:
        """Add the deliveries of an event, in the append that writes it."""
        if not self._webhooks or (outbox_event := webhook_event(event)) is None:
            return
        for webhook in self._webhooks.values():
            if webhook.tenant == tenant and f",{outbox_event[0]}," in webhook.needle:
                place = (tenant, webhook.id, session, seq)
                row = Delivery(
                    tenant=tenant,
                    webhook=webhook.id,
                    session=session,
                    seq=seq,
                    type=outbox_event[0],
                    at=event.at,
                    data=outbox_event[1],
                    due=event.at,
                    updated=event.at,
                )
                self._outbox.setdefault(place, row)

    async def put(self, webhook: Webhook) -> None:
        """Add or replace a webhook."""
        self._webhooks[webhook.tenant, webhook.id] = webhook

    async def get(self, tenant: str, id: str) -> Webhook | None:
        """Return one webhook."""
        return self._webhooks.get((tenant, id))

    async def list(self, tenant: str) -> builtins.list[Webhook]:
        """Return the webhooks of a tenant, by id."""
        return sorted((row for row in self._webhooks.values() if row.tenant == tenant), key=lambda row: row.id)

    async def delete(self, tenant: str, id: str) -> bool:
        """Delete a webhook and its deliveries."""
        self._outbox = {place: row for place, row in self._outbox.items() if place[:2] != (tenant, id)}
        return self._webhooks.pop((tenant, id), None) is not None

    async def is_used(self) -> bool:
        """Return whether there is a webhook or a pending delivery."""
        return bool(self._webhooks) or await self.next_due() is not None

    async def next_due(self) -> float | None:
        """Return the earliest time at which a delivery is due."""
        return min((row.due for row in self._outbox.values() if row.due is not None), default=None)

    async def claim(self, now: float, until: float, limit: int) -> builtins.list[Delivery]:
        """Take due deliveries."""
        due = [row for row in self._outbox.values() if row.due is not None and row.due <= now]
        claimed = [
            replace(row, due=until, tries=row.tries + 1, updated=now)
            for row in sorted(due, key=lambda row: (row.due, row.seq))[:limit]
        ]
        for row in claimed:
            self._outbox[_place(row)] = row
        return claimed

    async def finish(self, delivery: Delivery) -> None:
        """Record the outcome of a try."""
        current = self._outbox.get(_place(delivery))
        if current is not None and current.state == "pending":
            self._outbox[_place(delivery)] = replace(delivery, tries=current.tries)

    async def deliveries(
        self, tenant: str, webhook: str, state: DeliveryState, limit: int = 100
    ) -> builtins.list[Delivery]:
        """Return deliveries in a state, newest first."""
        found = [
            row for row in self._outbox.values() if (row.tenant, row.webhook, row.state) == (tenant, webhook, state)
        ]
        return sorted(found, key=lambda row: (-row.at, row.session, row.seq))[:limit]

    async def replay(self, tenant: str, webhook: str, session: str, seq: int, now: float) -> int:
        """Make deliveries pending again."""
        count = 0
        for place, row in self._outbox.items():
            is_wanted = place[2:] == (session, seq) if session else row.state == "dead"
            if place[:2] == (tenant, webhook) and is_wanted and row.state != "pending":
                self._outbox[place] = replace(row, state="pending", due=now, tries=0, updated=now)
                count += 1
        return count

    async def purge(self, before: float) -> int:
        """Remove what was delivered before a time."""
        old = [place for place, row in self._outbox.items() if row.state == "delivered" and row.updated < before]
        for place in old:
            del self._outbox[place]
        return len(old)


def _place(row: Delivery) -> tuple[str, str, str, int]:
    return row.tenant, row.webhook, row.session, row.seq
