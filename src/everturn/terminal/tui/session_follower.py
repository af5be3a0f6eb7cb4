"""Session follower: reads the event stream of one session, keeps its state up to date, and reports changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from everturn import api
from everturn.client import Server
from everturn.client.event_stream import RemoteEventStream
from everturn.core.context.context_report import ContextReport
from everturn.core.events import (
    AgentSelected,
    AgentSwitched,
    CallFinished,
    CommandDropped,
    CompactionFailed,
    CompactionFinished,
    CompactionStarted,
    GateResolved,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    MessagesImported,
    StepFinished,
    StepInterrupted,
    SubagentStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from everturn.errors import EverturnError, ServerUnavailable
from everturn.terminal.tui.state import SessionState

Changed = Callable[[set[str]], None]
"""Called with the turns that changed ("" is the session itself): at most once in `REPORT_INTERVAL`, however many events came."""

REPORT_INTERVAL: Final = 0.1  # seconds; faster updates cannot be read
DRAW_PAUSE_FACTOR: Final = 2.0  # pause after drawing, as a multiple of the time it took: keys come first
POLL_INTERVAL: Final = (
    5.0  # seconds; other clients may write here too, and this log has neither the queue nor the gates of sub-agents
)
SUBAGENT_POLL_INTERVAL: Final = 1.5  # the same while there are sub-agent runs
MAX_TURNS: Final = 500  # turns that are loaded at once when all are wanted
MAX_BURST: Final = 200  # items applied before other tasks run: a long session arrives in one burst

_MOVES: Final = (TurnStarted, TurnCompleted, TurnFailed, TurnCancelled, MessageAdded, MessagesImported, CommandDropped)
_ASKS: Final = (SubagentStarted, GateResolved)
_SIZES: Final = (
    *(TurnStarted, TurnCompleted, TurnFailed, TurnCancelled, MessageAdded, MessageDeleted, MessagesImported),
    *(LeafSelected, StepFinished, StepInterrupted, CallFinished, AgentSwitched, AgentSelected),
    *(CompactionStarted, CompactionFinished, CompactionFailed),
)
"""Events after which the next request has another size."""

CONTEXT_PAUSE_FACTOR: Final = 10.0  # pause after a request for the context, as a multiple of the time it took


class SessionFollower:
    """Follows one session, and reconnects by itself."""

    def __init__(
        self,
        server: Server,
        session: str,
        changed: Changed,
        failed: Callable[[EverturnError], None],
        model: Callable[[], str] = lambda: "",
    ) -> None:
        self.session, self.state = server.session(session), SessionState()
        self._model = model  # of the next message; "": that of the agent
        self._is_context_old, self._context_at = True, 0.0  # and when the next report may be asked for
        self.broken = False  # the connection state that was reported last
        self._changed, self._failed = changed, failed
        self._touched: set[str] = set()
        self._wake, self._look = asyncio.Event(), asyncio.Event()
        self._events: RemoteEventStream | None = None  # once the end of the log is loaded
        self._is_loading = False
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.session.id

    @property
    def is_broken(self) -> bool:
        """Whether the connection to the server is lost at the moment."""
        return self._events is not None and self._events.is_broken

    @property
    def has_earlier(self) -> bool:
        """Whether there are turns before those that are loaded."""
        return self.state.start > 1

    async def load_earlier(self, all_turns: bool = False) -> None:
        """Load the turns before those that are loaded: some, or all of them."""
        while self.has_earlier and not self._is_loading:
            self._is_loading = True
            try:
                page = await self.session.log_tail(self.state.start, MAX_TURNS if all_turns else 0)
            except EverturnError:  # it is asked for again
                return
            finally:
                self._is_loading = False
            self.state.load_earlier(page)
            self._touch("")
            if not all_turns:
                return

    async def _load(self) -> RemoteEventStream:
        """Load the end of the log, and return the stream that continues it."""
        page = await self.session.log_tail()
        self.state.load(page)
        for turn in ("", *self.state.turns):
            self._touch(turn)
        self._look.set()
        return self.session.events(str(page.seq))

    def start(self) -> None:
        """Start following."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(run()) for run in (self._listen, self._report, self._poll)]

    async def aclose(self) -> None:
        """Stop following; running turns continue."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._events is not None:
            await self._events.aclose()

    def poll_now(self) -> None:
        """Request the queue and the gates of sub-agents again: a message was sent, or a gate answered."""
        self._look.set()

    def refresh_context(self) -> None:
        """Request the context report again: another model is selected."""
        self._is_context_old = True
        self._look.set()

    async def load_context(self) -> None:
        """Request the context report; without one nothing is said about the context."""
        self._is_context_old = False
        began = time.monotonic()
        report: ContextReport | None = None
        try:
            report = await self.session.context(model=self._model())
        except ServerUnavailable:  # the stream reports a lost connection
            self._is_context_old = True
            return
        except EverturnError:  # such as a session of an agent that is gone
            pass
        self._context_at = time.monotonic() + CONTEXT_PAUSE_FACTOR * (time.monotonic() - began)
        if report != self.state.context:
            self.state.context = report
            self._touch("")

    def _touch(self, turn: str) -> None:
        self._touched.add(turn)
        self._wake.set()

    async def _listen(self) -> None:
        try:
            self._events = await self._load()
            while await self._follow(self._events):
                await self._events.aclose()
                self._events = await self._load()
        except EverturnError as error:
            self._failed(error)
        except (msgspec.MsgspecError, LookupError) as error:
            self._failed(
                ServerUnavailable(f"the server says what this version does not know: {error}; update everturn")
            )

    async def _follow(self, events: RemoteEventStream) -> bool:
        """Apply the stream to its end; True if the selected branch ends in what is not loaded: then load it."""
        count = 0
        async for item in events:
            self._touch(self.state.apply(item))
            if isinstance(item.event, _MOVES + _ASKS):
                self._look.set()
            if isinstance(item.event, _SIZES):
                self.refresh_context()
            if isinstance(item.event, LeafSelected | MessageDeleted) and self.state.is_leaf_missing:
                return True
            count += 1
            if count % MAX_BURST == 0:
                await asyncio.sleep(0)
        return False

    async def _report(self) -> None:
        """Report changes at most once in `REPORT_INTERVAL`; also a lost or restored connection, without any event."""
        while True:
            try:
                async with asyncio.timeout(5 * REPORT_INTERVAL):  # not wait_for, which may swallow a cancel
                    await self._wake.wait()
            except TimeoutError:
                if self.broken == self.is_broken:
                    continue
                self._touched.add("")
            self._wake.clear()
            self.broken = self.is_broken
            touched, self._touched = self._touched, set()
            began = time.perf_counter()
            self._changed(touched)
            await asyncio.sleep(max(REPORT_INTERVAL, DRAW_PAUSE_FACTOR * (time.perf_counter() - began)))

    async def _poll(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._poll_interval):
                    await self._look.wait()
            except TimeoutError:
                is_idle = self.state.running is None and not self.state.queued and not self.state.subagent_gates
                if is_idle and not self._is_context_old:
                    continue
            self._look.clear()
            try:
                await self._poll_once()
                if self._is_context_old and time.monotonic() >= self._context_at:
                    await self.load_context()
            except EverturnError:  # the next poll retries; the stream reports a lost connection
                pass
            await asyncio.sleep(REPORT_INTERVAL)

    @property
    def _poll_interval(self) -> float:
        interval = SUBAGENT_POLL_INTERVAL if self.state.has_subagents else POLL_INTERVAL
        if self._is_context_old:
            interval = min(interval, max(self._context_at - time.monotonic(), REPORT_INTERVAL))
        return interval

    async def _poll_once(self) -> None:
        state = self.state
        queued = await self.session.queue() if state.running is not None or state.queued else []
        subagent_gates = (
            [gate_view for gate_view in await self.session.gates() if gate_view.session != self.id]
            if state.has_subagents
            else []
        )
        if queued != state.queued or subagent_gates != state.subagent_gates:
            touched = {self._parent_turn(gate_view) for gate_view in (*subagent_gates, *state.subagent_gates)}
            state.queued, state.subagent_gates = queued, subagent_gates
            self._touched |= touched
            self._touch("")

    def _parent_turn(self, gate_view: api.GateView) -> str:
        """Return the turn whose call runs the sub-agent of this gate."""
        for turn in self.state.turns.values():
            if any(
                gate_view.session == session for call in turn.calls.values() for session, _ in call.children.values()
            ):
                return turn.id
        return ""
