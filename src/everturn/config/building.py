"""A configuration → a runtime with its models, tools and rules, and the house that a server serves."""

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

from everturn.access.access import House
from everturn.access.agents import Agents, AgentSpec
from everturn.access.options import OidcOptions
from everturn.cluster import Cluster
from everturn.config.demo import demo_tools
from everturn.config.loading import Loaded
from everturn.config.models import make_model, usual_model
from everturn.config.options import ServerOptions
from everturn.config.schema import AgentTable
from everturn.config.surveying import survey
from everturn.config.tools import Brought, bring, data_folder
from everturn.config.trouble import nearest
from everturn.core.accounts import LOCAL, Accounts, AuditRecord, Tenant, User
from everturn.core.canonical import canonical
from everturn.core.options import Budget, TurnOptions
from everturn.core.policy import Rule
from everturn.errors import ConfigError
from everturn.models.named import named
from everturn.models.offline import OFFLINE
from everturn.stores.named import SUFFIXES, named_store
from everturn.telemetry.services import watch_services
from everturn.telemetry.setup import Telemetry, TelemetryOptions, open_telemetry
from everturn.telemetry.watching import watched
from everturn.turn.permit import DOOM_LOOP
from everturn.turn.run import Settings
from everturn.wiring import Runtime

log = logging.getLogger(__name__)

ASSISTANT: Final = "assistant"
CLUSTER_SETTINGS: Final = (
    *("writes", "loop_timeout", "live_bytes", "nats_ca", "nats_certificate", "nats_key", "identity_key"),
)
CLUSTER_PLACES: Final = ("database", "restate", "admin", "nats", "listen", "advertise")


class Given(Struct, frozen=True):
    """What a command line says; it beats every file. `cluster` is what was said of one, None: there is none."""

    host: str = ""
    port: int | None = None
    store: str = ""
    model: str = ""
    cluster: Mapping[str, str] | None = None
    is_personal: bool = False  # one person alone uses it, at this machine


def agents_of(loaded: Loaded, model: str, runtime: Runtime | None = None) -> list[AgentSpec]:
    """The agents that are configured; without any, an assistant. `model` is that of whoever names none."""
    tables = loaded.config.agents or {ASSISTANT: AgentTable(description="a plain assistant")}
    others = ("*",) if runtime is None or _has_open_tools(runtime) else ()
    return [_agent(name, table, loaded, model, others) for name, table in tables.items()]


def _has_open_tools(runtime: Runtime) -> bool:
    """Whether there are tools, or may come, that no group has to be switched on for."""
    try:
        return bool(runtime.sources) or runtime.registry.check(("*",)) is not None
    except ConfigError:
        return False


def _agent(name: str, table: AgentTable, loaded: Loaded, model: str, others: tuple[str, ...]) -> AgentSpec:
    tools = table.tools
    if table.groups:
        tools = (*(others if tools is None else tools), *(f"@{group}" for group in table.groups))
    options = TurnOptions(
        model=table.model or model,
        max_steps=table.max_steps,
        history=table.history,
        late=table.late,
        system=loaded.systems.get(name, table.system),
        params=table.params or None,
        timeout=table.timeout,
        gate_timeout=table.gate_timeout,
        tools=tools,
        rules=loaded.agent_rules.get(name, ()),
        result=table.result,
        by_hand=table.by_hand,
        budget=table.budget,
        agent=name,
    )
    return AgentSpec(name, options, table.description, table.models)


def refresh(agents: Agents, loaded: Loaded, model: str, runtime: Runtime | None = None) -> None:
    """Let agents and limits be those of a configuration, from now on."""
    limits = {name: tenant.limits for name, tenant in loaded.config.tenants.items() if tenant.limits is not None}
    agents.replace(agents_of(loaded, model, runtime), limits, loaded.config.limits)
    if runtime is not None and not runtime.sources:  # else tools may be meant that are still to come
        for rule in (*loaded.rules, *(rule for rules in loaded.agent_rules.values() for rule in rules)):
            _warn_if_idle(rule, (*runtime.tools, DOOM_LOOP))


