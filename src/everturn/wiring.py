"""Where everything is joined: ports and adapters below, one runtime above. Nobody else knows both sides."""

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

from everturn import faults
from everturn.bus.memory import MemoryBus
from everturn.clock import RandomIds, SystemClock
from everturn.core.asking import Gate
from everturn.core.commands import AnyCommand
from everturn.core.deltas import DriverGone, Reader, Shown
from everturn.core.events import CommandDropped, Problem
from everturn.core.given import checked_budget, checked_rules
from everturn.core.modality import MODALITIES, Modality, modality_of
from everturn.core.policy import Rule
from everturn.core.ports import Bus, Clock, Engine, Ids, Model, Receipt, Store, Tool, ToolSource
from everturn.core.state import Phase, TurnState
from everturn.engine.inline import InlineEngine
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
from everturn.stores.memory import MemoryStore
from everturn.stores.named import named_store
from everturn.tools.agent import Agent
from everturn.tools.groups import Group
from everturn.tools.registry import Registry
from everturn.turn.beneath import Beneath
from everturn.turn.driver import Driver
from everturn.turn.follow import AGAIN, NUDGE, follow
from everturn.turn.hookup import Hookup
from everturn.turn.log_poll import LogPoll, Watch
from everturn.turn.permit import Permits
from everturn.turn.run import Settings, Setup
from everturn.turn.shaping import Limits
from everturn.turn.supervisor import Supervisor

log = logging.getLogger(__name__)


class Snapshot(Struct, frozen=True):
    """A turn as it enters a phase: sent before the work of that phase starts."""

    session: str
    turn: str
    phase: Phase
    step: int
    open_calls: tuple[str, ...]
    gates: tuple[Gate, ...]
    problem: Problem | None


CLOSED = "this chat is closed; open another one on the same store, and its turns go on"
HOLD = 60.0  # seconds after which a drive lets go between two steps, where another process could go on
DRAIN = 10.0  # seconds a process that is told to leave has to bring its steps to their ends; and
HAND_OVER = 3.0  # where others could go on at once, and newcomers wait for it
WAKING = 2.0  # seconds a command waits for the engine to take note; it is safe already
COMING = 30.0  # seconds a turn waits after a start for a tool it goes on with
SWEEP = 5.0  # seconds between two looks for sessions whose wake was lost; every process takes its own time
FORGOTTEN = 20.0  # seconds after which a session that should be driven counts as forgotten
HAND_IN_PAUSES = (0.2, 1.0, 5.0, 30.0)  # seconds between the tries to hand in a late result

Listener = Callable[[Snapshot], None]


def _model(model: Model | str) -> Model:
    if isinstance(model, str):
        from everturn.models.named import named  # only who asks by name pays for the vendors

        return named(model)
    if inspect.isclass(model) or not hasattr(model, "stream") or not hasattr(model, "name"):
        raise ConfigError(f"{model!r} is not a model; it needs a `name` and an async generator `stream(request)`")
    return model


def _rules(rules: Iterable[Rule] | str | Path) -> list[Rule]:
    if isinstance(rules, str | Path):
        from everturn.permissions.reading import load_rules

        return load_rules(rules)
    return list(checked_rules(rules))


def _settings(settings: Settings | None) -> Settings:
    if settings is None:
        return Settings()
    if not isinstance(settings, Settings):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigError(f"settings are a Settings(...), not a {type(settings).__name__}")
    for name in ("session_budget", "tenant_budget"):
        checked_budget(getattr(settings, name), name)
    period: Any = settings.tenant_period
    if isinstance(period, bool) or not isinstance(period, int | float) or not 0 <= period < inf:
        raise ConfigError(f"tenant_period={period!r}: seconds; 0 is all of the past")
    return settings


def _apart(
    tools: Iterable[Tool | Group | ToolSource] | Registry, sources: Iterable[ToolSource]
) -> tuple[list[Tool | Group] | Registry, list[ToolSource]]:
    """Tools that are there, and where others come from."""
    if isinstance(tools, Registry):
        return tools, list(sources)
    there: list[Tool | Group] = []
    come = list(sources)
    for one in tools:
        if hasattr(one, "open") and hasattr(one, "aclose") and not inspect.isclass(one):
            come.append(cast("ToolSource", one))
        else:
            there.append(cast("Tool | Group", one))
    return there, come


