"""`app.webhooks`: creates, lists, changes, rotates and deletes webhooks, and replays their deliveries."""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec.structs import replace

from everturn.core.tenants.accounts import LOCAL
from everturn.core.webhooks import (
    WEBHOOK_EVENTS,
    Delivery,
    DeliveryFailures,
    DeliveryState,
    Webhook,
    WebhookEvent,
    WebhookStore,
    delivery_failures,
)
from everturn.errors import ConfigError, UnknownWebhook
from everturn.webhooks.sender import PAUSED, DeliveryTest, WebhookSender

if TYPE_CHECKING:
    from everturn.base_app import BaseApp

OVERLAP: Final = 86_400.0  # seconds for which the secret before a rotation is used, too
MAX_URL: Final = 2000  # characters
MAX_DESCRIPTION: Final = 500
MAX_FAILURES: Final = 100  # pending ones, and dead ones, that are counted
CONFIGURED: Final = "configuration"  # `by` of a webhook of a configuration file


class CreatedWebhook(NamedTuple):
    """A webhook and its secret, which is shown only here."""

    webhook: Webhook
    secret: str  # whsec_…


class Webhooks:
    """The webhooks of an app."""

    def __init__(self, app: BaseApp) -> None:
        self._app = app
        self.sender = WebhookSender(app)

    def allow(self, *addresses: str) -> None:
        """Allow receivers at addresses (`host:port`) that are not public, such as a service in your own network."""
        self.sender.allow(addresses)

    async def create(
        self,
        url: str,
        events: Iterable[WebhookEvent] = WEBHOOK_EVENTS,
        *,
        description: str = "",
        by: str = "",
        tenant: str = LOCAL,
    ) -> CreatedWebhook:
        """Tell a URL of events: a POST for each, signed as Standard Webhooks defines it.

        Raises:
            ConfigError: the egress policy refuses the URL, or there is no such event.
        """
        events = check_events(events, or_all=False)
        self._check(url, description)
        await self._app.start()
        webhook = Webhook(
            id=f"webhook_{secrets.token_hex(8)}",
            tenant=tenant,
            url=url,
            events=events,
            description=description,
            created=self._app.clock.now(),
            by=by,
        )
        secret = await self.sender.secret_of(webhook)
        await self._app.store.webhooks.put(webhook)
        self.sender.notify()
        return CreatedWebhook(webhook, secret)

    async def list(self, *, tenant: str = LOCAL) -> builtins.list[Webhook]:
        """The webhooks of a tenant, by id."""
        return [row for row in await self._app.store.webhooks.list(tenant) if row.push is None]

    async def get(self, id: str, *, tenant: str = LOCAL) -> Webhook:
        """One webhook.

        Raises:
            UnknownWebhook: there is none.
        """
        if (found := await self._app.store.webhooks.get(tenant, id)) is None or found.push is not None:
            raise UnknownWebhook(f"there is no webhook {id[:80]!r}")
        return found

    async def rotate_secret(self, id: str, *, tenant: str = LOCAL) -> CreatedWebhook:
        """Make a new secret. For a day deliveries have a signature of each. A disabled webhook is enabled again."""
        webhook = rotated(await self.get(id, tenant=tenant), self._app.clock.now())
        await self._app.store.webhooks.put(webhook)
        return CreatedWebhook(webhook, await self.sender.secret_of(webhook))

    async def update(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Iterable[WebhookEvent] | None = None,
        description: str | None = None,
        is_paused: bool | None = None,
        tenant: str = LOCAL,
    ) -> Webhook:
        """Change what is given; its secret and its deliveries stay, and what is pending goes to the new URL.

        A new URL enables a disabled webhook again, as `is_paused=False` does.

        Raises:
            ConfigError: the egress policy refuses the URL, or there is no such event.
            UnknownWebhook: there is none.
        """
        before = await self.get(id, tenant=tenant)
        webhook = edited(before, url=url, events=events, description=description, is_paused=is_paused)
        self._check(webhook.url, webhook.description)
        if webhook != before:
            await self._app.store.webhooks.put(webhook)
            self.sender.notify()
        return webhook

    def _check(self, url: str, description: str) -> None:
        if len(url) > MAX_URL or len(description) > MAX_DESCRIPTION:
            raise ConfigError(f"a url has at most {MAX_URL:,} characters, a description {MAX_DESCRIPTION}")
        self.sender.check(url)

    async def pause(self, id: str, *, tenant: str = LOCAL) -> Webhook:
        """Send nothing until `resume`. What happens meanwhile is not told; what is pending becomes a dead letter."""
        webhook = replace(await self.get(id, tenant=tenant), is_paused=True)
        await self._app.store.webhooks.put(webhook)
        return webhook

    async def resume(self, id: str, *, tenant: str = LOCAL) -> Webhook:
        """Send again, also to a webhook that was disabled. `replay` sends its dead letters."""
        webhook = replace(await self.get(id, tenant=tenant), is_paused=False, disabled="")
        await self._app.store.webhooks.put(webhook)
        self.sender.notify()
        return webhook

    async def send_test(self, id: str, *, tenant: str = LOCAL) -> DeliveryTest:
        """Send one signed event of the type `webhook.test` now, once, also to a paused webhook; it is not stored."""
        return await self.sender.send_test(await self.get(id, tenant=tenant))

    async def deliveries(
        self, id: str, state: DeliveryState = "dead", *, limit: int = 100, tenant: str = LOCAL
    ) -> builtins.list[Delivery]:
        """The deliveries of a webhook in a state, newest first: `pending`, `delivered` or `dead`."""
        await self.get(id, tenant=tenant)
        return await self._app.store.webhooks.deliveries(tenant, id, state, limit)

    async def failures(self, webhook: Webhook) -> DeliveryFailures | None:
        """What failed since the last delivery that succeeded; None: the last one did, or there was none."""
        return await failures_of(self._app.store.webhooks, webhook)

    async def replay(self, id: str, *, session: str = "", seq: int = 0, tenant: str = LOCAL) -> int:
        """Send all dead deliveries of a webhook again, or that of one event; return their number."""
        await self.get(id, tenant=tenant)
        count = await self._app.store.webhooks.replay(tenant, id, session, seq, self._app.clock.now())
        self.sender.notify()
        return count

    async def delete(self, id: str, *, tenant: str = LOCAL) -> None:
        """Delete a webhook; what it was not told of yet, it never is.

        Raises:
            UnknownWebhook: there is none.
        """
        await self.get(id, tenant=tenant)
        if not await self._app.store.webhooks.delete(tenant, id):
            raise UnknownWebhook(f"there is no webhook {id[:80]!r}")

    async def secret(self, id: str, *, tenant: str = LOCAL) -> str:
        """The secret of a webhook, for the operator of this process."""
        return await self.sender.secret_of(await self.get(id, tenant=tenant))

    async def replace_configured(self, wanted: builtins.list[Webhook]) -> None:
        """Make the webhooks of a configuration those that there are; webhooks of the API are not touched."""
        store, keep = self._app.store.webhooks, {(row.tenant, row.id) for row in wanted}
        for row in wanted:
            self.sender.check(row.url)
            existing = await store.get(row.tenant, row.id)
            if existing is not None:  # its secret stays, and what disabled it, unless it has another address
                disabled = existing.disabled if existing.url == row.url else ""
                kept = {name: getattr(existing, name) for name in ("created", "version", "rotated")}
                row = replace(row, disabled=disabled, **kept)
            if row != existing:
                await store.put(row)
        for tenant in {LOCAL, *(row.id for row in await self._app.store.accounts.tenants())}:
            for row in await store.list(tenant):
                if row.by == CONFIGURED and (tenant, row.id) not in keep:
                    await store.delete(tenant, row.id)
        if wanted:
            self.sender.notify()