def _warn_if_idle(rule: Rule, names: tuple[str, ...]) -> None:
    """Say it when a rule is about no tool that there is: a deny that is misspelt denies nothing."""
    if not any(fnmatchcase(name.casefold(), rule.tool.casefold()) for name in names):
        log.warning(
            "%s: there is no tool %r, so this rule decides nothing; %s",
            rule.source,
            rule.tool,
            nearest(rule.tool, names),
        )


def _budgets(loaded: Loaded) -> Callable[[str], tuple[Budget, float]]:
    """What each tenant may use. At the door it is refused another turn; a turn that runs comes to its last request."""
    every, tenants = loaded.config.limits, loaded.config.tenants

    def of(tenant: str) -> tuple[Budget, float]:
        table = tenants.get(tenant)
        limits = table.limits if table is not None and table.limits is not None else every
        return limits.budget, limits.period

    return of


def telemetry_of(loaded: Loaded, environ: Mapping[str, str]) -> Telemetry:
    """What this process is seen by.

    Raises:
        ConfigError: what speaks to the collector is not installed, or its address or key cannot be had.
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


def maker(
    loaded: Loaded,
    model: str,
    environ: Mapping[str, str] | None = None,
    seen: Telemetry | None = None,
    also: Brought | None = None,
    is_personal: bool = False,
) -> Callable[..., Runtime]:
    """What makes a runtime of a configuration, on whatever store, bus and engine it is given; with tools of `also`.

    Raises (what it makes):
        ConfigError: a model, a tool or a secret cannot be had here.
    """
    known = os.environ if environ is None else environ

    def make(**ports: Any) -> Runtime:
        brought = bring(loaded, known, is_personal)
        models = {name: make_model(name, table, known) for name, table in loaded.config.models.items()}
        agents = agents_of(loaded, model)
        wanted = dict.fromkeys(name for agent in agents for name in (agent.options.model, *agent.models))
        first = next(iter(wanted))
        if OFFLINE in wanted:
            brought.tools += demo_tools()
        if also is not None:
            brought.tools += also.tools
            brought.plugins += also.plugins
        if seen is not None:
            ports["store"] = watched(ports["store"], *seen.watchers)
            brought.plugins += seen.plugins
        runtime = Runtime(
            models.get(first) or named(first, environ=known),
            tools=brought.tools,
            plugins=brought.plugins,
            rules=loaded.rules,
            settings=Settings(budget_of=_budgets(loaded)),
            **ports,
        )
        for one in models.values():
            runtime.add_model(one)
        for name in wanted:  # a key that is missing is better known now
            if name != first and name not in models:
                runtime.add_model(named(name, environ=known))
        if not runtime.sources:  # else there may be more to come
            _check_tools(runtime, agents, loaded)
        return runtime

    return make


def _check_tools(runtime: Runtime, agents: Sequence[AgentSpec], loaded: Loaded) -> None:
    for agent in agents:
        try:
            runtime.registry.check([one for one in agent.options.tools or () if one != "*"])
        except ConfigError as error:
            where = loaded.tree.where(("agents", agent.name, "tools"))
            raise ConfigError(f"{where}: agents.{agent.name}.tools: {error}") from None


def store_of(loaded: Loaded, given: str, environ: Mapping[str, str]) -> str:
    """The store that is meant: as said, as configured, or a file among the data of whoever runs this.

    Raises:
        ConfigError: the folder for that file cannot be made.
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


def token_file(loaded: Loaded, store: str, environ: Mapping[str, str]) -> Path:
    """Where the token of the local operator is kept: as configured, or beside the store."""
    if loaded.config.server.token_file:
        return Path(loaded.config.server.token_file).expanduser()
    is_file = "://" not in store and Path(store).suffix in SUFFIXES
    return (Path(store).resolve().parent if is_file else data_folder(environ)) / "operator.token"


