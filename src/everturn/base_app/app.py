"""`BaseApp`: connects the ports to their adapters, takes commands, and drives sessions in this process."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from everturn import failpoints
from everturn.agents.agent_registry import AgentRegistry
from everturn.agents.bound_agent import BoundAgent
from everturn.agents.definition import AgentDefinition
from everturn.agents.denied_tools import check_tools_allowed
from everturn.background_loop import BACKGROUND
from everturn.base_app.arguments import check_settings, check_subagents, read_rules, separate_sources
from everturn.base_app.models import AppModels, load_limiter_metrics
from everturn.base_app.readers import SessionReaders
from everturn.base_app.reconciler import run_reconciler
from everturn.base_app.tool_sources import AppToolSources
from everturn.base_app.turn_status import StatusListener, notify_listeners
from everturn.bus.registry import get_bus
from everturn.calls.callbacks import complete_callback
from everturn.calls.output import OutputLimits
from everturn.calls.subagent_runner import SubagentRunner
from everturn.clock import RandomIds, SystemClock
from everturn.core.commands import AnyCommand, Send
from everturn.core.deltas import TurnItem, TurnReader
from everturn.core.gates import Gate
from everturn.core.modality import Modality
from everturn.core.options import WORKFLOW_MODEL, TurnOptions
from everturn.core.phases import Phase
from everturn.core.ports import Bus, Clock, Engine, IdSource, Model, Tool, ToolSource
from everturn.core.rate_limits import LimiterOptions, RateLimitStore
from everturn.core.rules.policy import Policy, Rule
from everturn.core.state import TurnState
from everturn.core.store_ports import Receipt, SessionInfo, TurnStore
from everturn.driver.driver import Driver
from everturn.engine.inline import InlineEngine
from everturn.engine.registry import get_engine
from everturn.errors import (
    ConfigError,
    EngineUnavailable,
    EverturnError,
    SessionBusy,
    StoreBusy,
    StoreUnavailable,
    UnknownSession,
)
from everturn.limiter import RateLimiter
from everturn.permissions import command_readers
from everturn.plugins.tool_calling import ToolCalling
from everturn.postgres.address import is_postgres_url
from everturn.running.drive_setup import DriveSetup, TurnSettings
from everturn.running.permissions import Permissions
from everturn.running.plugin_table import PluginTable
from everturn.running.tool_tasks import ToolTasks
from everturn.shared_database import SharedDatabase, blocked_drive_recorder, require_shared
from everturn.stores.memory import MemoryStore
from everturn.stores.partial import complete_store
from everturn.stores.rate_limits import MemoryRateLimits
from everturn.stores.registry import get_store
from everturn.telemetry.instrumentation import open_installed
from everturn.tools.registry import ToolItem, ToolRegistry
from everturn.watchdog import LoopWatchdog

if TYPE_CHECKING:
    from everturn.telemetry.setup import Telemetry
    from everturn.tools.workflow import Workflow

log = logging.getLogger(__name__)

T = TypeVar("T")


CLOSED = "this chat is closed; open another one on the same store to continue its turns"
DRIVE_SECONDS = (
    60.0  # seconds after which a drive releases its session between two steps, if another process could continue
)
DRAIN_TIMEOUT = 10.0  # seconds for a stopping process to finish its running steps
DURABLE_DRAIN_TIMEOUT = 3.0  # the same if other processes can continue at once, and new work waits for it
WAKE_TIMEOUT = 2.0  # seconds a command waits for the engine; it is durable already
LATE_RESULT_RETRY_PAUSES = (0.2, 1.0, 5.0, 30.0)  # seconds between attempts to deliver a late result


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class BaseApp:
    """Runs sessions in this process: it takes commands and shows events."""

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        agents: Iterable[AgentDefinition[Any]] = (),
        tools: Iterable[ToolItem] | ToolRegistry = (),
        sources: Iterable[ToolSource] = (),
        plugins: Iterable[object] = (),
        store: TurnStore | str | None = None,
        bus: Bus | str | None = None,
        engine: Engine | str | None = None,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        settings: TurnSettings | None = None,
        limits: OutputLimits | None = None,
        rules: Iterable[Rule] | str | Path = (),
        telemetry: Telemetry | None = None,
        limiter: LimiterOptions | None = None,
    ) -> None:
        self.clock = clock or SystemClock()
        self.ids = ids or RandomIds()
        self._has_made_store, self._has_made_telemetry = isinstance(store, str), telemetry is None
        self.store = get_store(store) if isinstance(store, str) else complete_store(store or MemoryStore())
        self.is_in_memory = isinstance(self.store, MemoryStore)  # nothing of it outlives the process
        self.telemetry = open_installed() if telemetry is None else telemetry
        if self.telemetry is not None:
            self.store = self.telemetry.observe(self.store)
        shared = SharedDatabase(store) if isinstance(store, str) and is_postgres_url(store) else None
        self.bus, self._has_made_bus = self._open_bus(bus, engine, shared), isinstance(bus, str) or bus is None
        self._readers = SessionReaders(self.store, self.bus)
        self.log_poll = self._readers.log_poll
        plain_tools, sources = separate_sources(tools, sources)
        self.registry = plain_tools if isinstance(plain_tools, ToolRegistry) else ToolRegistry(plain_tools)
        self._tool_sources = AppToolSources(sources, self.registry)
        if isinstance(agents, AgentDefinition):
            raise ConfigError("App: agents must be a list: App(agents=[agent])")
        agents = list(agents)
        if model is None and agents:
            model = agents[0].current.model
        if not isinstance(plain_tools, ToolRegistry):  # a registry that the caller passes may be filled later
            check_subagents(self.registry)
        settings = check_settings(settings)
        self._models = AppModels(model)
        self.tool_tasks = ToolTasks()
        self.engine = self._open_engine(engine, shared)
        # First, so that a plugin of the same name replaces it.
        has_tools = bool(plain_tools) or bool(sources)
        calling, self._plugins = ToolCalling(self.registry, limits or OutputLimits()), list(plugins)
        plugins = self._plugins_with(())
        self.hooks = PluginTable([calling, *plugins] if has_tools else plugins)
        self.listeners: list[StatusListener] = []
        self.turn_dependencies: dict[str, Any] = {}  # given for one run, by turn: lost with the process
        self._limits = limits or OutputLimits()
        self.permissions = Permissions(read_rules(rules), *command_readers())
        self.limiter = self._open_limiter(limiter or LimiterOptions(), clock)
        setup = self._setup = DriveSetup(
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            ids=self.ids,
            engine=self.engine,
            app=self,
            subagents=SubagentRunner(self.store, self.clock, self.ids, self),
            hooks=self.hooks,
            tool_tasks=self.tool_tasks,
            permissions=self.permissions,
            client_hooks=None if has_tools else PluginTable([calling, *plugins]),
            settings=settings,
            setup_of=self.drive_setup,
            max_drive_seconds=DRIVE_SECONDS if self.engine.is_durable else 0.0,
            enter_call=self.telemetry.enter_call if self.telemetry is not None else None,
            limiter=self.limiter,
        )
        self._agents = AgentRegistry(self._bind, needs_names=not self.is_in_memory)
        self._agents.replace(agents)
        if not _is_in_event_loop():  # otherwise others would wait; `start` does it
            self._models.load()
        self._driver = Driver(setup, self._announce)
        self._starting, self._has_started = asyncio.Lock(), False
        self._reconciler: asyncio.Task[None] | None = None
        self._database = store if shared is not None and isinstance(store, str) else ""
        self._watchdog: LoopWatchdog | None = None

    def _open_engine(self, engine: Engine | str | None, shared: SharedDatabase | None) -> Engine:
        """The engine: as given, by its name, or the one that fits the store."""
        if engine is not None and not isinstance(engine, str):
            return engine
        name = engine or ("postgres" if shared is not None else "inline")
        if name == "inline":
            return InlineEngine(self.clock, self._readers.report_lost)
        if name == "postgres":
            return require_shared(shared, "engine").engine(self.clock)
        return get_engine(name)

    def _open_bus(self, bus: Bus | str | None, engine: Engine | str | None, shared: SharedDatabase | None) -> Bus:
        """The bus: as given, by its name, or the one that fits the store and the engine."""
        if bus is not None and not isinstance(bus, str):
            return bus
        name = bus or ("postgres" if shared is not None and engine in (None, "postgres") else "memory")
        return require_shared(shared, "bus").bus() if name == "postgres" else get_bus(name)

    def _open_limiter(self, options: LimiterOptions, clock: Clock | None) -> RateLimiter:
        """The limiter of requests to providers; its state is in the store, so that processes share it."""
        store: RateLimitStore | None = getattr(self.store, "rate_limits", None)
        if store is None or (self.is_in_memory and clock is not None):
            store = MemoryRateLimits(self.clock.now)
        return RateLimiter(
            store,
            self.clock,
            os.urandom(6).hex(),
            learns=options.learn,
            breaker=options.breaker,
            observer=load_limiter_metrics,
        )

    @property
    def tools(self) -> Mapping[str, Tool]:
        """All present tools, including those of groups that are off."""
        return self.registry.tools

    def model_for(self, name: str) -> Model:
        """A model by its name; "" is the runtime's default model.

        Raises:
            ConfigError: the model was not added, and cannot be found by its name.
        """
        return self._models.get(name)

    def add_model(self, model: Model | str) -> str:
        """Add a model for turns, and return its name; the name of a known model is returned as it is."""
        return self._models.add(model)

    def remove_model(self, name: str) -> None:
        """Forget a model, such as one whose key was deleted; a turn that asks for it looks for it by its name again."""
        self._models.remove(name)

    # Agents -------------------------------------------------------------------------------------------------------

    @property
    def agents(self) -> Mapping[str, AgentDefinition[Any]]:
        """The agents by name, the default one first, and those that they can call or hand over to."""
        return self._agents.definitions

    @property
    def default_agent(self) -> str:
        """The name of the first agent; "": there is none."""
        return self._agents.default

    def add_agent(self, agent: AgentDefinition[Any]) -> str:
        """Add an agent and those below it, and return its name; the same agent may be added again.

        Raises:
            ConfigError: it has no name, or another agent has the name.
        """
        return self._agents.add(agent)

    def replace_agents(self, agents: Iterable[AgentDefinition[Any]]) -> None:
        """Replace the agents; the first is the default. Turns that are running keep their options, and turns that waited
        for one of the new agents continue.

        Raises:
            ConfigError: one of them cannot be bound; the old ones stay.
        """
        self._agents.replace(agents)
        self._driver.retry_awaited_agents()

    async def put_agent(self, agent: AgentDefinition[Any]) -> None:
        """Add an agent, or replace the one of its name, while the app runs; the tool sources of the new one are opened.

        Raises:
            ConfigError: it cannot be bound; the old one stays.
        """
        old = self._agents.put(agent)
        if old is not None:
            await self._tool_sources.close_agent(old)
        if self._has_started:
            await self._tool_sources.open_agent(self._agents.binding(agent.name))
        self._driver.retry_awaited_agents()

    def _plugins_with(self, own: Iterable[object]) -> list[object]:
        """The plugins of an agent's turns. Those of telemetry are last: what they see is what the others made of it."""
        return [*self._plugins, *own, *(self.telemetry.plugins if self.telemetry is not None else ())]

    def _bind(self, agent: AgentDefinition[Any], name: str) -> BoundAgent:
        plugins = self._plugins_with(agent.plugins)
        binding = BoundAgent(agent, name, self, self.registry, self._models.find, plugins, self._limits, self._setup)
        self._tool_sources.add(binding.sources)
        check_tools_allowed(name, agent.tools, (self.permissions.policy, Policy(agent.rules)), self.tools)
        if agent.current is agent and binding.model is not None:  # a wrong name or a missing key is said now
            self._models.add_missing(binding.model.name, binding.model)
        return binding

    def registry_of(self, agent: str) -> ToolRegistry:
        """The tools that an agent selects from: its own, or those that the app has for all agents."""
        return self.binding(agent).registry if agent in self._agents else self.registry

    def binding(self, name: str) -> BoundAgent:
        """An agent in this app, as a test may have changed it.

        Raises:
            ConfigError: there is no such agent; the text lists those there are.
        """
        return self._agents.binding(name)

    def agent_options(self, name: str, base: TurnOptions) -> TurnOptions:
        """The options of a turn that an agent takes over; what is not the agent's is kept from `base`."""
        return self._agents.options(name, base)

    def drive_setup(self, options: TurnOptions) -> DriveSetup | None:
        """The setup of a turn; None if only a process that knows its agent can drive it."""
        if (agent := self._agents.find_driver(options)) is not None:
            return agent.setup
        return None if options.needs_agent else self._setup

    def modality_of(self, name: str) -> Modality:
        """The type of the model with this name; `chat` for an unknown model, unless its name has a type.

        Raises:
            ConfigError: the name has a type, and no model can be found by it.
        """
        return self._models.modality_of(name)

    async def start(self) -> None:
        """Start driving: unfinished turns continue."""
        async with self._starting:
            if self._has_started:
                return
            if self._models.has_to_load:
                await asyncio.to_thread(self._models.load)
            if (check_encryption := getattr(self.store, "check_encryption", None)) is not None:
                await check_encryption()
            if not self.engine.is_durable:
                await self.store.lock_for_process()
            else:
                with suppress(UnknownSession):
                    await self.store.head("")  # the engine may use the same database, which this creates or upgrades
            await self._tool_sources.open(self._agents.bindings)
            await self.engine.serve(self._driver.drive)
            if not self.engine.is_durable:
                for session in await self._unfinished_sessions():
                    await self.engine.wake(session.id, None if session.is_awake else session.due)
            else:
                self._reconciler = asyncio.get_running_loop().create_task(
                    run_reconciler(self.store, self.engine, self.clock)
                )
            self._start_watchdog()
            self._has_started = True  # only now: a failed start is tried again

    async def _unfinished_sessions(self) -> Sequence[SessionInfo]:
        """The sessions that this process continues when it starts."""
        return await self.store.sessions(awake=True)

    def _start_watchdog(self) -> None:
        """End this process if its event loop is blocked, where the engine wants that: others drive its sessions."""
        timeout = getattr(self.engine, "loop_timeout", 0.0)
        if timeout and self._database and self._watchdog is None:
            self._watchdog = LoopWatchdog(timeout, blocked_drive_recorder(self._database))
            self._watchdog.start()

    @property
    def sources(self) -> Sequence[ToolSource]:
        """The tool sources of the app and its agents."""
        return self._tool_sources.sources

    @property
    def awaits_tools(self) -> bool:
        """Whether there are tools that are only known when their source has published them."""
        return self._tool_sources.awaits_tools

    def find_tool(self, name: str) -> Tool | None:
        """A present tool by its name."""
        return self.tools.get(name)

    def find_gate_tool(self, gate: Gate) -> Tool | None:
        """The tool that a gate is about: agents may have different tools of the same name."""
        registries = [self.registry, *(self.registry_of(name) for name in self._agents)]
        found = [tool for registry in registries if (tool := registry.tools.get(gate.tool)) is not None]
        same = (tool for tool in found if self.permissions.identity(tool.spec) == gate.identity)
        return next(same, found[0] if found else None)

    async def wait_for_tool(self, name: str) -> Tool | None:
        """A tool of a resumed turn, which its source may publish only some time after a start."""
        return await self._tool_sources.wait_for_tool(name, self.registry)

    async def wait_for_source(self, name: str, registry: ToolRegistry) -> Tool | None:
        """The same, of the tools of one agent."""
        return await self._tool_sources.wait_for_tool(name, registry)

    async def command(self, command: AnyCommand) -> Receipt:
        """Admit a command, and wake the driver of its session."""
        if self.is_closing:
            raise ConfigError(CLOSED)
        await self.start()
        self._readers.resume(command.session)  # it is woken below, and tried again
        if self.telemetry is not None and isinstance(command, Send):
            command = self.telemetry.with_caller(command)
        failpoints.hit_failpoint("command.before")
        receipt = await self.store.admit(command)
        failpoints.hit_failpoint("command.admitted")
        self.bus.signal(command.session)
        await self._wake(command.session)
        failpoints.hit_failpoint("command.woken")
        return receipt

    @overload
    def workflow(self, function: Callable[..., Awaitable[Any]]) -> Workflow: ...
    @overload
    def workflow(self, *, name: str) -> Callable[[Callable[..., Awaitable[Any]]], Workflow]: ...
    def workflow(self, function: Callable[..., Awaitable[Any]] | None = None, *, name: str = "") -> Any:
        """Make an async function a workflow, which code starts without a model: `await function.start(…, key=…)`.

        Its first parameter is a `ToolContext`. The other arguments, and what it returns, are JSON. Everything outside
        `ctx.step` may run again. Register the same workflows in every process that drives the store.
        """

        from everturn.models.workflow import WorkflowModel  # only callers with workflows pay for these imports
        from everturn.tools.workflow import WORKFLOWS, Workflow

        def make(function: Callable[..., Awaitable[Any]]) -> Workflow:
            made = Workflow(self, function, name or function.__name__, WORKFLOW_MODEL)
            self.registry.add(made.tool, WORKFLOWS)
            self._models.add_missing(WORKFLOW_MODEL, WorkflowModel())
            return made

        return make if function is None else make(function)

    async def complete(self, token: str, value: object = None, *, hook: str = "", tenant: str | None = None) -> bool:
        """Deliver the result of an external system to the call that waits for it in `ctx.external`.

        Returns False if the same value was delivered before. The token of a `ctx.external(hook=…)` needs the name of that
        `hook`, whose caller has verified a signature; with `tenant`, the call must be that tenant's.

        Raises:
            UnknownCallback: the token is wrong, or the wait is over.
            CallbackConflict: another value was delivered before.
            ConfigError: the value is not JSON.
        """
        return await complete_callback(
            self.store, self.command, token, value, self.clock.now(), hook=hook, tenant=tenant
        )

    async def _wake(self, session: str) -> None:
        try:
            if not self.engine.is_durable:  # it is in this process
                await self.engine.wake(session)
                return
            async with asyncio.timeout(WAKE_TIMEOUT):  # the engine keeps trying by itself
                await self.engine.wake(session)
        except (EngineUnavailable, TimeoutError) as error:
            # The command is durable, which is what a receipt promises; the reconciler wakes the session later.
            reason = str(error) or f"the engine has not accepted the wake within {WAKE_TIMEOUT:g} s; it keeps trying"
            log.warning(
                "session %s could not be woken; the next search for sessions without a driver finds it: %s",
                session,
                reason,
            )

    async def deliver(self, command: AnyCommand) -> None:
        """Admit the command of a turn itself, such as a late result, and try again while the store is unavailable."""
        for pause in LATE_RESULT_RETRY_PAUSES:  # the idempotency key makes a retry harmless
            try:
                await self.command(command)
                return
            except EverturnError as error:
                if not isinstance(error, StoreUnavailable | StoreBusy):
                    log.warning("a late result of %s was rejected: %s", command.session, error)
                    return
                log.warning("a late result of %s waits %g s for the store: %s", command.session, pause, error)
            except Exception:
                log.exception("a late result of %s could not be stored; next attempt in %g s", command.session, pause)
            await asyncio.sleep(pause)
        log.error("a late result of %s is lost: the store did not accept it", command.session)

    @property
    def is_closing(self) -> bool:
        """Whether this runtime is shutting down, or has shut down."""
        return self._readers.is_closing

    async def resume_session(self, session: str) -> bool:
        """Wake a session; False if this process is shutting down."""
        if self.is_closing:
            return False
        self._readers.resume(session)
        await self.start()
        await self._wake(session)
        return True

    def count_readers(self, session: str, turn: str) -> int:
        """The number of readers of a turn in this process."""
        return self._readers.count(session, turn)

    def follow(self, session: str, reader: TurnReader) -> AsyncGenerator[TurnItem, None]:
        """Show a turn from the reader's position until its end."""
        return self._readers.follow(session, reader)

    async def wait_until_carried_out(self, command: AnyCommand, after: int) -> None:
        """Wait until a driver has carried out a command that starts no turn, admitted when the log was at `after`.

        Raises:
            CommandRefused: the command was dropped; nothing was changed.
            DriverLost: this process no longer drives the session.
        """
        await self._readers.wait_until_carried_out(command, after)

    def watch_turns(self, *turns: tuple[str, str]) -> AsyncGenerator[None, None]:
        """Yield once, and again whenever something may have happened to one of these turns, each with its session."""
        return self._readers.watch_turns(*turns)

    async def find_drop_reason(self, session: str, key: str, after: int = 0) -> str | None:
        """Why a command was dropped after position `after`, if it was."""
        return await self._readers.find_drop_reason(session, key, after)

    def call_sync(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of this app from code without an event loop: the app then lives in the background loop."""
        return BACKGROUND.call(work)

    async def forget_session(self, session: str) -> None:
        """Drop a finished session of a store in memory, which nobody can come back to."""
        if self.is_in_memory:
            with suppress(UnknownSession, SessionBusy):
                await self.store.erase(session)

    def explain_not_driven(self, session: str) -> str:
        """Why this process no longer drives a session; "" if it does, or if the reason is unknown."""
        return self._readers.explain_not_driven(session)

    def _announce(self, session: str, state: TurnState, phase: Phase) -> None:
        if self.turn_dependencies and phase.is_terminal:
            self.turn_dependencies.pop(state.id, None)
        if self.listeners:
            notify_listeners(self.listeners, session, state, phase)

    async def serve_until_signal(self, ready: Callable[[], None] | None = None) -> None:
        """Drive until SIGTERM or SIGINT; then finish the running steps and release the sessions."""
        leave, loop = asyncio.Event(), asyncio.get_running_loop()
        signals = (signal.SIGTERM, signal.SIGINT)
        for number in signals:
            loop.add_signal_handler(number, leave.set)
        try:
            await self.start()
            if ready is not None:
                ready()
            await leave.wait()
            await self.drain(DURABLE_DRAIN_TIMEOUT if self.engine.is_durable else DRAIN_TIMEOUT)
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
            await self.aclose()

    async def drain(self, seconds: float) -> None:
        """Release every session at its next step, so that another process continues; wait at most so many seconds."""
        await self.engine.stop_accepting()
        self._driver.release_all()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._driver.idle.wait()

    async def aclose(self) -> None:
        """Stop. Unfinished turns stay in the store, and continue when a process starts on it again."""
        if self.is_closing:
            return
        self._readers.close(CLOSED)
        if self._reconciler is not None:
            self._reconciler.cancel()
        if self._watchdog is not None:
            self._watchdog.stop()
        await self.engine.aclose()
        await self.tool_tasks.aclose()
        await self.limiter.aclose()
        await self._tool_sources.aclose()
        self._readers.notify_all()
        if self.telemetry is not None and self._has_made_telemetry:
            await self.telemetry.finish_reads()
        if self._has_made_bus and (close := getattr(self.bus, "aclose", None)) is not None:
            await close()
        if self._has_made_store:
            await self.store.aclose()
