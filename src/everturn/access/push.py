"""Push access: the browsers in which the caller is told of approvals. A subscription belongs to a login, and ends with it."""

from __future__ import annotations

import secrets
from typing import Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.core.webhooks import PushTarget, Webhook, WebhookStore
from everturn.errors import ConfigError, Forbidden, UnknownWebhook
from everturn.webhooks.web_push_encryption import VapidKey, check_keys, is_available

MOST_BROWSERS: Final = 10  # of a user
MOST_IN_TENANT: Final = 2000  # each gate writes a delivery for each
LONGEST_ENDPOINT: Final = 2000  # characters
PREFIX: Final = "push_"


class PushAccess:
    """Access to push subscriptions of the caller."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def get(self) -> api.PushView:
        """The public key that a browser subscribes with, and the browsers of the caller. Without a key there is no push."""
        if not is_available():
            return api.PushView(key="", subscriptions=[])
        key = VapidKey(await self.scope.server_context.accounts.keys.first("push"))
        return api.PushView(key=key.public, subscriptions=[push_view(row) for row in await self._own()])

    @needs("viewer")
    async def subscribe(self, subscription: api.NewPushSubscription) -> api.PushSubscriptionView:
        """Tell a browser of approvals. The same browser has one subscription: a second call replaces it."""
        principal, context = self.scope.principal, self.scope.server_context
        if principal.kind != "login":
            raise Forbidden("push notifications need a browser that is logged in; an API key cannot subscribe")
        if not is_available():
            raise ConfigError("push notifications need cryptography: pip install 'everturn[server]'")
        if not subscription.endpoint.startswith("https://") or len(subscription.endpoint) > LONGEST_ENDPOINT:
            raise ConfigError(f"endpoint: an https URL of at most {LONGEST_ENDPOINT:,} characters")
        context.webhooks.sender.check(subscription.endpoint)
        check_keys(subscription.p256dh, subscription.auth)
        key = VapidKey(await context.accounts.keys.first("push"))
        if subscription.key != key.public:
            raise ConfigError("key: the server has another one now; subscribe again with it")
        target = PushTarget(
            user=principal.user,
            credential=principal.credential,
            p256dh=subscription.p256dh,
            auth=subscription.auth,
            key=key.public,
            language=subscription.language,
            label=subscription.label,
            site=subscription.site,
        )
        existing = [row for row in await self._all() if row.url == subscription.endpoint]
        own = [row for row in await self._own() if row.url != subscription.endpoint]
        if not existing and (len(own) >= MOST_BROWSERS or len(await self._all()) >= MOST_IN_TENANT):
            raise ConfigError(f"a user has at most {MOST_BROWSERS} browsers; remove one in the settings")
        row = Webhook(
            id=PREFIX + secrets.token_hex(8),
            tenant=principal.tenant,
            url=subscription.endpoint,
            events=("gate.opened",),
            created=context.app.clock.now(),
            by=principal.user,
            push=target,
        )
        await self.scope.audit_action("push.subscribe", row.id)
        for before in existing:
            await self._store.delete(principal.tenant, before.id)
        await self._store.put(row)
        context.webhooks.sender.notify()
        return push_view(row)

    @needs("viewer")
    async def unsubscribe(self, subscription: str) -> None:
        """Remove a browser of the caller."""
        if not is_id(subscription) or not any(row.id == subscription for row in await self._own()):
            raise UnknownWebhook("there is no such subscription")
        await self.scope.audit_action("push.unsubscribe", subscription)
        await self._store.delete(self.scope.principal.tenant, subscription)

    @property
    def _store(self) -> WebhookStore:
        return self.scope.store.webhooks

    async def _all(self) -> list[Webhook]:
        with self.scope.tenant_scope():
            rows = await self._store.list(self.scope.principal.tenant)
        return [row for row in rows if row.push is not None]

    async def _own(self) -> list[Webhook]:
        user = self.scope.principal.user
        return [row for row in await self._all() if row.push is not None and row.push.user == user]


async def remove_pushes(scope: ScopedAccess, user: str, credential: str = "") -> None:
    """Remove the subscriptions of a user, or of one login."""
    tenant = scope.principal.tenant
    for row in await scope.store.webhooks.list(tenant):
        if row.push is not None and row.push.user == user and credential in ("", row.push.credential):
            await scope.store.webhooks.delete(tenant, row.id)


def push_view(row: Webhook) -> api.PushSubscriptionView:
    """A subscription as its user sees it: not its endpoint, with which others could send to it."""
    assert row.push is not None, "a subscription has a target"
    return api.PushSubscriptionView(
        id=row.id, label=row.push.label, created=row.created, credential=row.push.credential
    )
