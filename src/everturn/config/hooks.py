"""Configured inbound hooks: reads and checks `[hooks.NAME]`."""

from __future__ import annotations

from collections.abc import Mapping

from everturn.config.decode import ConfigDecoder
from everturn.config.errors import nearest
from everturn.config.schema import Config, HookTable
from everturn.core.accounts import LOCAL
from everturn.errors import ConfigError
from everturn.inbound_hooks.hook import InboundHook, check_hook


def read_hook(name: str, table: HookTable, environ: Mapping[str, str] | None = None) -> InboundHook:
    """The hook of a table; without an environment its secrets are not read.

    Raises:
        ConfigError: something of it is not valid, or a secret is not there.
    """
    references = [secret for secret in (table.secret, table.old_secret) if secret]
    hook = InboundHook(
        name=name,
        scheme=table.scheme,
        secrets=() if environ is None else tuple(secret.resolved(environ) for secret in references),
        tenant=table.tenant,
        action=table.action,
        when={path: (value,) if isinstance(value, str) else value for path, value in table.when.items()},
        max_bytes=table.max_bytes,
        text=table.text,
        agent=table.agent,
        session=table.session,
        fields=table.fields,
        by=table.by,
        priority=table.priority,
        token=table.token,
        value=table.value,
        answer=table.answer,
        user=table.user,
        users=table.users,
    )
    check_hook(hook)
    return hook


def check_hooks(config: Config, reader: ConfigDecoder) -> None:
    """Check all tables; problems are added to the decoder."""
    tenants = (LOCAL, *config.tenants)
    for name, table in config.hooks.items():
        path = ("hooks", name)
        try:
            read_hook(name, table)
        except ConfigError as error:
            reader.add_problem(path, str(error))
        if table.agent and config.agents and table.agent not in config.agents:
            reader.add_problem(
                (*path, "agent"), f"there is no agent {table.agent!r}; {nearest(table.agent, config.agents)}"
            )
        if table.tenant not in tenants:
            reader.add_problem(
                (*path, "tenant"), f"there is no tenant {table.tenant!r}; {nearest(table.tenant, tenants)}"
            )


def read_hooks(config: Config, environ: Mapping[str, str]) -> list[InboundHook]:
    """The hooks of a configuration, with their secrets.

    Raises:
        ConfigError: a secret is not there.
    """
    return [read_hook(name, table, environ) for name, table in config.hooks.items()]
