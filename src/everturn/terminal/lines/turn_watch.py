"""Turn watch of line mode: draws one turn and asks about its gates, until the turn is over or the person leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from everturn import Chat, Turn
from everturn.core.deltas import TurnItem
from everturn.core.events import Event, GateOpened
from everturn.terminal.lines.gate_queue import GatePrompter, GateQueue


class TurnRenderer(Protocol):
    """Draws a turn."""

    def show(self, shown: TurnItem) -> object:
        """Draw an event or a delta."""
        ...


class TurnWatch:
    """Draws a turn. While a person is asked, output is held back; it is drawn after the answer.

    An event of the type `after` starts the questions. If the person leaves at a question, a turn that `can_wait` stays
    suspended, and any other is cancelled.
    """

    def __init__(
        self,
        chat: Chat,
        turn: Turn,
        drawing: TurnRenderer,
        desk: GatePrompter,
        can_wait: bool = False,
        after: type[Event] = GateOpened,
    ) -> None:
        self._turn, self._renderer, self._can_wait = turn, drawing, can_wait
        self._held: list[TurnItem] = []
        self._gates = GateQueue(chat, desk, self._draw_held, after)

    async def until_over(self, interrupted: asyncio.Event, echo: Callable[[], None]) -> bool:
        """Draw the turn; an interrupt cancels it. Return False if the person left at a question and the turn waits."""

        async def cancel() -> None:
            await interrupted.wait()
            echo()
            await self._turn.cancel()

        async def serve() -> None:
            await self._gates.serve()
            if self._can_wait:
                reading.cancel()
            else:
                await self._turn.cancel()
                self._gates.is_busy = False
                self._draw_held()

        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read())
            helpers = [group.create_task(cancel()), group.create_task(serve())]
            await asyncio.wait([reading])
            await self._gates.end()
            for task in helpers:
                task.cancel()
        if reading.cancelled():
            return False
        self._draw_held()
        return True

    async def _read(self) -> None:
        async for shown in self._turn:
            if self._gates.is_busy:
                self._held.append(shown)
            else:
                self._renderer.show(shown)
            self._gates.handle(shown)

    def _draw_held(self) -> None:
        for shown in self._held:
            self._renderer.show(shown)
        self._held.clear()
