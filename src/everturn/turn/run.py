"""What a process holds of a turn while it drives it, and what it was set up with. Lost with the process, and not missed:
everything that matters is in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from everturn import faults
from everturn.core.canonical import clean
from everturn.core.commands import AnyCommand, Cancel, Send
from everturn.core.deltas import CallProgress
from everturn.core.events import Append, Event, LateArrived, MessageAdded, Problem
from everturn.core.history import unanswered_turns
from everturn.core.hooks import Cleanup
from everturn.core.messages import Message
from everturn.core.options import Budget, TurnOptions
from everturn.core.parts import Output, StreamedPart, ToolPart, Usage
from everturn.core.policy import Rule
from everturn.core.ports import Bus, Clock, Ids, Model, Store, SubAnswer, Tool
from everturn.core.requests import REQUEST_MESSAGE_FIELDS, RequestMessage
from everturn.core.state import TurnState, fold
from everturn.errors import ConfigError, HookError, TurnClosed, TurnError, UnknownSession
from everturn.turn.bell import Bell
from everturn.turn.hookup import Hook, Hookup, call
from everturn.turn.ledger import Ledger
from everturn.turn.permit import Permits
from everturn.turn.supervisor import Supervisor

log = logging.getLogger(__name__)


END_GRACE = 1.0  # seconds a plugin has for its last word in a turn that was cancelled, or is let go
LAST_WORDS = 30.0  # the same for a turn that ended by itself


class Prompt(Struct, frozen=True):
    """The system prompt, in the order in which it is written. `header` never changes, for the provider's cache."""

    header: str = ""
    agent: str = ""
    workspace: str = ""
    custom: str = ""
    privacy: str = ""
    timezone: str = "UTC"


class Settings(Struct, frozen=True):
    """How turns are run here; one frozen value, so that nothing changes under a turn."""

    prompt: Prompt = Prompt()
    layers: tuple[Mapping[str, Any], ...] = ()  # options: provider < model < agent < variant; the turn's come last
    request_message_fields: frozenset[str] = REQUEST_MESSAGE_FIELDS
    first_chunk_timeout: float = 300.0
    idle_timeout: float = 120.0
    step_timeout: float = 3600.0  # however much it says: a model that never ends is ended
    session_budget: Budget = Budget()
    tenant_budget: Budget = Budget()
    tenant_period: float = 0.0  # seconds that count of a tenant's past; 0: all of it
    # The same two for a tenant by its id, where they are not all alike.
    budget_of: Callable[[str], tuple[Budget, float]] | None = None

    def of_tenant(self, tenant: str) -> tuple[Budget, float]:
        """What all turns of a tenant together may use, and the seconds of its past that count for that; 0: all."""
        return (self.tenant_budget, self.tenant_period) if self.budget_of is None else self.budget_of(tenant)


class Asked(Struct, frozen=True):
    """A turn that a tool asks for: where it is run, and the key that makes a second try harmless."""

    session: str
    turn: str
    key: str
    tenant: str
    options: TurnOptions
    prompt: str


class SubTurns(Protocol):
    """Who runs turns that tools ask for."""

    async def __call__(self, asked: Asked, can_leave: bool, is_wanted: Callable[[], bool]) -> SubAnswer | None:
        """Run one in a session of its own, once, and wait until it is over; or (None) until it waits for a person."""
        ...


class Setup(Struct, frozen=True):
    """The parts a turn is driven with, as the wiring joined them."""

    store: Store
    bus: Bus
    clock: Clock
    ids: Ids
    model_for: Callable[[str], Model]
    hooks: Hookup
    supervisor: Supervisor
    hand_in: Callable[[AnyCommand], Awaitable[None]]
    wake: Callable[[str, float | None], Awaitable[None]]
    permits: Permits
    tool_named: Callable[[str], Tool | None]
    tool_coming: Callable[[str], Awaitable[Tool | None]]
    sub_turn: SubTurns
    end_below: Callable[[Asked], Awaitable[None]]
    admit: Callable[[AnyCommand], Awaitable[object]]
    settings: Settings = Settings()
    client_hooks: Hookup | None = None  # for turns with tools of a client, where there are no others
    hold: float = 0.0  # seconds after which a drive lets go between two steps, so that another may go on; 0: never


class Partial(Protocol):
    """A step as far as it has arrived."""

    usage: Usage

    def parts(self) -> tuple[StreamedPart, ...]:
        """Its parts so far."""
        ...


