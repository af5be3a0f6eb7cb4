"""Stored settings in a running process: applies them without a restart, and checks a change before it is stored.

The process that stores a change applies it at once and signals the others over the bus. A signal may be lost, so every
process also compares the revision of the store with its own every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec.structs import replace

from everturn.access.context.settings_backend import FixedSetting, KeyTest
from everturn.base_app import BaseApp
from everturn.config.agents import make_agents
from everturn.config.available_models import check_vendor_key
from everturn.config.hooks import stored_hook
from everturn.config.key_store import KEY_VARIABLES, check_key
from everturn.config.load import LoadedConfig
from everturn.config.models import make_model
from everturn.config.secret_box import SecretBox, open_secret_box
from everturn.config.stored_mcp import stored_server
from everturn.config.stored_settings import (
    AppliedSettings,
    StoredEnvironment,
    add_settings,
    key_variable,
    known_agents,
    rules_of_tenants,
)
from everturn.core.chunks import Chunk
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest
from everturn.core.rules.policy import Rule
from everturn.core.tenants.settings import HookSettings, McpSettings, McpTrust, Setting, decode_body
from everturn.egress.client import PORTS
from everturn.egress.policy import EgressPolicy
from everturn.errors import ConfigError, ModelError
from everturn.inbound_hooks.hook import InboundHook
from everturn.mcp.config import ServerSpec
from everturn.mcp.servers import McpServers
from everturn.models.registry import find_key, get_model
from everturn.models.vendors import VENDORS

log = logging.getLogger(__name__)

SIGNAL: Final = "everturn.settings"
"""The topic of the bus by which processes tell each other that a setting has changed; no session has this id."""


class SettingsHost(Protocol):
    """What applies a configuration in this process: the `ConfigReloader`."""

    files: LoadedConfig  # without the settings

    @property
    def default_model(self) -> str:
        """The model of agents that name none."""
        ...

    async def apply_settings(self) -> None:
        """Apply the stored settings as they are now."""
        ...


def find_stored_servers(app: BaseApp) -> McpServers | None:
    """Return the source of the MCP servers of administrators; None: MCP is not installed, or settings are off."""
    return next((source for source in app.sources if isinstance(source, McpServers) and source.is_stored), None)


class UnavailableModel:
    """A model that cannot be asked at present, such as one whose key was deleted: a turn fails with the reason."""

    def __init__(self, name: str, reason: str) -> None:
        self._name, self._reason = name, reason

    @property
    def name(self) -> str:
        """The name of the model."""
        return self._name

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[Chunk]]:
        """Fail with the reason."""
        raise ModelError(self._reason, kind="key")
        yield ()


class StoredSettings:
    """The settings of a process: reads, checks and applies them through its `ConfigReloader`."""

    def __init__(self, reloader: SettingsHost, app: BaseApp, environ: Mapping[str, str], key_file: Path | None) -> None:
        self._reloader, self._app, self._environ, self._key_file = reloader, app, environ, key_file
        self._box: SecretBox | None = None
        self.secret_problem = "the settings are not read yet"
        self.rows: tuple[Setting, ...] = ()
        self.problems: Mapping[tuple[str, str], str] = {}
        self.hooks: tuple[InboundHook, ...] = ()
        self.tenant_rules: Mapping[str, Sequence[Rule]] = {}
        self.tenant_problems: Mapping[str, str] = {}
        self._revision = -1
        self._installed: dict[str, tuple[object, ...]] = {}

    # For the reloader --------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Find the key of the secrets."""
        try:
            self._box = await open_secret_box(self._reloader.files, self._environ, self._app.store, self._key_file)
            self.secret_problem = ""
        except ConfigError as error:
            self.secret_problem = str(error)

    async def read(self) -> None:
        """Read the settings anew."""
        revision = await self._app.store.settings.revision()
        rows, of_tenants = (
            await self._app.store.settings.current(),
            await self._app.store.settings.of_tenants("rules"),
        )
        self.rows = tuple(rows)
        before, self.tenant_rules, self.tenant_problems = self.tenant_problems, *rules_of_tenants(of_tenants)
        for tenant, reason in self.tenant_problems.items():
            if before.get(tenant) != reason:
                log.warning(
                    "the stored rules of tenant %r are not used, and each of its calls asks: %s", tenant, reason
                )
        self._revision = revision  # only now: what failed halfway is read again

    async def has_changed(self) -> bool:
        """Return whether another process has changed a setting since the last read."""
        return await self._app.store.settings.revision() != self._revision

    def add_to(self, loaded: LoadedConfig, rows: Sequence[Setting] | None = None) -> AppliedSettings:
        """Return a configuration of files with the settings."""
        return add_settings(loaded, self.rows if rows is None else rows, self._box, self._reloader.default_model)

    def install_models(self, applied: AppliedSettings) -> None:
        """Give the app the models of the settings, and remove those that were deleted."""
        wanted = self._models(applied)
        for name, (signature, make) in wanted.items():
            if self._installed.get(name) != signature:
                try:
                    self._app.add_model(make())
                except ConfigError as error:
                    self._app.remove_model(name)
                    self._app.add_model(UnavailableModel(name, str(error)))
                self._installed[name] = signature
        for name in self._installed.keys() - wanted.keys():
            self._app.remove_model(name)
            del self._installed[name]

    def install_servers(self, applied: AppliedSettings) -> None:
        """Connect to the MCP servers of the settings, and disconnect from those that were deleted."""
        source = find_stored_servers(self._app)
        if source is None:
            return
        specs: list[ServerSpec] = []
        trusted: dict[str, McpTrust] = {}
        for row in applied.rows:
            if row.kind == "mcp":
                body: McpSettings = decode_body(row)
                secret = applied.keys[key_variable(row)].encode() if row.secret else b"{}"
                values = msgspec.json.decode(secret, type=dict[str, str])
                specs.append(stored_server(applied.loaded.config, row, body, values))
                trusted[row.name] = body.trust
        source.replace_servers(specs, trusted)

    def read_hooks(self, applied: AppliedSettings) -> None:
        """Make the inbound hooks of the settings those of `hooks`; one without a secret would accept anything."""
        agents, hooks = known_agents(applied.loaded, applied.rows), list[InboundHook]()
        for row in applied.rows:
            if row.kind == "hook" and row.secret:
                body: HookSettings = decode_body(row)
                hooks.append(stored_hook(row, body, applied.keys[key_variable(row)], agents))
        self.hooks = tuple(hooks)

    def _models(self, applied: AppliedSettings) -> dict[str, tuple[tuple[object, ...], Callable[[], Model]]]:
        """Return each model that settings define or give a key, with what it depends on and how it is made."""
        config, env = applied.loaded.config, StoredEnvironment(self._environ, applied.keys)
        policy = EgressPolicy(config.settings.allow, ports=PORTS)
        wanted: dict[str, tuple[tuple[object, ...], Callable[[], Model]]] = {}

        def add(name: str, model: str, base_url: str, own: str, make: Callable[[], Model]) -> None:
            vendor = VENDORS.get(model.partition(":")[0])
            variable = own or (vendor.key if vendor is not None and not base_url else "")
            wanted[name] = ((model, base_url, repr(config.models.get(name)), env.get(variable, "")), make)

        for row in applied.rows:
            if row.kind == "model":
                table = config.models[row.name]
                own = key_variable(row) if row.secret else ""

                def made(name: str = row.name) -> Model:
                    from everturn.egress.model_transport import GuardedTransport

                    found = config.models[name]
                    transport = GuardedTransport(policy) if found.base_url else None
                    return make_model(name, found, env, config.models, config.rate_limits, transport)

                add(row.name, table.model, table.base_url, own, made)
        stored_agents = {row.name for row in applied.rows if row.kind == "agent"}
        for agent, table in config.agents.items():
            for name in (table.model, *table.models):
                vendor = VENDORS.get(name.partition(":")[0]) if ":" in name else None
                if vendor is None or name in wanted or not vendor.key or find_key(vendor.key, self._environ):
                    continue
                if agent in stored_agents or vendor.key in applied.keys:
                    add(name, name, "", "", lambda name=name: get_model(name, environ=env))
        return wanted

    # For the access layer ----------------------------------------------------------------------------------------------

    @property
    def is_editable(self) -> bool:
        """Whether settings may be changed here."""
        return self._reloader.files.config.settings.editable

    def fixed(self) -> list[FixedSetting]:
        """Return the models, agents and keys that files and the environment define."""
        files = self._reloader.files
        found = [
            FixedSetting("model", name, table.model, str(files.tree.where(("models", name))))
            for name, table in files.config.models.items()
        ]
        found += [
            FixedSetting(
                "mcp", name, table.url.partition("?")[0] or table.command, str(files.tree.where(("mcp", name)))
            )
            for name, table in files.config.mcp.items()
        ]
        found += [
            FixedSetting("hook", name, table.scheme, str(files.tree.where(("hooks", name))))
            for name, table in files.config.hooks.items()
        ]
        found += [
            FixedSetting("agent", name, table.model, str(files.tree.where(("agents", name))))
            for name, table in files.config.agents.items()
        ]
        return found + [
            FixedSetting("key", vendor, variable, variable)
            for variable, vendor in KEY_VARIABLES.items()
            if find_key(variable, self._environ)
        ]

    def fixed_rules(self) -> Sequence[Rule]:
        """Return the permission rules of the files."""
        return self._reloader.files.rules

    def vendors(self) -> list[str]:
        """Return the vendors whose keys can be stored."""
        return list(KEY_VARIABLES.values())

    def programs(self) -> Mapping[str, Sequence[str]]:
        """Return the programs that can be started as MCP servers, each with the variables that it takes."""
        return {name: table.variables for name, table in self._reloader.files.config.settings.programs.items()}

    @property
    def servers(self) -> McpServers | None:
        """The MCP servers of administrators; None: MCP is not installed."""
        return find_stored_servers(self._app)

    def seal(self, setting: Setting, secret: str) -> Setting:
        """Return a setting with its secret encrypted.

        Raises:
            ConfigError: there is no key to encrypt it with, or no key looks like this.
        """
        if self._box is None:
            raise ConfigError(self.secret_problem)
        return replace(
            setting, secret=self._box.seal(secret if setting.kind in ("mcp", "hook") else check_key(secret), setting)
        )

    async def check(self, rows: Sequence[Setting]) -> None:
        """Check what would apply with these settings; nothing changes.

        Raises:
            ConfigError: one of them is invalid.
        """
        before = set(self.problems)
        applied = await asyncio.to_thread(self.add_to, self._reloader.files, rows)
        if new := [text for place, text in applied.problems.items() if place not in before]:
            raise ConfigError("\n".join(new))
        models = self._models(applied)
        for name, (signature, make) in models.items():
            if self._installed.get(name) != signature:
                make()  # it raises when the name or the key is missing
        for agent in applied.loaded.config.agents.values():
            for name in filter(None, (agent.model, *agent.models)):
                if name not in models:
                    self._app.model_for(name)
        environ = StoredEnvironment(self._environ, applied.keys)
        made = make_agents(applied.loaded, self._reloader.default_model, environ, app=self._app)
        if not self._app.awaits_tools:
            for agent in made.values():
                tools = [tool for tool in agent.tools if isinstance(tool, str) and tool != "*"]
                self._app.registry.check_selection(tools)

    async def changed(self) -> None:
        """Apply a change that was stored, and tell the other processes."""
        self._app.bus.signal(SIGNAL)
        await self._reloader.apply_settings()

    async def test_key(self, setting: Setting) -> KeyTest:
        """Ask a vendor for its models with the stored key."""
        assert self._box is not None
        checked = await asyncio.to_thread(check_vendor_key, setting.name, self._box.open(setting))
        return KeyTest(checked.models, checked.problem, checked.is_refused)
