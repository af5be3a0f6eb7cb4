"""Builds a runtime with its models, tools and rules from a configuration, and the context of a server."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from everturn.access.agents import Agents, AgentSpec
from everturn.access.auth_options import OidcOptions
from everturn.access.server_context import ServerContext
from everturn.cluster import Cluster
from everturn.config.demo_tools import demo_tools
from everturn.config.discovery import discover_models
from everturn.config.errors import nearest
from everturn.config.load import LoadedConfig
from everturn.config.models import default_model, make_model
from everturn.config.schema import AgentTable
from everturn.config.server_options import ServerOptions
from everturn.config.tools import ConfiguredTools, create_tools, data_folder
from everturn.core.accounts import LOCAL, Accounts, AuditRecord, Tenant, User
from everturn.core.canonical_json import encode_canonical
from everturn.core.loop_detection import LOOP_RULE_NAME
from everturn.core.options import Budget, TurnOptions
from everturn.core.rules.policy import Rule
from everturn.errors import ConfigError
from everturn.models.offline import OFFLINE
from everturn.models.registry import get_model
from everturn.running.active_turn import TurnSettings
from everturn.runtime import Runtime
from everturn.stores.registry import SUFFIXES, get_store
from everturn.telemetry.service_gauges import watch_services
from everturn.telemetry.setup import Telemetry, TelemetryOptions, open_telemetry
from everturn.telemetry.store_observer import observe_store

log = logging.getLogger(__name__)

ASSISTANT: Final = "assistant"
CLUSTER_SETTINGS: Final = (
    *("writes", "loop_timeout", "live_bytes", "nats_ca", "nats_certificate", "nats_key", "identity_key"),
)
CLUSTER_ADDRESSES: Final = ("database", "restate", "admin", "nats", "listen", "advertise")


class CommandLineOverrides(Struct, frozen=True):
    """Command line options; they override every file. `cluster` has those of a cluster; None: no cluster."""

    host: str = ""
    port: int | None = None
    store: str = ""
    model: str = ""
    cluster: Mapping[str, str] | None = None
    is_personal: bool = False  # a single user, on this machine


def configured_agents(loaded: LoadedConfig, model: str, runtime: Runtime | None = None) -> list[AgentSpec]:
    """Return the configured agents; without any, an assistant. `model` is the default model."""
    tables = loaded.config.agents or {ASSISTANT: AgentTable(description="a plain assistant")}
    others = ("*",) if runtime is None or _has_open_tools(runtime) else ()
    return [_agent(name, table, loaded, model, others) for name, table in tables.items()]


def _has_open_tools(runtime: Runtime) -> bool:
    """Return whether there are, or may be later, tools that belong to no group."""
    try:
        return bool(runtime.sources) or runtime.registry.check_selection(("*",)) is not None
    except ConfigError:
        return False


def _agent(name: str, table: AgentTable, loaded: LoadedConfig, model: str, others: tuple[str, ...]) -> AgentSpec:
    tools = table.tools
    if table.groups:
        tools = (*(others if tools is None else tools), *(f"@{group}" for group in table.groups))
    options = TurnOptions(
        model=table.model or model,
        max_steps=table.max_steps,
        tool_history=table.tool_history,
        late=table.late,
        system=loaded.systems.get(name, table.system),
        params=table.params or None,
        timeout=table.timeout,
        gate_timeout=table.gate_timeout,
        tools=tools,
        rules=loaded.agent_rules.get(name, ()),
        review=table.review,
        manual=table.manual,
        budget=table.budget,
        agent=name,
    )
    return AgentSpec(name, options, table.description, table.models)


def refresh_agents(agents: Agents, loaded: LoadedConfig, model: str, runtime: Runtime | None = None) -> None:
    """Replace agents and limits with those of a configuration."""
    limits = {name: tenant.limits for name, tenant in loaded.config.tenants.items() if tenant.limits is not None}
    agents.replace(configured_agents(loaded, model, runtime), limits, loaded.config.limits)
    if runtime is not None and not runtime.sources:  # otherwise a rule may be for a tool that is added later
        for rule in (*loaded.rules, *(rule for rules in loaded.agent_rules.values() for rule in rules)):
            _warn_if_idle(rule, (*runtime.tools, LOOP_RULE_NAME))


def _warn_if_idle(rule: Rule, names: tuple[str, ...]) -> None:
    """Warn when a rule matches no tool: a misspelt deny denies nothing."""
    if not any(fnmatchcase(name.casefold(), rule.tool.casefold()) for name in names):
        log.warning(
            "%s: there is no tool %r, so this rule decides nothing; %s",
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


def runtime_factory(
    loaded: LoadedConfig,
    model: str,
    environ: Mapping[str, str] | None = None,
    seen: Telemetry | None = None,
    also: ConfiguredTools | None = None,
    is_personal: bool = False,
) -> Callable[..., Runtime]:
    """Return a factory that builds the runtime of a configuration on given ports; `also` are further tools.

    Raises (the factory):
        ConfigError: a model, a tool or a secret is not available here.
    """
    known = os.environ if environ is None else environ

    def make(**ports: Any) -> Runtime:
        configured = create_tools(loaded, known, is_personal)
        models = {name: make_model(name, table, known) for name, table in loaded.config.models.items()}
        agents = configured_agents(loaded, model)
        model_names = dict.fromkeys(name for agent in agents for name in (agent.options.model, *agent.models))
        first = next(iter(model_names))
        if OFFLINE in model_names:
            configured.tools += demo_tools()
        if also is not None:
            configured.tools += also.tools
            configured.plugins += also.plugins
        if seen is not None:
            ports["store"] = observe_store(ports["store"], *seen.observers)
            configured.plugins += seen.plugins
        runtime = Runtime(
            models.get(first) or get_model(first, environ=known),
            tools=configured.tools,
            plugins=configured.plugins,
            rules=loaded.rules,
            settings=TurnSettings(budget_of=_budgets(loaded)),
            **ports,
        )
        for model_instance in models.values():
            runtime.add_model(model_instance)
        for name in model_names:  # a missing key is better reported now
            if name != first and name not in models:
                runtime.add_model(get_model(name, environ=known))
        if not runtime.sources:  # otherwise more tools may be added later
            _check_tools(runtime, agents, loaded)
        return runtime

    return make


def _check_tools(runtime: Runtime, agents: Sequence[AgentSpec], loaded: LoadedConfig) -> None:
    for agent in agents:
        try:
            runtime.registry.check_selection([name for name in agent.options.tools or () if name != "*"])
        except ConfigError as error:
            where = loaded.tree.where(("agents", agent.name, "tools"))
            raise ConfigError(f"{where}: agents.{agent.name}.tools: {error}") from None


def configured_store(loaded: LoadedConfig, given: str, environ: Mapping[str, str]) -> str:
    """Return the store's name: from the command line, the configuration, or a file in the user's data folder.

    Raises:
        ConfigError: the folder for that file cannot be created.
    """
    if given:
        return given
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
        raise ConfigError(f"{folder} cannot be made: {error.strerror}; name a --store") from None
    return str(folder / "everturn.db")


def token_file(loaded: LoadedConfig, store: str, environ: Mapping[str, str]) -> Path:
    """Return the file of the local operator's token: as configured, or beside the store."""
    if loaded.config.server.token_file:
        return Path(loaded.config.server.token_file).expanduser()
    is_file = "://" not in store and Path(store).suffix in SUFFIXES
    return (Path(store).resolve().parent if is_file else data_folder(environ)) / "operator.token"


