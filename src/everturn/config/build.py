"""Builds a runtime with its models, tools and rules from a configuration, and the context of a server."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.access.auth.options import OidcOptions
from everturn.access.auth.passwords import password_support
from everturn.access.context.agents import Agents
from everturn.access.context.server_context import ServerContext
from everturn.agents.definition import AgentDefinition
from everturn.app import App
from everturn.base_app import BaseApp
from everturn.cells.routes import CellAddresses, CellMap
from everturn.cluster import Cluster
from everturn.config.agents import agent_specs, agent_tables, make_agents, unchanged_agents
from everturn.config.audio import make_audio
from everturn.config.demo_tools import demo_tools
from everturn.config.discovery import discover_models
from everturn.config.encryption import encrypt_store
from everturn.config.errors import nearest
from everturn.config.hooks import read_hooks
from everturn.config.load import LoadedConfig
from everturn.config.models import default_model, make_model
from everturn.config.schedules import apply_schedules
from everturn.config.server_options import ServerOptions
from everturn.config.tools import ConfiguredTools, create_tools, data_folder, stored_servers
from everturn.config.webhooks import apply_webhooks
from everturn.config.work_folder import configured_folder, work_folder
from everturn.core.canonical_json import encode_canonical
from everturn.core.loop_detection import LOOP_RULE_NAME
from everturn.core.options import Budget, Prompt
from everturn.core.rate_limits import BreakerPolicy, LimiterOptions
from everturn.core.rules.policy import Rule
from everturn.core.tenants.accounts import LOCAL, Accounts, AuditRecord, Tenant, User
from everturn.core.tenants.signing_keys import MIN_KEY_LENGTH
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE
from everturn.models.registry import get_model
from everturn.postgres.address import is_postgres_url
from everturn.running.drive_setup import TurnSettings
from everturn.stores.registry import SUFFIXES
from everturn.telemetry.instrumentation import open_installed
from everturn.telemetry.service_gauges import watch_services
from everturn.telemetry.setup import Telemetry, TelemetryOptions, open_telemetry

log = logging.getLogger(__name__)

CLUSTER_SETTINGS: Final = (
    *("writes", "loop_timeout", "live_bytes", "nats_ca", "nats_certificate", "nats_key", "identity_key"),
    *("temporal_namespace", "temporal_ca", "temporal_certificate", "temporal_key", "heartbeat_timeout"),
)
CLUSTER_ADDRESSES: Final = ("database", "restate", "admin", "temporal", "nats", "listen", "advertise")


class CommandLineOverrides(Struct, frozen=True):
    """Command line options; they override every file. `cluster` has those of a cluster; None: no cluster."""

    host: str = ""
    port: int | None = None
    store: str = ""
    model: str = ""
    cluster: Mapping[str, str] | None = None
    is_personal: bool = False  # a single user, on this machine
    holds_calls: bool = False  # until the caller has applied the stored settings: one of their rules may deny a call


def refresh_agents(
    agents: Agents | None,
    loaded: LoadedConfig,
    model: str,
    app: BaseApp | None = None,
    before: LoadedConfig | None = None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Replace agents and limits with those of a configuration, in an app and in what a server offers.

    `before` is the configuration that the app has; agents that have not changed stay the same objects.
    """
    keep = unchanged_agents(before, loaded, app.agents) if app is not None and before is not None else None
    made = make_agents(loaded, model, environ, app=app, keep=keep)
    limits = {name: tenant.limits for name, tenant in loaded.config.tenants.items() if tenant.limits is not None}
    if app is not None:
        bind_agents(app, made, loaded)
    if agents is not None:
        agents.replace(agent_specs(loaded, made), limits, loaded.config.limits)
    if app is not None and not app.awaits_tools:  # otherwise a rule may be for a tool that is added later
        for rule in (*loaded.rules, *(rule for rules in loaded.agent_rules.values() for rule in rules)):
            _warn_if_idle(rule, (*app.tools, LOOP_RULE_NAME))


def _warn_if_idle(rule: Rule, names: tuple[str, ...]) -> None:
    """Warn when a rule matches no tool: a misspelt deny denies nothing."""
    if not any(fnmatchcase(name.casefold(), rule.tool.casefold()) for name in names):
        log.warning(
            "%s: there is no tool %r, so this rule has no effect; %s",
            rule.source,
            rule.tool,
            nearest(rule.tool, names),
        )


