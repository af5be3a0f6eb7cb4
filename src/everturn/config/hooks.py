"""Inbound hooks of the configuration: reads and checks `[hooks.NAME]`, and those that administrators have stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from everturn.config.decode import ConfigDecoder
from everturn.config.errors import nearest
from everturn.config.schema import Config, HookTable
from everturn.core.tenants.accounts import LOCAL
from everturn.core.tenants.settings import HookSettings, Setting
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


def stored_hook(row: Setting, body: HookSettings, secret: str, agents: Collection[str]) -> InboundHook:
    """The hook of a setting; `agents` are those that there are.

    Raises:
        ConfigError: it is invalid, or its agent was deleted.
    """
    if body.agent and body.agent not in agents:
        raise ConfigError(
            f"settings: hooks.{row.name}.agent: there is no agent {body.agent!r}; {nearest(body.agent, tuple(agents))}"
        )
    hook = InboundHook(
        name=row.name,
        scheme=body.scheme,
        secrets=(secret,) if secret else (),
        tenant=body.tenant,
        text=body.text,
        agent=body.agent,
        session=body.session,
        when=body.when,
        fields=body.fields,
        by=body.by,
        priority=body.priority,
    )
    try:
        check_hook(hook)
    except ConfigError as error:
        raise ConfigError(f"settings: hooks.{row.name}: {error}") from None
    return hook
