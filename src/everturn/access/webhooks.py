"""Webhook access: the tenant's webhooks and their deliveries. They send events to other systems, so all of it takes an owner."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.core.webhooks import WEBHOOK_EVENTS, Delivery, DeliveryFailures, DeliveryState, Webhook
from everturn.errors import ConfigError, UnknownWebhook
from everturn.webhooks.webhooks import CONFIGURED, CreatedWebhook, Webhooks

MAX_WEBHOOKS: Final = 20  # of a tenant
MOST_LISTED: Final = 200  # deliveries


class WebhookAccess:
    """Access to webhooks."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("owner")
    async def list(self) -> api.WebhookList:
        """The tenant's webhooks, by id."""
        with self.scope.tenant_scope():
            found = await self._webhooks.list(tenant=self._tenant)
            views = [webhook_view(row, await self._webhooks.failures(row)) for row in found]
        return api.WebhookList(webhooks=views)

    @needs("owner")
    async def create(self, request: api.NewWebhook) -> api.WebhookWithSecret:
        """Tell a URL of events. The secret is in this answer alone."""
        with self.scope.tenant_scope():
            if len(await self._webhooks.list(tenant=self._tenant)) >= MAX_WEBHOOKS:
                raise ConfigError(f"a tenant has at most {MAX_WEBHOOKS} webhooks; delete one")
        created = await self._webhooks.create(
            request.url,
            request.events or WEBHOOK_EVENTS,
            description=request.description,
            by=self.scope.principal.user,
            tenant=self._tenant,
        )
        await self.scope.audit_action("webhook.create", created.webhook.id, url=request.url)
        return _created_view(created)

    @needs("owner")
    async def get(self, webhook: str) -> api.WebhookView:
        """One webhook."""
        found = await self._get(webhook)
        with self.scope.tenant_scope():
            return webhook_view(found, await self._webhooks.failures(found))

    @needs("owner")
    async def update(self, webhook: str, request: api.PatchWebhook) -> api.WebhookView:
        """Change its URL, events or description, or pause it. The secret stays."""
        await self._changeable(webhook)
        changed = await self._webhooks.update(
            webhook,
            url=request.url,
            events=request.events,
            description=request.description,
            is_paused=request.is_paused,
            tenant=self._tenant,
        )
        await self.scope.audit_action("webhook.update", webhook, url=changed.url)
        return webhook_view(changed)

    @needs("owner")
    async def rotate_secret(self, webhook: str) -> api.WebhookWithSecret:
        """Make a new secret; for a day deliveries are signed with both."""
        await self._get(webhook)
        await self.scope.audit_action("webhook.rotate", webhook)
        return _created_view(await self._webhooks.rotate_secret(webhook, tenant=self._tenant))

    @needs("owner")
    async def pause(self, webhook: str) -> api.WebhookView:
        """Send nothing until it is resumed."""
        await self._changeable(webhook)
        await self.scope.audit_action("webhook.pause", webhook)
        return webhook_view(await self._webhooks.pause(webhook, tenant=self._tenant))

    @needs("owner")
    async def resume(self, webhook: str) -> api.WebhookView:
        """Send again, also to one that its receiver has disabled."""
        await self._get(webhook)
        await self.scope.audit_action("webhook.resume", webhook)
        return webhook_view(await self._webhooks.resume(webhook, tenant=self._tenant))

    @needs("owner")
    async def send_test(self, webhook: str) -> api.WebhookTestView:
        """Send a test event now, and return what the receiver answered."""
        await self._get(webhook)
        await self.scope.audit_action("webhook.test", webhook)
        sent = await self._webhooks.send_test(webhook, tenant=self._tenant)
        return api.WebhookTestView(id=sent.id, status=sent.status, problem=sent.problem)

    @needs("owner")
    async def delete(self, webhook: str) -> None:
        """Delete a webhook and its deliveries."""
        await self._get(webhook)
        await self.scope.audit_action("webhook.delete", webhook)
        await self._webhooks.delete(webhook, tenant=self._tenant)

    @needs("owner")
    async def deliveries(self, webhook: str, state: DeliveryState = "dead", limit: int = 100) -> api.DeliveryList:
        """The deliveries of a webhook in a state, newest first."""
        await self._get(webhook)
        with self.scope.tenant_scope():
            found = await self._webhooks.deliveries(
                webhook, state, limit=max(1, min(limit, MOST_LISTED)), tenant=self._tenant
            )
        return api.DeliveryList(deliveries=[delivery_view(row) for row in found])

    @needs("owner")
    async def replay(self, webhook: str, request: api.ReplayDeliveries) -> api.ReplayedDeliveries:
        """Send all dead deliveries again, or that of one event."""
        await self._get(webhook)
        count = await self._webhooks.replay(webhook, session=request.session, seq=request.seq, tenant=self._tenant)
        return api.ReplayedDeliveries(count=count)

    async def _get(self, webhook: str) -> Webhook:
        if not is_id(webhook):
            raise UnknownWebhook("there is no such webhook")
        with self.scope.tenant_scope():
            return await self._webhooks.get(webhook, tenant=self._tenant)

    async def _changeable(self, webhook: str) -> None:
        """Refuse a webhook of the configuration: at the next start it would be as before."""
        if (await self._get(webhook)).by == CONFIGURED:
            raise ConfigError("this webhook is in everturn.toml; change [[webhooks.endpoints]] there, and restart")

    @property
    def _webhooks(self) -> Webhooks:
        return self.scope.server_context.webhooks

    @property
    def _tenant(self) -> str:
        return self.scope.principal.tenant


def webhook_view(row: Webhook, failures: DeliveryFailures | None = None) -> api.WebhookView:
    """A webhook, as the API shows it: without its secret."""
    return api.WebhookView(
        id=row.id,
        url=row.url,
        events=list(row.events),
        description=row.description,
        created=row.created,
        by=row.by,
        disabled=row.disabled,
        origin="config" if row.by == CONFIGURED else "api",
        is_paused=row.is_paused,
        failing=failures and api.WebhookFailures(count=failures.count, since=failures.since, problem=failures.problem),
    )


def delivery_view(row: Delivery) -> api.DeliveryView:
    """A delivery, as the API shows it."""
    names = ("id", "session", "seq", "type", "at", "state", "due", "tries", "status", "problem", "updated")
    return api.DeliveryView(**{name: getattr(row, name) for name in names})


def _created_view(created: CreatedWebhook) -> api.WebhookWithSecret:
    return api.WebhookWithSecret(webhook=webhook_view(created.webhook), secret=created.secret)
