"""`everturn webhooks`: lists, creates, edits, rotates and deletes webhooks, and replays their deliveries, in a store or at a server."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Protocol

from everturn import api
from everturn.access.webhooks import delivery_view, webhook_view
from everturn.cli.commands.sessions import as_json
from everturn.cli.config_options import (
    config_file,
    open_store,
    require_existing_store,
    resolve_signing_keys,
    resolve_store,
)
from everturn.cli.connect_token import load_connect_token
from everturn.cli.output import show_slow_operation
from everturn.client import Server
from everturn.config.load import load_config
from everturn.core.store_ports import Store
from everturn.core.webhooks import DeliveryState, Webhook, WebhookEvent, derive_secret
from everturn.egress.client import EgressClient
from everturn.errors import AddressRefused, ConfigError, UnknownWebhook
from everturn.terminal.text.screen import escape_unprintable
from everturn.webhooks.webhooks import CONFIGURED, check_events, edited, failures_of, rotated

SHOWN_ONCE = "keep this secret: over HTTP it is not shown again"


def webhooks(options: argparse.Namespace) -> int:
    """List the webhooks, or run a command on one."""
    with show_slow_operation("asking for the webhooks"):
        lines = asyncio.run(_run(options))
    for line in lines:
        print(line)
    return 0


async def _run(options: argparse.Namespace) -> list[str]:
    async with _open(options) as place:
        match options.about:
            case "create":
                new = api.NewWebhook(url=options.url, events=options.event, description=options.description)
                return _with_secret(options, await place.create_webhook(new))
            case "edit":
                changed = await place.update_webhook(
                    options.id,
                    url=options.url,
                    events=options.event,
                    description=options.description,
                    is_paused=options.is_paused,
                )
                return [as_json(changed) if options.json else _line(changed)]
            case "secret":
                return _with_secret(options, await place.webhook_secret(options.id))
            case "rotate":
                return _with_secret(options, await place.rotate_webhook_secret(options.id))
            case "deliveries":
                found = await place.webhook_deliveries(options.id, options.state, options.limit)
                return [as_json(row) if options.json else _describe(row) for row in found]
            case "replay":
                count = await place.replay_webhook(options.id, session=options.session, seq=options.seq)
                return [as_json({"count": count}) if options.json else f"{options.id}: {count} sent again"]
            case "delete":
                await place.delete_webhook(options.id)
                return []
            case _:
                rows = await place.webhooks()
                if not rows and not options.json:
                    return ["no webhooks yet; `everturn webhooks create --help` has examples"]
                return [as_json(row) if options.json else _line(row) for row in rows]


def _line(row: api.WebhookView) -> str:
    state = f"disabled: {row.disabled}" if row.disabled else ", ".join(row.events)
    if row.failing:
        since = datetime.fromtimestamp(row.failing.since, UTC).isoformat(sep=" ", timespec="seconds")
        state = f"failing since {since} ({row.failing.count} in a row: {row.failing.problem}); {state}"
    state = f"paused; {state}" if row.is_paused else state
    return escape_unprintable(f"{row.id}  {row.url}  {state}")


def _with_secret(options: argparse.Namespace, made: api.WebhookWithSecret) -> list[str]:
    return [as_json(made)] if options.json else [_line(made.webhook), f"secret: {made.secret}", SHOWN_ONCE]


def _describe(row: api.DeliveryView) -> str:
    at = datetime.fromtimestamp(row.at, UTC).isoformat(sep=" ", timespec="seconds")
    text = f"{at}  {row.type}  {row.session} {row.seq}  tries {row.tries}  {row.problem or row.state}"
    return escape_unprintable(text)


class WebhookBackend(Protocol):
    """Where webhooks are: a store or a server, with the methods of `everturn.client.Server`."""

    async def webhooks(self) -> list[api.WebhookView]: ...

    async def create_webhook(self, webhook: api.NewWebhook) -> api.WebhookWithSecret: ...

    async def update_webhook(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Sequence[WebhookEvent] | None = None,
        description: str | None = None,
        is_paused: bool | None = None,
    ) -> api.WebhookView: ...

    async def webhook_secret(self, id: str) -> api.WebhookWithSecret: ...

    async def rotate_webhook_secret(self, id: str) -> api.WebhookWithSecret: ...

    async def webhook_deliveries(
        self, id: str, state: DeliveryState = "dead", limit: int = 100
    ) -> list[api.DeliveryView]: ...

    async def replay_webhook(self, id: str, *, session: str = "", seq: int = 0) -> int: ...

    async def delete_webhook(self, id: str) -> None: ...


@asynccontextmanager
async def _open(options: argparse.Namespace) -> AsyncGenerator[WebhookBackend]:
    if options.connect:
        if options.store:
            raise ConfigError("--store names a local file, and --connect a server; use one of them")
        if options.about == "secret":
            raise ConfigError("a server shows a secret only once; `everturn webhooks rotate` creates a new one")
        async with Server(options.connect, load_connect_token(options)) as server:
            yield server  # pyright: ignore[reportReturnType] - without `webhook_secret`, which is refused above
        return
    store = await open_store(options, require_existing_store(resolve_store(options)))
    store.accounts.keys.configured = resolve_signing_keys(options)
    try:
        yield WebhookStoreBackend(store, options.tenant, load_config(config_file(options)).config.webhooks.allow)
    finally:
        await store.aclose()


class WebhookStoreBackend:
    """Webhooks in a store of this machine. The process that serves the store sends what is due."""

    def __init__(self, store: Store, tenant: str, allow: tuple[str, ...]) -> None:
        self._store, self._tenant, self._egress = store, tenant, EgressClient((), allow)

    async def webhooks(self) -> list[api.WebhookView]:
        found = [row for row in await self._store.webhooks.list(self._tenant) if row.push is None]
        return [webhook_view(row, await failures_of(self._store.webhooks, row)) for row in found]

    async def create_webhook(self, webhook: api.NewWebhook) -> api.WebhookWithSecret:
        events = check_events(webhook.events)
        self._check_url(webhook.url)
        made = Webhook(
            id=f"webhook_{secrets.token_hex(8)}",
            tenant=self._tenant,
            url=webhook.url,
            events=events,
            description=webhook.description,
            created=time.time(),
        )
        await self._store.webhooks.put(made)
        return await self._with_secret(made)

    async def update_webhook(
        self,
        id: str,
        *,
        url: str | None = None,
        events: Sequence[WebhookEvent] | None = None,
        description: str | None = None,
        is_paused: bool | None = None,
    ) -> api.WebhookView:
        before = await self._get(id)
        if before.by == CONFIGURED:
            raise ConfigError("this webhook is in everturn.toml; change [[webhooks.endpoints]] there, and restart")
        changed = edited(before, url=url, events=events, description=description, is_paused=is_paused)
        self._check_url(changed.url)
        await self._store.webhooks.put(changed)
        return webhook_view(changed)

    async def webhook_secret(self, id: str) -> api.WebhookWithSecret:
        return await self._with_secret(await self._get(id))

    async def rotate_webhook_secret(self, id: str) -> api.WebhookWithSecret:
        changed = rotated(await self._get(id), time.time())
        await self._store.webhooks.put(changed)
        return await self._with_secret(changed)

    async def webhook_deliveries(
        self, id: str, state: DeliveryState = "dead", limit: int = 100
    ) -> list[api.DeliveryView]:
        await self._get(id)
        return [delivery_view(row) for row in await self._store.webhooks.deliveries(self._tenant, id, state, limit)]

    async def replay_webhook(self, id: str, *, session: str = "", seq: int = 0) -> int:
        await self._get(id)
        return await self._store.webhooks.replay(self._tenant, id, session, seq, time.time())

    async def delete_webhook(self, id: str) -> None:
        await self._get(id)
        await self._store.webhooks.delete(self._tenant, id)

    def _check_url(self, url: str) -> None:
        try:
            self._egress.check(url)
        except AddressRefused as error:
            raise ConfigError(f"url: {error}; `[webhooks] allow` makes an exception") from None

    async def _get(self, id: str) -> Webhook:
        if (found := await self._store.webhooks.get(self._tenant, id)) is None:
            raise UnknownWebhook(f"there is no webhook {id[:80]!r} here; `everturn webhooks` lists them")
        return found

    async def _with_secret(self, webhook: Webhook) -> api.WebhookWithSecret:
        secret = derive_secret(await self._store.accounts.keys.first("webhooks"), webhook, webhook.version)
        return api.WebhookWithSecret(webhook=webhook_view(webhook), secret=secret)
