"""A turn → an answer on the screen, with the questions in between, until it is over or the person leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from everturn import Chat, Turn
from everturn.core.deltas import Shown
from everturn.core.events import Event, GateOpened
from everturn.terminal.asking import Asking, Asks


class Draws(Protocol):
    """Whoever draws a turn."""

    def show(self, shown: Shown) -> object:
        """Draw an event or a delta."""
        ...


class Watch:
    """Draws a turn. While a person is asked nothing else is drawn; it is made up for afterwards.

    They are asked `after` an event of this kind. If they leave while they are asked, a turn that `can_wait` does, and
    another one is cancelled.
    """

    def __init__(
        self,
        chat: Chat,
        turn: Turn,
        drawing: Draws,
        desk: Asks,
        can_wait: bool = False,
        after: type[Event] = GateOpened,
    ) -> None:
        self._turn, self._drawing, self._can_wait = turn, drawing, can_wait
        self._held: list[Shown] = []
        self._asking = Asking(chat, desk, self._draw_held, after)

    async def until_over(self, interrupted: asyncio.Event, echo: Callable[[], None]) -> bool:
        """Watch; an interrupt cancels the turn. False: the person left while they were asked, and it waits."""

        async def cancel() -> None:
            await interrupted.wait()
            echo()
            await self._turn.cancel()

        async def serve() -> None:
            await self._asking.serve()
            if self._can_wait:
                reading.cancel()
            else:
                await self._turn.cancel()
                self._asking.is_busy = False
                self._draw_held()

        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._read())
            beside = [group.create_task(cancel()), group.create_task(serve())]
            await asyncio.wait([reading])
            await self._asking.end()
            for task in beside:
                task.cancel()
        if reading.cancelled():
            return False
        self._draw_held()
        return True

    async def _read(self) -> None:
        async for shown in self._turn:
            if self._asking.is_busy:
                self._held.append(shown)
            else:
                self._drawing.show(shown)
            self._asking.see(shown)

    def _draw_held(self) -> None:
        for shown in self._held:
            self._drawing.show(shown)
        self._held.clear()