def _check_agents(registry: Registry) -> None:
    """Refuse an agent that names a tool nobody has: it would do its task without. A pattern may be for what is to come."""
    for name, tool in registry.tools.items():
        wanted = tool.asks.tools if isinstance(tool, Agent) else None
        for one in wanted or ():
            if not any(char in "*?[" for char in one) and one not in registry.tools:
                try:
                    registry.check((one,))
                except ConfigError as error:
                    raise ConfigError(f"agent {name!r}: {error}") from None


class Runtime:
    """Sessions that run in this process: commands go in, events come out."""

    def __init__(
        self,
        model: Model | str,
        *,
        tools: Iterable[Tool | Group | ToolSource] | Registry = (),
        sources: Iterable[ToolSource] = (),
        plugins: Iterable[object] = (),
        store: Store | str | None = None,
        bus: Bus | None = None,
        engine: Engine | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        settings: Settings | None = None,
        limits: Limits | None = None,
        rules: Iterable[Rule] | str | Path = (),
    ) -> None:
        self.clock = clock or SystemClock()
        self.ids = ids or RandomIds()
        self._has_made_store = isinstance(store, str)
        self.store = named_store(store) if isinstance(store, str) else store or MemoryStore()
        self.bus = bus or MemoryBus()
        given, self.sources = _apart(tools, sources)
        self.registry = given if isinstance(given, Registry) else Registry(given)
        model = _model(model)
        if not hasattr(self.store, "append"):
            raise ConfigError(f'{store!r} is not a store; for example store="talks.db"')
        if not isinstance(given, Registry):  # one that is given may be filled later
            _check_agents(self.registry)
        settings = _settings(settings)
        self._models: dict[str, Model] = {"": model, model.name: model}
        self.supervisor = Supervisor()
        self.engine = engine or InlineEngine(self.clock, self._lost)
        # First, so that a plugin of the same name takes its place.
        has_tools = bool(given) or bool(self.sources)
        calling, plugins = ToolCalling(self.registry, limits or Limits()), list(plugins)
        self.hooks = Hookup([calling, *plugins] if has_tools else plugins)
        self.listeners: list[Listener] = []
        self.permits = Permits(_rules(rules), *command_readers())
        self._beneath = Beneath(
            self.store, self.clock, self.ids, self.command, self._go_on, self.follow, self._is_closing
        )
        setup = Setup(
            store=self.store,
            bus=self.bus,
            clock=self.clock,
            ids=self.ids,
            model_for=self.model_for,
            hooks=self.hooks,
            supervisor=self.supervisor,
            hand_in=self._hand_in,
            wake=self.engine.wake,
            permits=self.permits,
            client_hooks=None if has_tools else Hookup([calling, *plugins]),
            tool_named=lambda name: self.tools.get(name),
            tool_coming=self._tool_coming,
            sub_turn=self._beneath.run,
            end_below=self._beneath.end,
            admit=self.command,
            settings=settings,
            hold=HOLD if self.engine.is_durable else 0.0,
        )
        self._driver = Driver(setup, self._announce)
        self.log_poll = LogPoll(self.store)
        self._followed: Counter[tuple[str, str]] = Counter()  # (session, turn)
        self._asking: Counter[str] = Counter()
        self._gone: dict[str, str] = {}  # session -> why it is not driven here; "" stands for all of them
        self._starting, self._has_started = asyncio.Lock(), False
        self._sweeping: asyncio.Task[None] | None = None

    @property
    def tools(self) -> Mapping[str, Tool]:
        """All the tools there are now, those of groups that are off included."""
        return self.registry.tools

    def model_for(self, name: str) -> Model:
        """A model by its name; "" is the one the runtime was made with.

        Raises:
            ConfigError: it was never given here, and cannot be found by its name.
        """
        if name not in self._models:
            self._models[name] = _model(name)
        return self._models[name]

    def add_model(self, model: Model | str) -> str:
        """Let turns be answered by another model, and say by which name; one that is known is known by it."""
        if isinstance(model, str) and model in self._models:
            return model
        model = _model(model)
        self._models[model.name] = model
        return model.name

    def modality_of(self, name: str) -> Modality:
        """What a model of this name is for; one that nobody knows here is for chat, unless its name says more.

        Raises:
            ConfigError: its name says what it is for, and it cannot be found by that name.
        """
        try:
            return modality_of(self.model_for(name))
        except ConfigError:
            if name.rpartition("@")[2] in MODALITIES:
                raise
            return "chat"

    async def start(self) -> None:
        """Begin to drive: whatever was left unfinished goes on by itself."""
        async with self._starting:
            if self._has_started:
                return
            if not self.engine.is_durable:
                await self.store.hold()
            await self._open_sources()
            await self.engine.serve(self._driver.drive)
            if not self.engine.is_durable:
                for session in await self.store.sessions(awake=True):
                    await self.engine.wake(session.id, None if session.is_awake else session.due)
            else:
                self._sweeping = asyncio.get_running_loop().create_task(self._sweep())
            self._has_started = True  # only now: a start that failed is tried again

    async def _open_sources(self) -> None:
        """Let tools come that come by themselves. One that cannot be told from another stays away, and that is told."""

        def publish(origin: str, tools: Sequence[Tool]) -> None:
            fit: list[Tool] = []
            with suppress(ConfigError):
                self.registry.replace(origin, tools)
                return
            for tool in tools:  # one that cannot be told from another keeps no other away
                try:
                    self.registry.replace(origin, [*fit, tool])
                    fit.append(tool)
                except ConfigError as error:
                    log.warning("a tool of %s is not offered: %s", origin, error)
            self.registry.replace(origin, fit)

        await asyncio.gather(*(source.open(publish) for source in self.sources))

    async def _tool_coming(self, name: str) -> Tool | None:
        """A tool that a turn goes on with, though it may still be on its way after a start."""
        ends = asyncio.get_running_loop().time() + COMING
        while name not in self.tools and any(source.is_opening for source in self.sources):
            if asyncio.get_running_loop().time() > ends:
                break
            await asyncio.sleep(0.05)
        return self.tools.get(name)

    async def command(self, command: AnyCommand) -> Receipt:
        """Admit a command, and see to it that somebody acts on it."""
        if "" in self._gone:
            raise ConfigError(CLOSED)
        await self.start()
        self._gone.pop(command.session, None)  # it is woken below, and has another chance
        faults.hit("command.before")
        receipt = await self.store.admit(command)
        faults.hit("command.admitted")
        self.bus.signal(command.session)
        await self._wake(command.session)
        faults.hit("command.woken")
        return receipt

    async def _wake(self, session: str) -> None:
        try:
            async with asyncio.timeout(WAKING):  # it goes on trying by itself
                await self.engine.wake(session)
        except (EngineUnavailable, TimeoutError) as error:
            # It is safe, and that is what was promised; whoever looks for what nobody drives finds it.
            log.warning("session %s could not be woken and waits for the next sweep: %s", session, error)

    async def _sweep(self) -> None:
        """Wake what somebody should drive and nobody does: a wake was lost between the store and the engine."""
        while True:
            await asyncio.sleep(SWEEP * random.uniform(0.5, 1.5))
            now = self.clock.now()
            try:
                for session in await self.store.overdue(now - FORGOTTEN, now):
                    log.info("session %s was not driven for %g s; waking it", session, FORGOTTEN)
                    await self.engine.wake(session, is_reminder=True)
            except Exception as error:
                log.warning("looking for sessions nobody drives failed, and is done again: %s", error)

    async def _hand_in(self, command: AnyCommand) -> None:
        for pause in HAND_IN_PAUSES:  # the key makes a second try harmless
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

    def _is_closing(self) -> bool:
        return "" in self._gone

    async def _go_on(self, session: str) -> bool:
        """See to it that a session is driven; False when it is this process that ends."""
        if "" in self._gone:
            return False
        self._gone.pop(session, None)
        await self.start()
        await self._wake(session)
        return True

    def followers(self, session: str, turn: str) -> int:
        """How many follow a turn in this process."""
        return self._followed[session, turn]

    async def follow(self, session: str, reader: Reader) -> AsyncGenerator[Shown, None]:
        """Show a turn from where the reader is, until it is over."""
        at = (session, reader.turn)
        self._followed[at] += 1
        shown = follow(self.store, self.bus, session, reader, lambda: self.why_gone(session))
        watch = self._watch(session, reader.turn, lambda: reader.seq)
        try:
            async for item in shown:
                yield item
        finally:
            watch.close()
            self._followed[at] -= 1
            if not self._followed[at]:
                del self._followed[at]
            await shown.aclose()

    def _watch(self, session: str, channel: str, position: Callable[[], int]) -> Watch:
        """Have whoever reads a channel here look at the log when that has moved on and nobody said so."""
        return self.log_poll.watch(session, position, lambda: self.bus.publish(channel, NUDGE))

    async def acted_on(self, command: AnyCommand, after: int) -> None:
        """Wait until a driver has acted on a command that starts no turn and was admitted when the log was at `after`.

        Raises:
            CommandRefused: it had lost its object by then; nothing was changed.
            DriverLost: nobody drives this session here.
        """
        session, key = command.session, command.key
        tail = self.bus.tail(session)
        self._asking[session] += 1
        watch = self._watch(session, session, lambda: after)
        try:
            while any(waiting.key == key for waiting in await self.store.inbox(session)):
                if why := self.why_gone(session):
                    raise DriverLost(why)
                try:
                    await anext(tail)
                except StopAsyncIteration:  # only the inbox knows
                    await tail.aclose()
                    await asyncio.sleep(AGAIN)
                    tail = self.bus.tail(session)
        finally:
            self._asking[session] -= 1
            self._asking = +self._asking
            watch.close()
            await tail.aclose()
        if (reason := await self.dropped(session, key, after)) is not None:
            raise CommandRefused(reason)

    async def dropped(self, session: str, key: str, after: int = 0) -> str | None:
        """Why a command was dropped, if it was; it is looked for behind `after` only, for a log may be long."""
        for entry in reversed(await self.store.events(session, after)):
            if isinstance(entry.event, CommandDropped) and entry.event.command == key:
                return entry.event.reason
        return None

    def why_gone(self, session: str) -> str:
        """Why a session is not driven here any more; "" when it is, or nobody knows better."""
        return self._gone.get(session) or self._gone.get("", "")

    def _announce(self, session: str, state: TurnState, phase: Phase) -> None:
        if not self.listeners:
            return
        problem = state.ending.problem if state.ending is not None else None
        waiting = tuple(gate for name, gate in state.asked.items() if state.gates[name] is None)
        snapshot = Snapshot(
            session,
            state.id,
            phase,
            state.step.number if state.step is not None else 0,
            tuple(call.id for call in state.open_calls),
            waiting,
            problem,
        )
        for listener in list(self.listeners):
            try:
                listener(snapshot)
            except Exception:
                log.exception("a listener failed; the turn does not mind")

    def _lost(self, session: str, error: BaseException) -> None:
        self._gone[session] = f"session {session} is no longer driven here: {error}"
        self._tell_followers(session, self._gone[session])

    def _tell_followers(self, session: str, text: str) -> None:
        turns = [turn for where, turn in self._followed if where == session]
        for channel in (session, *turns):
            self.bus.publish(channel, (DriverGone(text),))

    async def work(self, ready: Callable[[], None] | None = None) -> None:
        """Drive until SIGTERM or SIGINT; then bring the steps under way to their ends, and let go of the rest."""
        leave, loop = asyncio.Event(), asyncio.get_running_loop()
        told = (signal.SIGTERM, signal.SIGINT)
        for number in told:
            loop.add_signal_handler(number, leave.set)
        try:
            await self.start()
            if ready is not None:
                ready()
            await leave.wait()
            await self.drain(HAND_OVER if self.engine.is_durable else DRAIN)
        finally:
            for number in told:
                loop.remove_signal_handler(number)
            await self.aclose()

    async def drain(self, seconds: float) -> None:
        """Let go of every turn at its next step, so that another process goes on there; wait no longer than that."""
        await self.engine.leave()
        self._driver.leave()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._driver.idle.wait()

    async def aclose(self) -> None:
        """Stop. What is unfinished stays in the store, and goes on when somebody starts there again."""
        if CLOSED in self._gone.values():
            return
        self._gone[""] = CLOSED
        self.log_poll.close()
        if self._sweeping is not None:
            self._sweeping.cancel()
        await self.engine.aclose()
        await self.supervisor.aclose()
        await asyncio.gather(*(source.aclose() for source in self.sources), return_exceptions=True)
        for session in {*(where for where, _ in self._followed), *self._asking}:
            self._tell_followers(session, CLOSED)
        if self._has_made_store:
            await self.store.aclose()
