"""The active turn: the in-memory state of one turn while this process drives it.

The state is lost with the process; everything that must survive is in the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from msgspec.structs import replace

from everturn import failpoints
from everturn.core.canonical_json import replace_surrogates
from everturn.core.commands import Cancel, Send
from everturn.core.context.compaction import has_compaction, needed_messages
from everturn.core.context.compaction_plan import taint_of_parts
from everturn.core.context.context_size import ContextLimits
from everturn.core.context.documents import has_documents
from everturn.core.deltas import CallProgress
from everturn.core.events import DeferredMessage, Event, LateResultReceived, MessageAdded, Problem, ProblemPhase
from everturn.core.file_uploads import UploadRegister
from everturn.core.history import unanswered_turns, without_refused
from everturn.core.hooks import Cleanup
from everturn.core.messages import Message
from everturn.core.parts import StreamedPart, SummaryPart, ToolPart, Usage
from everturn.core.ports import (
    Model,
    ParentCall,
    RunContext,
    TurnInfo,
)
from everturn.core.rate_limits import LimiterHandle, Sender
from everturn.core.requests import RequestMessage
from everturn.core.rules.policy import Rule
from everturn.core.state import TurnState, fold
from everturn.errors import ConfigError, HookError, TurnClosed, TurnError, UnknownSession
from everturn.running.branch import read_branch
from everturn.running.dependency_scope import DependencyScope
from everturn.running.drive_setup import DriveSetup
from everturn.running.ledger import Ledger
from everturn.running.notifier import Notifier
from everturn.running.older_calls import OlderCalls
from everturn.running.plugin_table import Hook, invoke_hook

log = logging.getLogger(__name__)


CANCELLED_END_HOOK_TIMEOUT = (
    1.0  # seconds for each end hook of a turn that was cancelled, or that this process releases
)
END_HOOK_TIMEOUT = 30.0  # the same for a turn that completed or failed


KEPT_TOO_LONG = (
    "turn {turn} is over; a hook kept its context too long: finish within the hook, or send a message to the session"
)


class PartialStep(Protocol):
    """A streaming step, as far as it has arrived."""

    @property
    def usage(self) -> Usage:
        """The token usage so far."""
        ...

    @property
    def model(self) -> str:
        """The model that writes it, if another than the turn's."""
        ...

    @property
    def first_chunk_at(self) -> float:
        """When its first content arrived; 0: nothing did."""
        ...

    @property
    def shows_unchecked(self) -> bool:
        """Whether readers were shown what is not among its parts."""
        ...

    def parts(self) -> tuple[StreamedPart, ...]:
        """Its parts so far, without those that a plugin has still to check."""
        ...


