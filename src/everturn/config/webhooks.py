"""Configured webhooks: reads `[[webhooks.endpoints]]`, and makes them the webhooks of a store."""

from __future__ import annotations

import re
from typing import Final

from everturn.config.decode import ConfigDecoder
from everturn.config.errors import nearest
from everturn.config.schema import Config, WebhookEndpointTable
from everturn.core.tenants.accounts import LOCAL
from everturn.core.webhooks import Webhook
from everturn.webhooks.webhooks import CONFIGURED, Webhooks

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def check_webhooks(config: Config, reader: ConfigDecoder) -> None:
    """Check all tables; problems are added to the decoder."""
    seen: set[tuple[str, str]] = set()
    tenants = (LOCAL, *config.tenants)
    for at, table in enumerate(config.webhooks.endpoints):
        path = ("webhooks", "endpoints", at)
        if not _ID.fullmatch(table.id):
            reader.add_problem((*path, "id"), "up to 64 letters, digits, - and _")
        if table.tenant not in tenants:
            reader.add_problem(
                (*path, "tenant"), f"there is no tenant {table.tenant!r}; {nearest(table.tenant, tenants)}"
            )
        if (place := (table.tenant, table.id)) in seen:
            reader.add_problem((*path, "id"), f"two webhooks of a tenant have the id {table.id!r}")
        seen.add(place)


def read_webhook(table: WebhookEndpointTable) -> Webhook:
    """The webhook of a table."""
    fields = {name: getattr(table, name) for name in table.__struct_fields__}
    return Webhook(by=CONFIGURED, **fields)


async def apply_webhooks(webhooks: Webhooks, config: Config, before: Config | None = None) -> None:
    """Make the configured webhooks those of the store; webhooks that were made by the API are not touched."""
    if before is None or before.webhooks.endpoints != config.webhooks.endpoints:
        await webhooks.replace_configured([read_webhook(table) for table in config.webhooks.endpoints])