def _budgets(loaded: LoadedConfig) -> Callable[[str], tuple[Budget, float]]:
    """Return each tenant's budget. Beyond it, admission refuses a turn, and a running turn makes its last request."""
    every, tenants = loaded.config.limits, loaded.config.tenants

    def of(tenant: str) -> tuple[Budget, float]:
        table = tenants.get(tenant)
        limits = table.limits if table is not None and table.limits is not None else every
        return limits.budget, limits.period

    return of


def _weights(loaded: LoadedConfig) -> Callable[[str], float]:
    """Return each tenant's share when requests wait for a rate limit."""
    every, tenants = loaded.config.limits, loaded.config.tenants

    def of(tenant: str) -> float:
        table = tenants.get(tenant)
        return table.limits.weight if table is not None and table.limits is not None else every.weight

    return of


def configured_telemetry(loaded: LoadedConfig, environ: Mapping[str, str]) -> Telemetry:
    """Open the telemetry of this process.

    Raises:
        ConfigError: the exporter is not installed, or the collector's address or key cannot be resolved.
    """
    table = loaded.config.telemetry
    headers = {key: value.resolved(environ) for key, value in table.headers.items()}
    otlp = table.otlp.resolved(environ)
    return open_telemetry(
        TelemetryOptions(
            otlp,
            headers,
            table.content,
            table.ratio,
            table.interval,
            table.service,
            table.logs,
            table.level,
            expose=table.expose,
        )
    )


def app_factory(
    loaded: LoadedConfig,
    model: str,
    environ: Mapping[str, str] | None = None,
    seen: Telemetry | None = None,
    also: ConfiguredTools | None = None,
    is_personal: bool = False,
) -> Callable[..., App]:
    """Return a factory that builds the runtime of a configuration on given ports; `also` are further tools.

    Raises (the factory):
        ConfigError: a model, a tool or a secret is not available here.
    """
    known = os.environ if environ is None else environ

    def make(**ports: Any) -> App:
        configured = create_tools(loaded, known, is_personal)
        if loaded.config.settings.editable and not is_personal and (stored := stored_servers(known)) is not None:
            configured.tools.append(stored)
        tables, waits = loaded.config.models, loaded.config.limiter
        models = {
            name: make_model(name, table, known, tables, loaded.config.rate_limits) for name, table in tables.items()
        }
        written = agent_tables(loaded).values()
        model_names = dict.fromkeys(name for table in written for name in (table.model or model, *table.models))
        first = next(iter(model_names))
        if loaded.config.small_model:
            model_names[loaded.config.small_model] = None
        if OFFLINE in model_names:
            configured.tools += demo_tools()
        if also is not None:
            configured.tools += also.tools
            configured.plugins += also.plugins
        # Without a collector of its own: a configured module may have called `instrument`.
        if seen is not None and seen.tracer is None and (installed := open_installed()) is not None:
            seen.tracer = installed.tracer
        app = App(
            models.get(first) or get_model(first, environ=known),
            tools=configured.tools,
            plugins=configured.plugins,
            rules=loaded.rules,
            settings=replace(configured_settings(loaded, _budgets(loaded)), weight_of=_weights(loaded)),
            telemetry=seen,
            limiter=LimiterOptions(waits.learn, BreakerPolicy(waits.breaker_failures, waits.breaker_seconds)),
            **ports,
        )
        store = ports.get("store")
        encrypt_store(app.store, loaded, known, store if isinstance(store, str) else "")
        app.webhooks.allow(*loaded.config.webhooks.allow)
        if loaded.config.auth.signing_keys:
            app.store.accounts.keys.configured = signing_keys(loaded, known)
        for model_instance in models.values():
            app.add_model(model_instance)
        for name in model_names:  # a missing key is better reported now
            if name != first and name not in models:
                app.add_model(get_model(name, environ=known))
        bind_agents(app, make_agents(loaded, model, known, app=app), loaded)
        return app

    return make