async def failures_of(store: WebhookStore, webhook: Webhook) -> DeliveryFailures | None:
    """The deliveries of a webhook that failed since the last one that succeeded; None: there are none."""
    place = webhook.tenant, webhook.id
    states: tuple[DeliveryState, ...] = ("dead", "pending")
    found = [row for state in states for row in await store.deliveries(*place, state, MAX_FAILURES)]
    failed = [row for row in found if row.problem and row.problem != PAUSED]
    delivered = await store.deliveries(*place, "delivered", MAX_FAILURES) if failed else []
    return delivery_failures(failed, delivered)


def check_events(events: Iterable[str], *, or_all: bool = True) -> tuple[WebhookEvent, ...]:
    """Check the types of events of a webhook; without any, all of them.

    Raises:
        ConfigError: there is no such event, or (without `or_all`) none was named.
    """
    named = tuple(dict.fromkeys(events))
    if not named and or_all:
        return WEBHOOK_EVENTS
    unknown = [name for name in named if name not in WEBHOOK_EVENTS]
    if unknown or not named:
        problem = f"{unknown[0]!r} is not one of them" if unknown else "name at least one"
        raise ConfigError(f"events: {problem}; there are {', '.join(WEBHOOK_EVENTS)}")
    return tuple(name for name in WEBHOOK_EVENTS if name in named)


def edited(
    webhook: Webhook,
    *,
    url: str | None = None,
    events: Iterable[str] | None = None,
    description: str | None = None,
    is_paused: bool | None = None,
) -> Webhook:
    """A webhook with what is given changed; a new URL, and `is_paused=False`, enable a disabled one again.

    Raises:
        ConfigError: an event is unknown, or the list is empty.
    """
    changed = replace(
        webhook,
        url=webhook.url if url is None else url,
        events=webhook.events if events is None else check_events(events, or_all=False),
        description=webhook.description if description is None else description,
        is_paused=webhook.is_paused if is_paused is None else is_paused,
    )
    return replace(changed, disabled="") if changed.url != webhook.url or is_paused is False else changed


def rotated(webhook: Webhook, now: float) -> Webhook:
    """A webhook with a new secret; the one before is used, too, for a day."""
    return replace(webhook, version=webhook.version + 1, rotated=now + OVERLAP, disabled="")