def server_options(loaded: LoadedConfig, given: CommandLineOverrides, environ: Mapping[str, str]) -> ServerOptions:
    """Return the server's options, with all secrets resolved."""
    options, oidc = loaded.config.server, loaded.config.auth.oidc
    if oidc is not None:
        fields = {name: getattr(oidc, name) for name in OidcOptions.__struct_fields__}
        fields["client_secret"] = oidc.client_secret.resolved(environ) if oidc.client_secret else ""
        options = replace(options, oidc=OidcOptions(**fields))
    if given.host:
        options = replace(options, host=given.host)
    return options if given.port is None else replace(options, port=given.port)


def configured_cluster(
    loaded: LoadedConfig, given: Mapping[str, str], environ: Mapping[str, str], listen: str = ""
) -> Cluster:
    """Return the addresses of a cluster: from the command line, the environment, or the configuration."""
    settings: dict[str, Any] = {name: getattr(loaded.config.cluster, name) for name in CLUSTER_SETTINGS}
    settings["listen"] = listen
    for name in CLUSTER_ADDRESSES:
        written = getattr(loaded.config.cluster, name)
        configured = written if isinstance(written, str) else written.resolved(environ)
        if value := given.get(name) or environ.get(f"EVERTURN_{name.upper()}", "") or configured:
            settings[name] = str(value)  # a plain str: it is passed to worker processes
    return Cluster(**settings)


@asynccontextmanager
async def open_server(
    loaded: LoadedConfig,
    given: CommandLineOverrides | None = None,
    environ: Mapping[str, str] | None = None,
    also: ConfiguredTools | None = None,
) -> AsyncGenerator[ServerContext]:
    """Open the server context of a configuration, until the block ends; `also` are further tools.

    Raises:
        ConfigError: something in it is not available here.
        StoreBusy: another process drives its store.
    """
    given, known = given or CommandLineOverrides(), os.environ if environ is None else environ
    model = given.model or default_model(known)
    seen = configured_telemetry(loaded, known)
    make = runtime_factory(loaded, model, known, seen, also, given.is_personal)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(seen.aclose)  # closed last: the end of the runtime is reported, too
        if given.cluster is not None:
            # An API node drives nothing, whatever its file configures for workers.
            cluster = replace(configured_cluster(loaded, given.cluster, known), listen="", advertise="")
            runtime = await stack.enter_async_context(cluster.join(make))
        else:
            store = get_store(configured_store(loaded, given.store, known))
            stack.push_async_callback(store.aclose)
            runtime = make(store=store)
            stack.push_async_callback(runtime.aclose)
            await runtime.start()
        watching = asyncio.get_running_loop().create_task(watch_services(runtime))
        stack.callback(watching.cancel)
        context = await _context(runtime, loaded, model)
        context.setup_survey = discover_models(loaded, known)
        yield context


async def _context(runtime: Runtime, loaded: LoadedConfig, model: str) -> ServerContext:
    store: Any = runtime.store
    accounts: Accounts = store.accounts
    agents = Agents(configured_agents(loaded, model))
    refresh_agents(agents, loaded, model, runtime)
    await ensure_accounts(accounts, loaded, time.time())
    return ServerContext(runtime, accounts, agents)


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
