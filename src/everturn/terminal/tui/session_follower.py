"""Session follower: reads the event stream of one session, keeps its state up to date, and reports changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from everturn import api
from everturn.client import Server
from everturn.core.events import (
    CommandDropped,
    GateResolved,
    MessageAdded,
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
MAX_BURST: Final = 200  # items applied before other tasks run: a long session arrives in one burst

_MOVES: Final = (TurnStarted, TurnCompleted, TurnFailed, TurnCancelled, MessageAdded, CommandDropped)
_ASKS: Final = (SubagentStarted, GateResolved)


class SessionFollower:
    """Follows one session, and reconnects by itself."""

    def __init__(self, server: Server, session: str, changed: Changed, failed: Callable[[EverturnError], None]) -> None:
        self.session, self.state = server.session(session), SessionState()
        self.broken = False  # the connection state that was reported last
        self._changed, self._failed = changed, failed
        self._touched: set[str] = set()
        self._wake, self._look = asyncio.Event(), asyncio.Event()
        self._events = self.session.events()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.session.id

    @property
    def is_broken(self) -> bool:
        """Whether the connection to the server is lost at the moment."""
        return self._events.is_broken

    def start(self) -> None:
        """Start following."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(run()) for run in (self._listen, self._report, self._poll)]

    async def aclose(self) -> None:
        """Stop following; running turns continue."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._events.aclose()

    def poll_now(self) -> None:
        """Request the queue and the gates of sub-agents again: a message was sent, or a gate answered."""
        self._look.set()

    def _touch(self, turn: str) -> None:
        self._touched.add(turn)
        self._wake.set()

    async def _listen(self) -> None:
        count = 0
        try:
            async for item in self._events:
                self._touch(self.state.apply(item))
                if isinstance(item.event, _MOVES + _ASKS):
                    self._look.set()
                count += 1
                if count % MAX_BURST == 0:
                    await asyncio.sleep(0)
        except EverturnError as error:
            self._failed(error)
        except (msgspec.MsgspecError, LookupError) as error:
            self._failed(
                ServerUnavailable(f"the server says what this version does not know: {error}; update everturn")
            )

    async def _report(self) -> None:
        """Report changes at most once in `REPORT_INTERVAL`; also a lost or restored connection, without any event."""
        while True:
            try:
                await asyncio.wait_for(self._wake.wait(), 5 * REPORT_INTERVAL)
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
                await asyncio.wait_for(
                    self._look.wait(), SUBAGENT_POLL_INTERVAL if self.state.has_subagents else POLL_INTERVAL
                )
            except TimeoutError:
                if self.state.running is None and not self.state.queued and not self.state.subagent_gates:
                    continue
            self._look.clear()
            try:
                await self._poll_once()
            except EverturnError:  # the next poll retries; the stream reports a lost connection
                pass
            await asyncio.sleep(REPORT_INTERVAL)

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