def server_options(loaded: Loaded, given: Given, environ: Mapping[str, str]) -> ServerOptions:
    """How to serve, with every secret in its place."""
    options, oidc = loaded.config.server, loaded.config.auth.oidc
    if oidc is not None:
        fields = {name: getattr(oidc, name) for name in OidcOptions.__struct_fields__}
        fields["client_secret"] = oidc.client_secret.resolved(environ) if oidc.client_secret else ""
        options = replace(options, oidc=OidcOptions(**fields))
    if given.host:
        options = replace(options, host=given.host)
    return options if given.port is None else replace(options, port=given.port)


def cluster_of(loaded: Loaded, given: Mapping[str, str], environ: Mapping[str, str], listen: str = "") -> Cluster:
    """Where the parts of a cluster are: as said, or in the environment, or configured; `listen`, if nothing is."""
    found: dict[str, Any] = {name: getattr(loaded.config.cluster, name) for name in CLUSTER_SETTINGS}
    found["listen"] = listen
    for name in CLUSTER_PLACES:
        written = getattr(loaded.config.cluster, name)
        configured = written if isinstance(written, str) else written.resolved(environ)
        if value := given.get(name) or environ.get(f"EVERTURN_{name.upper()}", "") or configured:
            found[name] = str(value)  # a plain text: it is handed to workers that are processes of their own
    return Cluster(**found)


@asynccontextmanager
async def open_house(
    loaded: Loaded,
    given: Given | None = None,
    environ: Mapping[str, str] | None = None,
    also: Brought | None = None,
) -> AsyncGenerator[House]:
    """The house of a configuration, until the block ends; `also` is what it has beside what is configured.

    Raises:
        ConfigError: something of it cannot be had here.
        StoreBusy: another process drives what is in its store.
    """
    given, known = given or Given(), os.environ if environ is None else environ
    model = given.model or usual_model(known)
    seen = telemetry_of(loaded, known)
    make = maker(loaded, model, known, seen, also, given.is_personal)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(seen.aclose)  # last: what a runtime does in the end is told, too
        if given.cluster is not None:
            # A node of the API drives nothing, whatever its file says for workers.
            cluster = replace(cluster_of(loaded, given.cluster, known), listen="", advertise="")
            runtime = await stack.enter_async_context(cluster.join(make))
        else:
            store = named_store(store_of(loaded, given.store, known))
            stack.push_async_callback(store.aclose)
            runtime = make(store=store)
            stack.push_async_callback(runtime.aclose)
            await runtime.start()
        watching = asyncio.get_running_loop().create_task(watch_services(runtime))
        stack.callback(watching.cancel)
        house = await _house(runtime, loaded, model)
        house.survey = survey(loaded, known)
        yield house


async def _house(runtime: Runtime, loaded: Loaded, model: str) -> House:
    store: Any = runtime.store
    accounts: Accounts = store.accounts
    agents = Agents(agents_of(loaded, model))
    refresh(agents, loaded, model, runtime)
    await ensure(accounts, loaded, time.time())
    return House(runtime, accounts, agents)


async def ensure(accounts: Accounts, loaded: Loaded, now: float) -> None:
    """See to it that the tenants and users of a configuration are there; what it does not name stays as it is."""
    there = {tenant.id: tenant for tenant in await accounts.tenants()}
    for id, table in {LOCAL: None, **loaded.config.tenants}.items():
        old = there.get(id)
        name = (table.name if table is not None else "") or (old.name if old is not None else "")
        new = replace(old, name=name) if old is not None else Tenant(id, name, created=now)
        if new != old:
            await accounts.put_tenant(new)
        for user, row in (table.users if table is not None else {}).items():
            known = await accounts.user(id, user)
            was = known[0] if known is not None else User(id, user, created=now)
            made = replace(was, name=row.name or was.name, role=row.role, origin=row.origin)
            if known is None or made != was:
                await accounts.put_user(made)
                detail = canonical({"role": made.role, "was": was.role if known is not None else ""})
                await accounts.note(AuditRecord(id, now, "configuration", "", "user.put", user, detail))