class Run:
    """One turn in one process, from when it takes the turn until it lets go."""

    def __init__(self, setup: Setup, ledger: Ledger, state: TurnState) -> None:
        self.setup, self.ledger, self.state = setup, ledger, state
        self.turn, self.session = state.id, ledger.session
        self.cleanups: list[tuple[str, Cleanup]] = []
        self.history: list[Message] | None = None
        self.system: list[str] | None = None  # the same for every step of a turn, as are
        self.rendered: list[RequestMessage] = []  # the messages before it
        self.shown: dict[str, tuple[list[RequestMessage], int]] = {}  # own message -> as rendered, parts it had then
        self.files: dict[str, bytes] = {}  # blobs of messages
        self.memo: dict[str, Any] = {}  # the model's own
        self.steers: dict[str, Send] = {}  # messages that are to join, by the keys of their commands
        self.late: dict[str, LateArrived] | None = None  # arrived meanwhile; None: the history was not looked at yet
        self.assembly: Partial | None = None  # the step that is being streamed
        self.cancel_request: Cancel | None = None
        self.overrun: Problem | None = None  # it has had its time
        self.is_leaving = False  # this process lets go before the next step
        self.patience: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._grace = 0.0
        self.is_closed = False
        self.arrived = 0  # how much has come from outside; a pending hook that saw less is called again
        self.news = Bell()  # rung when something came, or a hook is done
        self.stirs = Bell()  # rung when something came, or a tool is done
        self.work: asyncio.Task[None] | None = None
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        """The model this turn was promised, or the one everybody has."""
        if self._model is None:
            try:
                self._model = self.setup.model_for(self.state.options.model)
            except ConfigError as error:  # another process promised it, and here it cannot be had
                raise TurnError(str(error), kind="config") from error
        return self._model

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn is being cancelled; every error from now on is that cancellation."""
        return self.cancel_request is not None

    async def grants(self) -> list[Rule]:
        """What people have allowed from now on, where this turn runs."""
        above = self.state.options.above
        home = above.session if above is not None else self.session
        try:
            found = await self.setup.store.grants(home, self.now())
        except UnknownSession:  # the session at the top was erased
            return []
        return self.setup.permits.granted(found, self.setup.tool_named, self.state.options.by)

    async def read_history(self) -> list[Message]:
        """The branch as it was before this turn: read once per hold, for nothing above a turn changes while it runs.

        What a plugin has blocked is not in it: the messages of a turn that a hook ended before its first request.
        """
        if self.history is None:
            store = self.setup.store
            path = await store.path(self.session, self.state.parent)
            blocked: set[str] = set()
            for turn in unanswered_turns(path, self.state.input is None):
                log = await store.events(self.session, turn=turn)
                if log and fold(entry.event for entry in log).is_blocked:
                    blocked.add(turn)
            self.history = [message for message in path if message.turn not in blocked] if blocked else path
        return self.history

    async def outputs(self) -> dict[str, Output]:
        """The results of the calls on this branch that a model has been told of, by call."""
        return {
            part.call: part.output
            for message in (*await self.read_history(), *self.state.messages.values())
            for part in message.parts
            if type(part) is ToolPart and part.output is not None
        }

    async def taint(self) -> tuple[bool, bool]:
        """Whether this conversation has read what strangers wrote, and what is private."""
        state, above = self.state, self.state.options.above
        untrusted = state.has_untrusted or (above is not None and above.untrusted)
        private = state.has_private or (above is not None and above.private)
        if not (untrusted and private):
            parts = (part for message in await self.read_history() for part in message.parts if type(part) is ToolPart)
            before = [output for part in parts for output in (part.output, part.late) if output is not None]
            untrusted = untrusted or any(output.untrusted for output in before)
            private = private or any(output.private or output.sensitive for output in before)
        return untrusted, private

    def now(self) -> float:
        """The time, from the port."""
        return self.setup.clock.now()

    async def commit(self, make: Callable[[], Sequence[Event]] | Sequence[Event]) -> int:
        """Write events of this turn, unless it has been let go."""
        if self.is_closed:
            raise TurnClosed(f"turn {self.turn} is over; a hook kept its context too long")
        return await self.ledger.commit(make)

    def stage(
        self, make: Callable[[], Sequence[Event]] | Sequence[Event], then: Callable[[], None] | None = None
    ) -> None:
        """Let events of this turn have happened; they are written with the next commit, which follows at once."""
        if self.is_closed:
            raise TurnClosed(f"turn {self.turn} is over; a hook kept its context too long")
        self.ledger.stage(make, then)

    def arrive(self) -> None:
        """Something for this turn has come from outside."""
        self.arrived += 1
        self.news.ring()
        self.stirs.ring()

    def cancel(self, request: Cancel) -> None:
        """Stop the work under way; the turn itself ends in good order."""
        self.cancel_request = request
        if self.work is not None:
            self.work.cancel()
            asyncio.get_running_loop().call_later(self._grace, self.lose_patience)

    def stop(self, problem: Problem) -> None:
        """Stop the work under way because the turn has had its time; the turn itself ends in good order."""
        self.overrun = problem
        if self.work is not None:
            self.work.cancel()
            asyncio.get_running_loop().call_later(self._grace, self.lose_patience)

    def begin(self, work: asyncio.Task[None], grace: float) -> None:
        """Remember what a cancel has to stop, and how long that may take."""
        self.work, self._grace = work, grace
        if self.cancel_request is not None:
            self.cancel(self.cancel_request)
        elif self.overrun is not None:
            self.stop(self.overrun)

    def lose_patience(self) -> None:
        """Wait for the work no longer: it has ended, or does not care that it was cancelled."""
        if not self.patience.done():
            self.patience.set_result(None)

    async def call_hooks(self, hook: str, *args: object) -> None:
        """Call a hook of every plugin that has it, in order; the first failure is the turn's."""
        for plugin, method in self.setup.hooks[hook]:
            await self.call_hook(plugin, hook, method, *args)

    async def call_hook(self, plugin: str, hook: str, method: Hook, *args: object) -> Any:
        """Call one hook, and say whose it was if it fails."""
        if faults.is_on():
            faults.hit(f"hook.{hook}")
        try:
            return await call(method, *args)
        except Exception as error:
            raise HookError(clean(f"{plugin}.{hook} failed: {error!r}"), kind="hook") from error

    async def report_hooks(self, hook: str, *args: object) -> list[Problem]:
        """Call a hook of every plugin; failures are reported and stop nothing."""
        reports: list[Problem] = []
        for plugin, method in self.setup.hooks[hook]:
            try:
                await self._bounded(call(method, *args))
            except Exception as error:
                reports.append(report(plugin, hook, error))
        return reports

    async def clean_up(self) -> list[Problem]:
        """Run the clean-ups, last in first out, each even if another failed."""
        reports: list[Problem] = []
        while self.cleanups:
            plugin, cleanup = self.cleanups.pop()
            try:
                await self._bounded(call(cleanup))
            except Exception as error:
                reports.append(report(plugin, "clean-up", error, kind="clean-up"))
        return reports

    async def _bounded(self, work: Coroutine[Any, Any, Any]) -> None:
        """Wait for what a plugin does at the end: a while if the turn ended by itself, otherwise only a moment."""
        ending = self.state.ending
        limit = END_GRACE if ending is None or ending.outcome == "cancelled" else LAST_WORDS
        task = asyncio.get_running_loop().create_task(work)
        await asyncio.wait({task}, timeout=limit)
        if not task.done():
            task.cancel()
            task.add_done_callback(lambda left: left.cancelled() or left.exception())
            raise TimeoutError(f"it did not end within {limit:g} s and was left behind")
        task.result()

    async def join(self, append: Append, change: Callable[[Message], Awaitable[Message]]) -> None:
        """Let a plugin's message join the tree, once however often it is appended."""
        if append.message.id in self.state.messages:
            return
        message = await change(append.message)

        def events() -> list[Event]:
            if message.id in self.state.messages:
                return []
            placed = replace(message, parent=self.state.tip)
            return [MessageAdded(turn=self.turn, at=self.now(), message=placed, request=append.request)]

        await self.commit(events)

    def progress(self, call: str, text: str) -> None:
        """Show what a tool says of itself."""
        self.setup.bus.publish(self.turn, (CallProgress(self.turn, call, text),))


def report(plugin: str, hook: str, error: BaseException, kind: str = "hook") -> Problem:
    """A failure that stops nothing: written into the turn's last event, and into the process's log."""
    log.error("%s.%s failed", plugin, hook, exc_info=error)
    return Problem(kind, clean(f"{plugin}.{hook} failed: {error!r}"))