def signing_keys(loaded: LoadedConfig, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the configured signing keys.

    Raises:
        ConfigError: a key is not there, or is too short to be random.
    """
    keys = tuple(str(key.resolved(environ)) for key in loaded.config.auth.signing_keys)
    for number, key in enumerate(keys, 1):
        if len(key) < MIN_KEY_LENGTH:
            where = loaded.tree.where(("auth", "signing_keys"))
            raise ConfigError(
                f"{where}: auth.signing_keys: key {number} has fewer than {MIN_KEY_LENGTH} characters; "
                "create one with `openssl rand -base64 32`"
            )
    return keys


def configured_settings(
    loaded: LoadedConfig, budget_of: Callable[[str], tuple[Budget, float]] | None = None
) -> TurnSettings:
    """Return the settings of all turns."""
    table = loaded.config.prompt
    prompt = Prompt(header=table.header, workspace=table.workspace, custom=table.custom, privacy=table.privacy)
    return TurnSettings(
        prompt=prompt,
        model_instructions={
            name: model.instructions for name, model in loaded.config.models.items() if model.instructions
        },
        summary_model=loaded.config.small_model,
        title_model=loaded.config.small_model,
        tool_search_above=loaded.config.tools.search_above,
        budget_of=budget_of,
    )


def bind_agents(app: BaseApp, agents: Mapping[str, AgentDefinition[Any]], loaded: LoadedConfig) -> None:
    """Replace the agents of an app.

    Raises:
        ConfigError: one of them names a tool that does not exist, or has two tools of one name; the old ones stay.
    """
    if not app.awaits_tools:  # otherwise more tools may be added later
        for name, agent in agents.items():
            try:
                app.registry.check_selection([tool for tool in agent.tools if isinstance(tool, str) and tool != "*"])
            except ConfigError as error:
                where = loaded.tree.where(("agents", name, "tools"))
                raise ConfigError(f"{where}: agents.{name}.tools: {error}") from None
    try:
        app.replace_agents(agents.values())
    except ConfigError as error:
        raise ConfigError(f"{loaded.tree.where(('agents',))}: agents: {error}") from None


def configured_store(loaded: LoadedConfig, override: str, environ: Mapping[str, str]) -> str:
    """Return the store's name: from the command line, the configuration, or a file in the user's data folder.

    Raises:
        ConfigError: the folder for that file cannot be created.
    """
    if override:
        return override
    if loaded.config.store.url:
        url = str(loaded.config.store.url.resolved(environ))
        where = loaded.tree.where(("store", "url"))
        is_file = "://" not in url and Path(url).suffix in SUFFIXES
        return str(Path(where.source).resolve().parent / url) if is_file and where.line else url
    folder = data_folder(environ)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if stat.S_IMODE(folder.stat().st_mode) & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise ConfigError(f"{folder} cannot be created: {error.strerror}; name another place with --store") from None
    return str(folder / "everturn.db")


def token_file(loaded: LoadedConfig, store: str, environ: Mapping[str, str]) -> Path:
    """Return the file of the local operator's token: as configured, or beside the store."""
    if loaded.config.server.token_file:
        return Path(loaded.config.server.token_file).expanduser()
    is_file = "://" not in store and Path(store).suffix in SUFFIXES
    return (Path(store).resolve().parent if is_file else data_folder(environ)) / "operator.token"


def server_options(loaded: LoadedConfig, overrides: CommandLineOverrides, environ: Mapping[str, str]) -> ServerOptions:
    """Return the server's options, with all secrets resolved."""
    options, oidc = loaded.config.server, loaded.config.auth.oidc
    if oidc is not None:
        fields = {name: getattr(oidc, name) for name in OidcOptions.__struct_fields__}
        fields["client_secret"] = oidc.client_secret.resolved(environ) if oidc.client_secret else ""
        options = replace(options, oidc=OidcOptions(**fields))
    if overrides.host:
        options = replace(options, host=overrides.host)
    return options if overrides.port is None else replace(options, port=overrides.port)


def configured_cluster(
    loaded: LoadedConfig, addresses: Mapping[str, str], environ: Mapping[str, str], listen: str = ""
) -> Cluster:
    """Return the addresses of a cluster: from the command line, the environment, or the configuration."""
    settings: dict[str, Any] = {name: getattr(loaded.config.cluster, name) for name in CLUSTER_SETTINGS}
    settings["listen"] = listen
    for name in CLUSTER_ADDRESSES:
        written = getattr(loaded.config.cluster, name)
        configured = written if isinstance(written, str) else written.resolved(environ)
        if value := addresses.get(name) or environ.get(f"EVERTURN_{name.upper()}", "") or configured:
            settings[name] = str(value)  # a plain str: it is passed to worker processes
    if key := loaded.config.cluster.temporal_api_key:
        settings["temporal_api_key"] = str(key.resolved(environ))
    if "database" not in settings and loaded.config.store.url:
        url = str(loaded.config.store.url.resolved(environ))
        if is_postgres_url(url):
            settings["database"] = url
    return Cluster(**settings)


def configured_cells(loaded: LoadedConfig, environ: Mapping[str, str]) -> CellMap:
    """Return the cells of a configuration, and its routing table.

    Raises:
        ConfigError: there is no routing table, no cell, or no default cell.
    """
    router, cells = loaded.config.router, loaded.config.cells
    if not router.routes or not cells:
        raise ConfigError(
            "set [router] routes to the database of the routing table, and [cells.NAME] url for each cell"
        )
    if router.default not in cells:
        raise ConfigError(f"[router] default names the cell of all other tenants: one of {', '.join(sorted(cells))}")
    return CellMap(
        routes=str(router.routes.resolved(environ)),
        default=router.default,
        cells={
            name: CellAddresses(name, cell.url, str(cell.database.resolved(environ)) if cell.database else "")
            for name, cell in cells.items()
        },
    )


@asynccontextmanager
async def open_server(
    loaded: LoadedConfig,
    overrides: CommandLineOverrides | None = None,
    environ: Mapping[str, str] | None = None,
    also: ConfiguredTools | None = None,
) -> AsyncGenerator[ServerContext]:
    """Open the server context of a configuration, until the block ends; `also` are further tools.

    Raises:
        ConfigError: something in it is not available here.
        StoreBusy: another process drives its store.
    """
    overrides, known = overrides or CommandLineOverrides(), os.environ if environ is None else environ
    model = overrides.model or default_model(known)
    seen = configured_telemetry(loaded, known)
    make = app_factory(loaded, model, known, seen, also, overrides.is_personal)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(seen.aclose)  # closed last: the end of the runtime is reported, too
        if overrides.cluster is not None:
            # An API node drives nothing, whatever its file configures for workers.
            cluster = replace(configured_cluster(loaded, overrides.cluster, known), listen="", advertise="")
            app = await stack.enter_async_context(cluster.join(make))
        else:
            # Alone on a terminal: its tools are of this machine and this folder, so no other process may drive.
            engine = "inline" if overrides.is_personal else loaded.config.store.engine or None
            app = make(store=configured_store(loaded, overrides.store, known), engine=engine)
            if overrides.holds_calls:
                app.permissions.hold()
            stack.push_async_callback(app.aclose)
            await app.start()
        watching = asyncio.get_running_loop().create_task(watch_services(app))
        stack.callback(watching.cancel)
        context = await _context(app, loaded, model, known)
        context.audio = make_audio(loaded.config, known)
        context.folder = work_folder() if overrides.is_personal else configured_folder(loaded.config)
        context.setup_survey = discover_models(loaded, known)
        yield context


async def _context(app: BaseApp, loaded: LoadedConfig, model: str, environ: Mapping[str, str]) -> ServerContext:
    store: Any = app.store
    accounts: Accounts = store.accounts
    agents = Agents(agent_specs(loaded, {name: app.agents[name] for name in agent_tables(loaded)}))
    refresh_agents(agents, loaded, model, app, loaded, environ)
    await ensure_accounts(accounts, loaded, time.time())
    context = ServerContext(app, accounts, agents)
    await apply_schedules(context.schedules, loaded.config)
    await apply_webhooks(context.webhooks, loaded.config)
    context.inbound_hooks.replace_all(read_hooks(loaded.config, environ))
    context.saved_prompts = loaded.prompts
    context.password_support = password_support(loaded.config.auth.passwords)
    context.retention_days = loaded.config.store.retention_days
    return context


async def ensure_accounts(accounts: Accounts, loaded: LoadedConfig, now: float) -> None:
    """Create or update the tenants and users of a configuration; others stay as they are."""
    existing = {tenant.id: tenant for tenant in await accounts.tenants()}
    for id, table in {LOCAL: None, **loaded.config.tenants}.items():
        old = existing.get(id)
        name = (table.name if table is not None else "") or (old.name if old is not None else "")
        new = replace(old, name=name) if old is not None else Tenant(id, name, created=now)
        if new != old:
            await accounts.put_tenant(new)
        for user, row in (table.users if table is not None else {}).items():
            known = await accounts.user(id, user)
            previous = known[0] if known is not None else User(id, user, created=now)
            updated = replace(previous, name=row.name or previous.name, role=row.role, origin=row.origin)
            if known is None or updated != previous:
                await accounts.put_user(updated)
                detail = encode_canonical({"role": updated.role, "was": previous.role if known is not None else ""})
                await accounts.append_audit(AuditRecord(id, now, "configuration", "", "user.put", user, detail))