class ActiveTurn:
    """One turn in one process, from when the process takes it over until it releases it."""

    def __init__(self, setup: DriveSetup, ledger: Ledger, state: TurnState) -> None:
        self.setup, self.ledger, self.state = setup, ledger, state
        self.turn, self.session = state.id, ledger.session
        self.cleanups: list[tuple[str, Cleanup]] = []
        self.dependencies: DependencyScope | None = None
        self.agent = state.options.agent
        self.warning = ""  # what the request of the current step lacks
        self.history: list[Message] | None = None
        self.history_size = 0  # messages of the branch that were read, refused and blocked ones included
        self.history_taint = (False, False)  # the branch before this turn contains (untrusted text, private values)
        self.older: OlderCalls | None = None  # the calls above the last summary before this turn; None: all was read
        self.older_late: dict[str, ToolPart] = {}  # those of them with a late result
        self.has_compaction = False  # the branch before this turn has one
        self.history_has_documents = False
        self.context_limits: ContextLimits | None = None  # of the model, once they are needed
        self.is_over_window = False  # the next request does not fit, and nothing is left to be compacted
        self.has_indexed_results = False  # some result before this turn was truncated, or has private values
        self.refused_parent: Message | None = None  # this turn would answer a message anew that was refused before
        self.system: list[str] | None = None  # the system prompt, the same for every step of the turn
        self.rendered: list[RequestMessage] = []  # the messages before the turn, the same for every step
        self.rendered_own: dict[
            str, tuple[list[RequestMessage], int]
        ] = {}  # own message -> its rendering, and its number of parts then
        self.files: dict[str, bytes] = {}  # blobs of messages
        self.with_loaded_files: dict[int, RequestMessage] = {}  # messages whose files were loaded, by their id
        self.memo: dict[str, Any] = {}  # the cache of the model adapter
        self.steering_messages: dict[
            str, Send
        ] = {}  # steering messages that wait to join, by the keys of their commands
        self.late: dict[str, LateResultReceived] | None = (
            None  # arrived during this turn; None: the history was not checked yet
        )
        self.assembly: PartialStep | None = None  # the streaming step
        self.cancel_request: Cancel | None = None
        self.work_phase: ProblemPhase = "prepare"  # the stage that the loop is in, for errors
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
        self._sender: Sender | None = None
        self.uploads: UploadRegister | None = None  # of the session, once a request needs them

    @property
    def sender(self) -> Sender | None:
        """Who sends the turn's requests, for rate limits."""
        if self._sender is None and (limiter := self.setup.limiter) is not None:
            options, weight_of, tenant = self.state.options, self.setup.settings.weight_of, self.ledger.tenant
            is_detached = options.lineage is not None and options.lineage.is_detached
            self._sender = Sender(
                LimiterHandle(limiter),
                tenant,
                1.0 if weight_of is None else weight_of(tenant),
                "background" if is_detached else options.priority,
            )
        return self._sender

    @property
    def model(self) -> Model:
        """The model of this turn's options, or the default model."""
        if self._model is None:
            try:
                self._model = self.setup.app.model_for(self.state.options.model)
            except ConfigError as error:  # another process admitted the turn, and this one does not have the model
                raise TurnError(str(error), kind="config") from error
        return self._model

    @property
    def info(self) -> TurnInfo:
        """What factories of dependencies and functions of the agent know of the turn."""
        options, above = self.state.options, self.state.options.lineage
        return TurnInfo(
            session=self.session,
            turn=self.turn,
            agent=options.agent,
            tenant=self.ledger.tenant,
            user=options.by,
            mode=options.mode,
            metadata=options.metadata or {},
            parent=ParentCall(*above.by) if above is not None else None,
        )

    async def run_context(self) -> RunContext:
        """The context of the agent's functions."""
        message, deps = await self.user_message(), None if self.dependencies is None else self.dependencies.value
        return RunContext(turn=self.info, deps=deps, prompt=message.text if message is not None else "")

    async def user_message(self) -> Message | None:
        """The user message that this turn answers: its input or, if it regenerates an answer, its parent message; if
        it continues one, the message that this one answers.
        """
        if self.state.input is not None:
            return self.state.messages[self.state.input]
        for message in reversed(await self.read_history()):
            if message.fork is None:  # else the turn continues this answer
                return message if message.role == "user" else None
        return None

    async def open_dependencies(self) -> None:
        """Make the dependencies of the agent that has the turn, if it has any.

        Raises:
            TurnError: the factory failed.
        """
        agent = self.setup.agent
        opened = agent.open_dependencies(self.info) if agent is not None else None
        if opened is None:
            return
        await self.commit([])  # the factory acts on a turn that is written
        scope = DependencyScope(opened)
        try:
            await scope.open()
        except Exception as error:
            text = f"the dependencies of agent {self.agent!r} could not be made: {error!r}"
            raise TurnError(replace_surrogates(text), kind="dependencies") from error
        self.dependencies = scope

    async def release_dependencies(self) -> None:
        """Let the dependencies go; the last user closes them."""
        scope, self.dependencies = self.dependencies, None
        if scope is not None:
            await scope.release()

    async def follow_agent(self) -> None:
        """Take the setup of the agent that the turn was handed to.

        Raises:
            TurnError: this process does not know the agent.
        """
        options = self.state.options
        setup = self.setup.setup_of(options) if self.setup.setup_of is not None else self.setup
        if setup is None:
            raise TurnError(f"agent {options.agent!r} is not known here", kind="config")
        self.setup, self.agent = setup, options.agent
        self.offer_tools_for_documents()
        self.system, self._model, self.rendered, self.context_limits = None, None, [], None
        self.memo.clear()
        await self.release_dependencies()
        await self.open_dependencies()

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
        options = self.state.options
        find_tool = self.setup.app.find_tool
        return self.setup.permissions.rules_from_grants(grants, find_tool, options.by, options.folder)

    async def read_history(self) -> list[Message]:
        """The branch before this turn, read once per drive: ancestors do not change while a turn runs.

        What is above its last summary is not read, because no request needs it; see `older`. It leaves out refused
        messages, and blocked ones: those of a turn that a hook failed before its first request.
        """
        if self.history is None:
            store = self.setup.store
            if self.ledger.may_have_indexed("result"):
                self.has_indexed_results = bool(await store.indexed_events(self.session, "result", limit=1))
            ignored: set[str] = set()
            while True:
                summaries: list[Message] = []

                def find_needed(message: Message, summaries: list[Message] = summaries) -> frozenset[str] | None:
                    needed = None if message.id in ignored else needed_messages(message)
                    if needed is not None:
                        summaries.append(message)
                    return needed

                path = await read_branch(store, self.session, self.state.parent, find_needed)
                history = await self._without_unread(path)
                if not summaries or any(message is summaries[0] for message in history):
                    break
                ignored.add(summaries[0].id)  # its turn is blocked, so it has not replaced anything
            self.history_size = len(path)
            if path and (above := path[0].parent) is not None:
                part = next(part for part in summaries[0].parts if isinstance(part, SummaryPart))
                self.older = OlderCalls(store, self.session, above, part.calls)
                await self._find_older_late(self.older, history)
            late = tuple(self.older_late.values())
            self.history_taint = taint_of_parts((*(part for message in history for part in message.parts), *late))
            self.has_compaction = has_compaction(history)
            self.history_has_documents = has_documents(history)
            self.history = history
            self.offer_tools_for_documents()
        return self.history

    def offer_tools_for_documents(self) -> None:
        """Let a turn without tools have the one that reads documents, if its branch has a document.

        In the next steps and drives, too: it depends on the branch alone.
        """
        hooks = self.setup.client_hooks
        if hooks is not None and self.setup.hooks is not hooks and self.branch_has_documents:
            self.setup = replace(self.setup, hooks=hooks)

    @property
    def branch_has_documents(self) -> bool:
        """Whether the branch has a document; its requests then offer `read_document`. The branch must have been read."""
        return self.history_has_documents or has_documents(self.state.messages.values())

    async def _without_unread(self, path: list[Message]) -> list[Message]:
        """A branch without the messages that no model reads."""
        if self.state.input is None and path and path[-1].refused:
            self.refused_parent = path[-1]
        path = without_refused(path)
        blocked: set[str] = set()
        for turn in unanswered_turns(path, self.state.input is None):
            log = await self.setup.store.events(self.session, turn=turn)
            if log and fold(entry.event for entry in log).is_blocked:
                blocked.add(turn)
        return [message for message in path if message.turn not in blocked] if blocked else path

    async def _find_older_late(self, older: OlderCalls, history: list[Message]) -> None:
        """Find the late results of calls above the last summary: they may arrive after it was written."""
        entries = await self.setup.store.indexed_events(self.session, "late")
        late = {entry.event.call for entry in entries if isinstance(entry.event, LateResultReceived)}
        if late:
            read = {part.call for message in history for part in message.parts if type(part) is ToolPart}
            self.older_late = await older.find_all(late - read)

    async def read_whole_history(self) -> list[Message]:
        """The branch before this turn from its beginning, for models that read single files of it."""
        history = await self.read_history()
        return history if self.older is None else [*await self.older.read_messages(), *history]

    async def taint(self) -> tuple[bool, bool]:
        """Whether this conversation contains (untrusted text, private values)."""
        await self.read_history()
        state, above = self.state, self.state.options.lineage
        untrusted, private = self.history_taint
        untrusted = untrusted or state.has_untrusted or (above is not None and above.untrusted)
        private = private or state.has_private or (above is not None and above.private)
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
            raise TurnClosed(KEPT_TOO_LONG.format(turn=self.turn))
        return await self.ledger.commit(make)

    def stage(
        self, make: Callable[[], Sequence[Event]] | Sequence[Event], then: Callable[[], None] | None = None
    ) -> None:
        """Fold events of this turn now; the next commit, which must follow at once, writes them."""
        if self.is_closed:
            raise TurnClosed(KEPT_TOO_LONG.format(turn=self.turn))
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
            raise self.hook_error(plugin, hook, error) from error

    def hook_error(self, plugin: str, hook: str, error: BaseException) -> HookError:
        """The error of a hook that failed; it names the plugin, the hook and the class of what was raised."""
        text, name = repr(error), type(error).__name__
        failure = HookError(
            replace_surrogates(f"{plugin}.{hook} failed: {text if name in text else f'{name}: {text}'}"), kind="hook"
        )
        failure.__cause__ = error
        return failure

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
            raise TimeoutError(f"it did not end within {limit:g} s and was abandoned")
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
    return Problem(kind, replace_surrogates(f"{plugin}.{hook} failed: {error!r}"), "finalize")
