"""Runtime: the composition root. It connects the ports to their adapters; no other module knows both."""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
import signal
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from everturn import failpoints
from everturn.bus.memory import MemoryBus
from everturn.bus.registry import get_bus
from everturn.calls.output import OutputLimits
from everturn.calls.subagent_runner import SubagentRunner
from everturn.clock import RandomIds, SystemClock
from everturn.core.commands import AnyCommand
from everturn.core.deltas import DriverGone, TurnItem, TurnReader
from everturn.core.events import CommandDropped, Problem
from everturn.core.gates import Gate
from everturn.core.modality import MODALITIES, Modality, modality_of
from everturn.core.ports import Bus, Clock, Engine, IdSource, Model, Tool, ToolSource
from everturn.core.rules.policy import Rule
from everturn.core.state import Phase, TurnState
from everturn.core.store_ports import Receipt, TurnStore
from everturn.core.validate import validate_budget, validate_rules
from everturn.driver.driver import Driver
from everturn.engine.inline import InlineEngine
from everturn.engine.registry import get_engine
from everturn.errors import (
    CommandRefused,
    ConfigError,
    DriverLost,
    EngineUnavailable,
    EverturnError,
    StoreBusy,
    StoreUnavailable,
)
from everturn.permissions import command_readers
from everturn.plugins.tool_calling import ToolCalling
from everturn.running.active_turn import DriveSetup, TurnSettings
from everturn.running.follow import NUDGE_FRAMES, RESUBSCRIBE_PAUSE, follow_turn
from everturn.running.log_poll import LogPoll, LogReader
from everturn.running.permissions import Permissions
from everturn.running.plugin_table import PluginTable
from everturn.running.tool_tasks import ToolTasks
from everturn.stores.memory import MemoryStore
from everturn.stores.partial import complete_store
from everturn.stores.registry import get_store
from everturn.tools.agent import Agent
from everturn.tools.groups import ToolGroup
from everturn.tools.registry import ToolRegistry

log = logging.getLogger(__name__)


class TurnStatus(Struct, frozen=True):
    """The status of a turn as it enters a phase: sent before the work of that phase starts."""

    session: str
    turn: str
    phase: Phase
    step: int
    open_calls: tuple[str, ...]
    gates: tuple[Gate, ...]
    problem: Problem | None


CLOSED = "this chat is closed; open another one on the same store, and its turns go on"
DRIVE_SECONDS = (
    60.0  # seconds after which a drive releases its session between two steps, if another process could continue
)
DRAIN_TIMEOUT = 10.0  # seconds for a stopping process to finish its running steps
DURABLE_DRAIN_TIMEOUT = 3.0  # the same if other processes can continue at once, and new work waits for it
WAKE_TIMEOUT = 2.0  # seconds a command waits for the engine; it is durable already
TOOL_WAIT_TIMEOUT = 30.0  # seconds a resumed turn waits after a start for its tool
RECONCILE_INTERVAL = 5.0  # seconds between two runs of the reconciler for lost wakes; with jitter in each process
RECONCILE_AFTER = 20.0  # seconds without a driver after which the reconciler wakes a session
LATE_RESULT_RETRY_PAUSES = (0.2, 1.0, 5.0, 30.0)  # seconds between attempts to deliver a late result

StatusListener = Callable[[TurnStatus], None]


def _as_model(model: Model | str) -> Model:
    if isinstance(model, str):
        from everturn.models.registry import get_model  # only callers with a name pay for the import of the vendors

        return get_model(model)
    if inspect.isclass(model) or not hasattr(model, "stream") or not hasattr(model, "name"):
        raise ConfigError(f"{model!r} is not a model; it needs a `name` and an async generator `stream(request)`")
    return model


def _as_rules(rules: Iterable[Rule] | str | Path) -> list[Rule]:
    if isinstance(rules, str | Path):
        from everturn.permissions.rules_file import load_rules

        return load_rules(rules)
    return list(validate_rules(rules))


def _settings(settings: TurnSettings | None) -> TurnSettings:
    if settings is None:
        return TurnSettings()
    if not isinstance(settings, TurnSettings):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"settings are a Settings(...), not a {type(settings).__name__}")
    for name in ("session_budget", "tenant_budget"):
        validate_budget(getattr(settings, name), name)
    period: Any = settings.tenant_period
    if isinstance(period, bool) or not isinstance(period, int | float) or not 0 <= period < inf:
        raise ConfigError(f"tenant_period={period!r}: seconds; 0 is all of the past")
    return settings


