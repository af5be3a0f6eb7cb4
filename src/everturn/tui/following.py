"""A session on a server → its state, kept up to date, and a word when something has changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

import msgspec

from everturn import api
from everturn.client import Server
from everturn.core.events import (
    CallBelow,
    CommandDropped,
    GateAnswered,
    MessageAdded,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)
from everturn.errors import EverturnError, ServerUnavailable
from everturn.tui.state import SessionState

Changed = Callable[[set[str]], None]
"""Told of the turns that changed ("" is the session itself): at most once in `BEAT`, however much came."""

BEAT: Final = 0.1  # seconds; more often nobody reads it
REST: Final = 2.0  # times as long as drawing took nothing is drawn: keys come first
LOOK: Final = 5.0  # seconds; others may write here too, and neither a queue nor what sub-turns ask is in this log
LOOK_BELOW: Final = 1.5  # the same while there are sub-turns
AT_ONCE: Final = 200  # items that are taken in before others have their turn: a long session comes in one rush

_MOVES: Final = (TurnStarted, TurnCompleted, TurnFailed, TurnCancelled, MessageAdded, CommandDropped)
_ASKS: Final = (CallBelow, GateAnswered)


class Follower:
    """Follows one session; what breaks off goes on by itself."""

    def __init__(self, server: Server, session: str, changed: Changed, failed: Callable[[EverturnError], None]) -> None:
        self.session, self.state = server.session(session), SessionState()
        self.broken = False  # as whoever draws was told last
        self._changed, self._failed = changed, failed
        self._touched: set[str] = set()
        self._wake, self._look = asyncio.Event(), asyncio.Event()
        self._events = self.session.events()
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def id(self) -> str:
        """The session."""
        return self.session.id

    @property
    def is_broken(self) -> bool:
        """Whether the server is not heard at the moment."""
        return self._events.is_broken

    def start(self) -> None:
        """Begin to listen."""
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(one()) for one in (self._listen, self._tell, self._ask)]

    async def aclose(self) -> None:
        """Listen no more. What runs does not mind."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._events.aclose()

    def look(self) -> None:
        """Ask again what is queued, and what sub-turns want to know: something was sent, or answered."""
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
                if count % AT_ONCE == 0:
                    await asyncio.sleep(0)
        except EverturnError as error:
            self._failed(error)
        except (msgspec.MsgspecError, LookupError) as error:
            self._failed(
                ServerUnavailable(f"the server says what this version does not know: {error}; update everturn")
            )

    async def _tell(self) -> None:
        """Tell at most once in a beat; and that the server is not heard, or is again, although nothing comes."""
        while True:
            try:
                await asyncio.wait_for(self._wake.wait(), 5 * BEAT)
            except TimeoutError:
                if self.broken == self.is_broken:
                    continue
                self._touched.add("")
            self._wake.clear()
            self.broken = self.is_broken
            touched, self._touched = self._touched, set()
            began = time.perf_counter()
            self._changed(touched)
            await asyncio.sleep(max(BEAT, REST * (time.perf_counter() - began)))

    async def _ask(self) -> None:
        while True:
            try:
                await asyncio.wait_for(self._look.wait(), LOOK_BELOW if self.state.has_below else LOOK)
            except TimeoutError:
                if self.state.running is None and not self.state.queued and not self.state.below:
                    continue
            self._look.clear()
            try:
                await self._ask_once()
            except EverturnError:  # it is asked again; whether the server is heard, the stream knows
                pass
            await asyncio.sleep(BEAT)

    async def _ask_once(self) -> None:
        state = self.state
        queued = await self.session.queue() if state.running is not None or state.queued else []
        below = [one for one in await self.session.gates() if one.session != self.id] if state.has_below else []
        if queued != state.queued or below != state.below:
            touched = {self._above(one) for one in (*below, *state.below)}
            state.queued, state.below = queued, below
            self._touched |= touched
            self._touch("")

    def _above(self, asked: api.GateView) -> str:
        """The turn whose call a sub-turn runs for."""
        for turn in self.state.turns.values():
            if any(asked.session == at for call in turn.calls.values() for at, _ in call.below.values()):
                return turn.id
        return ""
