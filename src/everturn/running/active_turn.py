"""The active turn: the in-memory state of one turn while this process drives it, and the settings and ports it uses.

The state is lost with the process; everything that must survive is in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from everturn import failpoints
from everturn.core.canonical_json import replace_surrogates
from everturn.core.commands import AnyCommand, Cancel, Send
from everturn.core.deltas import CallProgress
from everturn.core.events import DeferredMessage, Event, LateResultReceived, MessageAdded, Problem
from everturn.core.history import unanswered_turns
from everturn.core.hooks import Cleanup
from everturn.core.messages import Message
from everturn.core.options import Budget, TurnOptions
from everturn.core.parts import Output, StreamedPart, ToolPart, Usage
from everturn.core.ports import Bus, Clock, Engine, IdSource, Model, SubagentResult, Tool
from everturn.core.requests import REQUEST_MESSAGE_FIELDS, RequestMessage
from everturn.core.rules.policy import Rule
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, HookError, TurnClosed, TurnError, UnknownSession
from everturn.running.ledger import Ledger
from everturn.running.notifier import Notifier
from everturn.running.permissions import Permissions
from everturn.running.plugin_table import Hook, PluginTable, invoke_hook
from everturn.running.tool_tasks import ToolTasks

log = logging.getLogger(__name__)


CANCELLED_END_HOOK_TIMEOUT = (
    1.0  # seconds for each end hook of a turn that was cancelled, or that this process releases
)
END_HOOK_TIMEOUT = 30.0  # the same for a turn that completed or failed


class Prompt(Struct, frozen=True):
    """The system prompt, in the order in which it is written. `header` never changes, for the provider's cache."""

    header: str = ""
    agent: str = ""
    workspace: str = ""
    custom: str = ""
    privacy: str = ""
    timezone: str = "UTC"


class TurnSettings(Struct, frozen=True):
    """Settings for all turns of a runtime; one frozen value, so that nothing changes during a turn."""

    prompt: Prompt = Prompt()
    layers: tuple[Mapping[str, Any], ...] = ()  # options: provider < model < agent < variant; the turn's come last
    request_message_fields: frozenset[str] = REQUEST_MESSAGE_FIELDS
    first_chunk_timeout: float = 300.0
    idle_timeout: float = 120.0
    step_timeout: float = 3600.0  # in total: a stream that never ends is stopped
    session_budget: Budget = Budget()
    tenant_budget: Budget = Budget()
    tenant_period: float = 0.0  # seconds of a tenant's past that count; 0: all of it
    # The same two by tenant id, if tenants differ.
    budget_of: Callable[[str], tuple[Budget, float]] | None = None

    def tenant_limits(self, tenant: str) -> tuple[Budget, float]:
        """The budget of a tenant, and the seconds of its past that count towards it; 0: all."""
        return (self.tenant_budget, self.tenant_period) if self.budget_of is None else self.budget_of(tenant)


class SubagentRun(Struct, frozen=True):
    """A sub-agent run: its session, turn and options, and the idempotency key that makes a retry harmless."""

    session: str
    turn: str
    key: str
    tenant: str
    options: TurnOptions
    prompt: str


class SubagentPort(Protocol):
    """Runs sub-agents for tools."""

    async def run(self, asked: SubagentRun, can_leave: bool, is_wanted: Callable[[], bool]) -> SubagentResult | None:
        """Run a sub-agent in a session of its own, once, and wait for its end; None if it waits for a person."""
        ...

    async def cancel(self, asked: SubagentRun) -> None:
        """Cancel a run whose tool is stopped."""
        ...


class RuntimePort(Protocol):
    """The runtime, as its turns see it: models and tools by name, and a way for their own commands."""

    def model_for(self, name: str) -> Model:
        """A model by its name; "" is the default model.

        Raises:
            ConfigError: there is no such model.
        """
        ...

    def find_tool(self, name: str) -> Tool | None:
        """A present tool by its name."""
        ...

    async def wait_for_tool(self, name: str) -> Tool | None:
        """A tool by its name; after a start, wait a while for the source that publishes it."""
        ...

    async def command(self, command: AnyCommand) -> object:
        """Admit a command, and wake the driver of its session."""
        ...

    async def deliver(self, command: AnyCommand) -> None:
        """Admit a command, and try again while the store is unavailable."""
        ...