def _split_sources(
    tools: Iterable[Tool | ToolGroup | ToolSource] | ToolRegistry, sources: Iterable[ToolSource]
) -> tuple[list[Tool | ToolGroup] | ToolRegistry, list[ToolSource]]:
    """Split tools into tools and tool sources."""
    if isinstance(tools, ToolRegistry):
        return tools, list(sources)
    plain_tools: list[Tool | ToolGroup] = []
    tool_sources = list(sources)
    for tool in tools:
        if hasattr(tool, "open") and hasattr(tool, "aclose") and not inspect.isclass(tool):
            tool_sources.append(cast("ToolSource", tool))
        else:
            plain_tools.append(cast("Tool | ToolGroup", tool))
    return plain_tools, tool_sources


def _check_agents(registry: ToolRegistry) -> None:
    """Refuse an agent that names an unknown tool: it would run without it. A pattern may be for tools added later."""
    for name, tool in registry.tools.items():
        selection = tool.request.tools if isinstance(tool, Agent) else None
        for pattern in selection or ():
            if not any(char in "*?[" for char in pattern) and pattern not in registry.tools:
                try:
                    registry.check_selection((pattern,))
                except ConfigError as error:
                    raise ConfigError(f"agent {name!r}: {error}") from None


class Runtime:
    """Runs sessions in this process: it takes commands and shows events."""

    def __init__(
        self,
        model: Model | str,
        *,
        tools: Iterable[Tool | ToolGroup | ToolSource] | ToolRegistry = (),
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
    ) -> None:
        self.clock = clock or SystemClock()
        self.ids = ids or RandomIds()
        self._has_made_store = isinstance(store, str)
        self.store = get_store(store) if isinstance(store, str) else complete_store(store or MemoryStore())
        self.bus = get_bus(bus) if isinstance(bus, str) else bus or MemoryBus()
        given, self.sources = _split_sources(tools, sources)
        self.registry = given if isinstance(given, ToolRegistry) else ToolRegistry(given)
        model = _as_model(model)
        if not isinstance(given, ToolRegistry):  # a registry that the caller passes may be filled later
            _check_agents(self.registry)
        settings = _settings(settings)
        self._models: dict[str, Model] = {"": model, model.name: model}
        self.tool_tasks = ToolTasks()
        self.engine = get_engine(engine) if isinstance(engine, str) else engine or InlineEngine(self.clock, self._lost)
        # First, so that a plugin of the same name replaces it.
        has_tools = bool(given) or bool(self.sources)
        calling, plugins = ToolCalling(self.registry, limits or OutputLimits()), list(plugins)
        self.hooks = PluginTable([calling, *plugins] if has_tools else plugins)
        self.listeners: list[StatusListener] = []
        self.permissions = Permissions(_as_rules(rules), *command_readers())
        setup = DriveSetup(
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            ids=self.ids,
            engine=self.engine,
            runtime=self,
            subagents=SubagentRunner(self.store, self.clock, self.ids, self),
            hooks=self.hooks,
            tool_tasks=self.tool_tasks,
            permissions=self.permissions,
            client_hooks=None if has_tools else PluginTable([calling, *plugins]),
            settings=settings,
            max_drive_seconds=DRIVE_SECONDS if self.engine.is_durable else 0.0,
        )
        self._driver = Driver(setup, self._announce)
        self.log_poll = LogPoll(self.store)
        self._followed: Counter[tuple[str, str]] = Counter()  # (session, turn)
        self._asking: Counter[str] = Counter()
        self._gone: dict[str, str] = {}  # session -> why it is not driven here; "" is for all sessions
        self._starting, self._has_started = asyncio.Lock(), False
        self._reconciler: asyncio.Task[None] | None = None

    @property
    def tools(self) -> Mapping[str, Tool]:
        """All present tools, including those of groups that are off."""
        return self.registry.tools

    def model_for(self, name: str) -> Model:
        """A model by its name; "" is the runtime's default model.

        Raises:
            ConfigError: the model was not added, and cannot be found by its name.
        """
        if name not in self._models:
            self._models[name] = _as_model(name)
        return self._models[name]

    def add_model(self, model: Model | str) -> str:
        """Add a model for turns, and return its name; the name of a known model is returned as it is."""
        if isinstance(model, str) and model in self._models:
            return model
        model = _as_model(model)
        self._models[model.name] = model
        return model.name

    def modality_of(self, name: str) -> Modality:
        """The type of the model with this name; `chat` for an unknown model, unless its name has a type.

        Raises:
            ConfigError: the name has a type, and no model can be found by it.
        """
        try:
            return modality_of(self.model_for(name))
        except ConfigError:
            if name.rpartition("@")[2] in MODALITIES:
                raise
            return "chat"

    async def start(self) -> None:
        """Start driving: unfinished turns continue."""
        async with self._starting:
            if self._has_started:
                return
            if not self.engine.is_durable:
                await self.store.lock_for_process()
            await self._open_sources()
            await self.engine.serve(self._driver.drive)
            if not self.engine.is_durable:
                for session in await self.store.sessions(awake=True):
                    await self.engine.wake(session.id, None if session.is_awake else session.due)
            else:
                self._reconciler = asyncio.get_running_loop().create_task(self._reconcile())
            self._has_started = True  # only now: a failed start is tried again

    async def _open_sources(self) -> None:
        """Open the tool sources. A tool whose name is taken is not offered, and a warning is logged."""

        def publish(origin: str, tools: Sequence[Tool]) -> None:
            accepted: list[Tool] = []
            with suppress(ConfigError):
                self.registry.replace(origin, tools)
                return
            for tool in tools:  # a tool with a conflicting name must not exclude the others
                try:
                    self.registry.replace(origin, [*accepted, tool])
                    accepted.append(tool)
                except ConfigError as error:
                    log.warning("a tool of %s is not offered: %s", origin, error)
            self.registry.replace(origin, accepted)

        await asyncio.gather(*(source.open(publish) for source in self.sources))

    def find_tool(self, name: str) -> Tool | None:
        """A present tool by its name."""
        return self.tools.get(name)

    async def wait_for_tool(self, name: str) -> Tool | None:
        """A tool of a resumed turn, which its source may publish only some time after a start."""
        deadline = asyncio.get_running_loop().time() + TOOL_WAIT_TIMEOUT
        while name not in self.tools and any(source.is_opening for source in self.sources):
            if asyncio.get_running_loop().time() > deadline:
                break
            await asyncio.sleep(0.05)
        return self.tools.get(name)

    async def command(self, command: AnyCommand) -> Receipt:
        """Admit a command, and wake the driver of its session."""
        if self.is_closing:
            raise ConfigError(CLOSED)
        await self.start()
        self._gone.pop(command.session, None)  # it is woken below, and tried again
        failpoints.hit_failpoint("command.before")
        receipt = await self.store.admit(command)
        failpoints.hit_failpoint("command.admitted")
        self.bus.signal(command.session)
        await self._wake(command.session)
        failpoints.hit_failpoint("command.woken")
        return receipt

    async def _wake(self, session: str) -> None:
        try:
            async with asyncio.timeout(WAKE_TIMEOUT):  # the engine keeps trying by itself
                await self.engine.wake(session)
        except (EngineUnavailable, TimeoutError) as error:
            # The command is durable, which is what a receipt promises; the reconciler wakes the session later.
            log.warning("session %s could not be woken and waits for the next sweep: %s", session, error)

    async def _reconcile(self) -> None:
        """Reconciler: wakes sessions that should be driven and are not, because a wake was lost on the way to the
        engine.
        """
        while True:
            await asyncio.sleep(RECONCILE_INTERVAL * random.uniform(0.5, 1.5))
            now = self.clock.now()
            try:
                for session in await self.store.overdue(now - RECONCILE_AFTER, now):
                    log.info("session %s was not driven for %g s; waking it", session, RECONCILE_AFTER)
                    await self.engine.wake(session, is_reminder=True)
            except Exception as error:
                log.warning("looking for sessions nobody drives failed, and is done again: %s", error)

    async def deliver(self, command: AnyCommand) -> None:
        """Admit the command of a turn itself, such as a late result, and try again while the store is unavailable."""
        for pause in LATE_RESULT_RETRY_PAUSES:  # the idempotency key makes a retry harmless
            try:
                await self.command(command)
                return
            except EverturnError as error:
                if not isinstance(error, StoreUnavailable | StoreBusy):
                    log.warning("a late result of %s was not taken: %s", command.session, error)
                    return
                log.warning("a late result of %s waits %g s for the store: %s", command.session, pause, error)
            except Exception:
                log.exception("a late result of %s could not be handed in; next try in %g s", command.session, pause)
            await asyncio.sleep(pause)
        log.error("a late result of %s is lost: the store did not take it", command.session)

    @property
    def is_closing(self) -> bool:
        """Whether this runtime is shutting down, or has shut down."""
        return "" in self._gone

    async def resume_session(self, session: str) -> bool:
        """Wake a session; False if this process is shutting down."""
        if self.is_closing:
            return False
        self._gone.pop(session, None)
        await self.start()
        await self._wake(session)
        return True

    def count_readers(self, session: str, turn: str) -> int:
        """The number of readers of a turn in this process."""
        return self._followed[session, turn]

    async def follow(self, session: str, reader: TurnReader) -> AsyncGenerator[TurnItem, None]:
        """Show a turn from the reader's position until its end."""
        key = (session, reader.turn)
        self._followed[key] += 1
        shown = follow_turn(self.store, self.bus, session, reader, lambda: self.explain_not_driven(session))
        watch = self._watch(session, reader.turn, lambda: reader.seq)
        try:
            async for item in shown:
                yield item
        finally:
            watch.close()
            self._followed[key] -= 1
            if not self._followed[key]:
                del self._followed[key]
            await shown.aclose()

    def _watch(self, session: str, channel: str, position: Callable[[], int]) -> LogReader:
        """Make the readers of a channel in this process check the log, if it has grown without a notification."""
        return self.log_poll.watch(session, position, lambda: self.bus.publish(channel, NUDGE_FRAMES))

    async def wait_until_carried_out(self, command: AnyCommand, after: int) -> None:
        """Wait until a driver has carried out a command that starts no turn, admitted when the log was at `after`.

        Raises:
            CommandRefused: the command was dropped; nothing was changed.
            DriverLost: this process no longer drives the session.
        """
        session, key = command.session, command.key
        tail = self.bus.tail(session)
        self._asking[session] += 1
        watch = self._watch(session, session, lambda: after)
        try:
            while any(waiting.key == key for waiting in await self.store.inbox(session)):
                if why := self.explain_not_driven(session):
                    raise DriverLost(why)
                try:
                    await anext(tail)
                except StopAsyncIteration:  # only the inbox decides
                    await tail.aclose()
                    await asyncio.sleep(RESUBSCRIBE_PAUSE)
                    tail = self.bus.tail(session)
        finally:
            self._asking[session] -= 1
            self._asking = +self._asking
            watch.close()
            await tail.aclose()
        if (reason := await self.find_drop_reason(session, key, after)) is not None:
            raise CommandRefused(reason)

    async def find_drop_reason(self, session: str, key: str, after: int = 0) -> str | None:
        """Why a command was dropped, if it was; only the log after `after` is searched, as a log may be long."""
        for entry in reversed(await self.store.events(session, after)):
            if isinstance(entry.event, CommandDropped) and entry.event.command == key:
                return entry.event.reason
        return None

    def explain_not_driven(self, session: str) -> str:
        """Why this process no longer drives a session; "" if it does, or if the reason is unknown."""
        return self._gone.get(session) or self._gone.get("", "")

    def _announce(self, session: str, state: TurnState, phase: Phase) -> None:
        if not self.listeners:
            return
        problem = state.ending.problem if state.ending is not None else None
        open_gates = tuple(gate for name, gate in state.gate_details.items() if state.gates[name] is None)
        status = TurnStatus(
            session,
            state.id,
            phase,
            state.step.number if state.step is not None else 0,
            tuple(call.id for call in state.open_calls),
            open_gates,
            problem,
        )
        for listener in list(self.listeners):
            try:
                listener(status)
            except Exception:
                log.exception("a listener failed; the turn does not mind")

    def _lost(self, session: str, error: BaseException) -> None:
        self._gone[session] = f"session {session} is no longer driven here: {error}"
        self._tell_followers(session, self._gone[session])

    def _tell_followers(self, session: str, text: str) -> None:
        turns = [turn for where, turn in self._followed if where == session]
        for channel in (session, *turns):
            self.bus.publish(channel, (DriverGone(text),))

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
        if CLOSED in self._gone.values():
            return
        self._gone[""] = CLOSED
        self.log_poll.close()
        if self._reconciler is not None:
            self._reconciler.cancel()
        await self.engine.aclose()
        await self.tool_tasks.aclose()
        await asyncio.gather(*(source.aclose() for source in self.sources), return_exceptions=True)
        for session in {*(where for where, _ in self._followed), *self._asking}:
            self._tell_followers(session, CLOSED)
        if self._has_made_store:
            await self.store.aclose()
