"""Server context: the runtime, the accounts and the agents that a node serves, shared by all requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import cached_property

from msgspec import Struct

from everturn import api
from everturn.access.context.agents import Agents, AgentSpec
from everturn.access.context.audio_service import AudioService
from everturn.access.context.presence_board import PresenceBoard
from everturn.access.context.quotas import TenantMeter
from everturn.access.context.settings_backend import SettingsBackend
from everturn.app import App
from everturn.base_app import BaseApp
from everturn.core.tenants.accounts import Accounts
from everturn.core.tenants.saved_prompts import SavedPrompt
from everturn.core.tenants.user_records import PasswordSupport
from everturn.inbound_hooks.inbound_hooks import InboundHooks
from everturn.schedules.schedules import Schedules
from everturn.webhooks.webhooks import Webhooks

SetupSurvey = Callable[[str, str], Awaitable[api.SetupView]]
"""(default agent, its model) -> how the configuration could be changed to use another model."""


OpenFolderFunction = Callable[[str], Awaitable[api.FolderView]]
"""Opens a folder of this machine, and returns the agent that works there."""


class ServerContext(Struct, dict=True):
    """What a node serves: its runtime, its accounts and its agents. There is one per process."""

    app: BaseApp
    accounts: Accounts
    agents: Agents

    def __post_init__(self) -> None:
        self.meter = TenantMeter(self.app.store, self.app.clock, self.agents, self.accounts)
        # Changes of users are serialized: of two owners who demote each other one stays.
        self.user_lock = asyncio.Lock()
        self.folder = ""  # that its tools work in; grants may be for one folder
        self.password_support: PasswordSupport = "off"
        self.retention_days = 0.0  # after which an idle session is erased; 0: never
        self.saved_prompts: tuple[SavedPrompt, ...] = ()  # those of the configuration
        self.audio = AudioService()  # of the configuration; by default it can do nothing
        self.presence_names: dict[tuple[str, str], tuple[str, float]] = {}  # (tenant, user) -> name, and until when
        self._secrets: dict[str, bytes] = {}
        # Set by the code that loaded the configuration, which knows how to change it.
        self.setup_survey: SetupSurvey | None = None
        # Set by the same code: what administrators change at run time. None: nothing can be changed.
        self.settings: SettingsBackend | None = None
        # Only the server of a terminal opens folders: all its users are the user of this machine.
        self.open_folder: OpenFolderFunction | None = None

    async def secret(self, name: str) -> bytes:
        """A secret of the whole installation that never changes, so it is read once. Signatures have `accounts.keys`."""
        if name not in self._secrets:
            self._secrets[name] = await self.accounts.secret(name)
        return self._secrets[name]

    @cached_property
    def presence(self) -> PresenceBoard:
        """Who looks at the conversations, on all nodes."""
        return PresenceBoard(self.app.bus, self.app.clock)

    @cached_property
    def schedules(self) -> Schedules:
        """The schedules of the runtime."""
        return self.app.schedules if isinstance(self.app, App) else Schedules(self.app)

    @cached_property
    def webhooks(self) -> Webhooks:
        """The webhooks of the runtime."""
        return self.app.webhooks if isinstance(self.app, App) else Webhooks(self.app)

    @cached_property
    def inbound_hooks(self) -> InboundHooks:
        """The inbound hooks of the runtime. Their turns count against the limits of their tenant."""
        hooks = self.app.inbound_hooks if isinstance(self.app, App) else InboundHooks(self.app)
        hooks.count_turn = self.meter.count_turn
        return hooks

    def model_of(self, agent: AgentSpec) -> str:
        """The name of an agent's model; an agent without one has the default model of the runtime."""
        return agent.options.model or self.app.model_for("").name

    def count(self, tenant: str) -> None:
        """Count a request of a tenant.

        Raises:
            TooMuch: the tenant has exceeded its rate limit.
        """
        self.meter.count_request(tenant)