class DriveSetup(Struct, frozen=True):
    """The ports, services and settings that turns are driven with, as `Runtime` assembled them."""

    store: Store
    bus: Bus
    clock: Clock
    ids: IdSource
    engine: Engine
    runtime: RuntimePort
    subagents: SubagentPort
    hooks: PluginTable
    tool_tasks: ToolTasks
    permissions: Permissions
    settings: TurnSettings = TurnSettings()
    client_hooks: PluginTable | None = None  # for turns with client tools, if the runtime has no tools of its own
    max_drive_seconds: float = 0.0  # seconds after which a drive releases its session between two steps; 0: never


class PartialStep(Protocol):
    """A streaming step, as far as it has arrived."""

    usage: Usage

    def parts(self) -> tuple[StreamedPart, ...]:
        """Its parts so far."""
        ...


class ActiveTurn:
    """One turn in one process, from when the process takes it over until it releases it."""

    def __init__(self, setup: DriveSetup, ledger: Ledger, state: TurnState) -> None:
        self.setup, self.ledger, self.state = setup, ledger, state
        self.turn, self.session = state.id, ledger.session
        self.cleanups: list[tuple[str, Cleanup]] = []
        self.history: list[Message] | None = None
        self.system: list[str] | None = None  # the system prompt, the same for every step of the turn
        self.rendered: list[RequestMessage] = []  # the messages before the turn, the same for every step
        self.rendered_own: dict[
            str, tuple[list[RequestMessage], int]
        ] = {}  # own message -> its rendering, and its number of parts then
        self.files: dict[str, bytes] = {}  # blobs of messages
        self.memo: dict[str, Any] = {}  # the cache of the model adapter
        self.steering_messages: dict[
            str, Send
        ] = {}  # steering messages that wait to join, by the keys of their commands
        self.late: dict[str, LateResultReceived] | None = (
            None  # arrived during this turn; None: the history was not checked yet
        )
        self.assembly: PartialStep | None = None  # the streaming step
        self.cancel_request: Cancel | None = None
        self.timeout_problem: Problem | None = None  # the turn timed out
        self.is_releasing = False  # this process releases the turn before the next step
        self.work_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._grace = 0.0
        self.is_closed = False
        self.arrivals = 0  # number of external arrivals; a pending hook that saw fewer is called again
        self.hook_notifier = Notifier()  # notified on an external arrival, or when a hook is done
        self.tool_notifier = Notifier()  # notified on an external arrival, or when a tool is done
        self.work: asyncio.Task[None] | None = None
        self._model: Model | None = None

    @property
    def model(self) -> Model:
        """The model of this turn's options, or the default model."""
        if self._model is None:
            try:
                self._model = self.setup.runtime.model_for(self.state.options.model)
            except ConfigError as error:  # another process admitted the turn, and this one does not have the model
                raise TurnError(str(error), kind="config") from error
        return self._model

    @property
    def is_cancelled(self) -> bool:
        """Whether the turn is being cancelled; every error from now on counts as that cancellation."""
        return self.cancel_request is not None

    async def grants(self) -> list[Rule]:
        """The grants that cover this turn, as rules."""
        above = self.state.options.lineage
        session = above.session if above is not None else self.session
        try:
            grants = await self.setup.store.grants(session, self.now())
        except UnknownSession:  # the top-level session was erased
            return []
        return self.setup.permissions.rules_from_grants(grants, self.setup.runtime.find_tool, self.state.options.by)

    async def read_history(self) -> list[Message]:
        """The branch before this turn, read once per drive: ancestors do not change while a turn runs.

        It leaves out blocked messages: those of a turn that a hook failed before its first request.
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

    async def load_outputs(self) -> dict[str, Output]:
        """The results on this branch that a model has read, by call."""
        return {
            part.call: part.output
            for message in (*await self.read_history(), *self.state.messages.values())
            for part in message.parts
            if type(part) is ToolPart and part.output is not None
        }

    async def taint(self) -> tuple[bool, bool]:
        """Whether this conversation contains (untrusted text, private values)."""
        state, above = self.state, self.state.options.lineage
        untrusted = state.has_untrusted or (above is not None and above.untrusted)
        private = state.has_private or (above is not None and above.private)
        if not (untrusted and private):
            parts = (part for message in await self.read_history() for part in message.parts if type(part) is ToolPart)
            before = [output for part in parts for output in (part.output, part.late) if output is not None]
            untrusted = untrusted or any(output.untrusted for output in before)
            private = private or any(output.private or output.sensitive for output in before)
        return untrusted, private

    def now(self) -> float:
        """The time, from the clock port."""
        return self.setup.clock.now()

    async def commit(self, make: Callable[[], Sequence[Event]] | Sequence[Event]) -> int:
        """Write events of this turn.

        Raises:
            TurnClosed: this process has released the turn.
        """
        if self.is_closed:
            raise TurnClosed(f"turn {self.turn} is over; a hook kept its context too long")
        return await self.ledger.commit(make)

    def stage(
        self, make: Callable[[], Sequence[Event]] | Sequence[Event], then: Callable[[], None] | None = None
    ) -> None:
        """Fold events of this turn now; the next commit, which must follow at once, writes them."""
        if self.is_closed:
            raise TurnClosed(f"turn {self.turn} is over; a hook kept its context too long")
        self.ledger.stage(make, then)

    def notify_arrival(self) -> None:
        """Record that something for this turn arrived from outside, and wake its waiters."""
        self.arrivals += 1
        self.hook_notifier.notify()
        self.tool_notifier.notify()

    def cancel(self, request: Cancel) -> None:
        """Cancel the running work; the turn then ends through its normal finalization."""
        self.cancel_request = request
        if self.work is not None:
            self.work.cancel()
            asyncio.get_running_loop().call_later(self._grace, self.release_waiter)

    def time_out(self, problem: Problem) -> None:
        """Cancel the running work because the turn timed out; it then ends through its normal finalization."""
        self.timeout_problem = problem
        if self.work is not None:
            self.work.cancel()
            asyncio.get_running_loop().call_later(self._grace, self.release_waiter)

    def begin(self, work: asyncio.Task[None], grace: float) -> None:
        """Set the task that a cancel stops, and the seconds it may take to stop."""
        self.work, self._grace = work, grace
        if self.cancel_request is not None:
            self.cancel(self.cancel_request)
        elif self.timeout_problem is not None:
            self.time_out(self.timeout_problem)

    def release_waiter(self) -> None:
        """Stop waiting for the work: it has ended, or ignores its cancellation."""
        if not self.work_done.done():
            self.work_done.set_result(None)

    async def call_hooks(self, hook: str, *args: object) -> None:
        """Call a hook of every plugin that has it, in order; the first failure fails the turn."""
        for plugin, method in self.setup.hooks[hook]:
            await self.call_hook(plugin, hook, method, *args)

    async def call_hook(self, plugin: str, hook: str, method: Hook, *args: object) -> Any:
        """Call one hook.

        Raises:
            HookError: the hook failed; the text names its plugin.
        """
        if failpoints.is_active():
            failpoints.hit_failpoint(f"hook.{hook}")
        try:
            return await invoke_hook(method, *args)
        except Exception as error:
            raise HookError(replace_surrogates(f"{plugin}.{hook} failed: {error!r}"), kind="hook") from error

    async def report_hooks(self, hook: str, *args: object) -> list[Problem]:
        """Call a hook of every plugin; failures are returned as reports and stop nothing."""
        reports: list[Problem] = []
        for plugin, method in self.setup.hooks[hook]:
            try:
                await self._bounded(invoke_hook(method, *args))
            except Exception as error:
                reports.append(report_failure(plugin, hook, error))
        return reports

    async def clean_up(self) -> list[Problem]:
        """Run the clean-ups, last in first out, each even if another fails."""
        reports: list[Problem] = []
        while self.cleanups:
            plugin, cleanup = self.cleanups.pop()
            try:
                await self._bounded(invoke_hook(cleanup))
            except Exception as error:
                reports.append(report_failure(plugin, "clean-up", error, kind="clean-up"))
        return reports

    async def _bounded(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run an end hook with a time limit: a long one if the turn ended by itself, otherwise a short one."""
        ending = self.state.ending
        limit = CANCELLED_END_HOOK_TIMEOUT if ending is None or ending.outcome == "cancelled" else END_HOOK_TIMEOUT
        task = asyncio.get_running_loop().create_task(work)
        await asyncio.wait({task}, timeout=limit)
        if not task.done():
            task.cancel()
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            raise TimeoutError(f"it did not end within {limit:g} s and was left behind")
        task.result()

    async def add_message(self, append: DeferredMessage, change: Callable[[Message], Awaitable[Message]]) -> None:
        """Add a plugin's message to the tree, once however often it is appended."""
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
        """Publish the progress of a tool."""
        self.setup.bus.publish(self.turn, (CallProgress(self.turn, call, text),))


def report_failure(plugin: str, hook: str, error: BaseException, kind: str = "hook") -> Problem:
    """Log a failure that stops nothing, and return it as a report for the turn's last event."""
    log.error("%s.%s failed", plugin, hook, exc_info=error)
    return Problem(kind, replace_surrogates(f"{plugin}.{hook} failed: {error!r}"))
