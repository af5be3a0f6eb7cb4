"""Messages that joined a turn → sent once more, in time to join it behind the same step."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from everturn.core.commands import Send
from everturn.core.events import MessageAdded, StepStarted, TurnStarted
from everturn.core.options import TurnOptions
from everturn.testing.replay.recording import Recording
from everturn.turn.contexts import Context, OneRequest

if TYPE_CHECKING:
    from everturn.wiring import Runtime

PATIENCE = 5.0  # seconds for a driver to hear of a message


class Steering:
    """A plugin that is the person who could not wait."""

    name = "replay-steering"
    runtime: Runtime

    def __init__(self, recording: Recording) -> None:
        self._session = recording.session
        self.said: dict[tuple[str, int], list[MessageAdded]] = {}  # (turn, step behind which it joined) -> those
        steps: dict[str, int] = {}
        for event in recording.events:
            if isinstance(event, TurnStarted):
                steps[event.turn] = 0
            elif isinstance(event, StepStarted):
                steps[event.turn] = event.step
            elif isinstance(event, MessageAdded) and event.command:
                self.said.setdefault((event.turn, steps[event.turn]), []).append(event)

    async def on_turn_start(self, ctx: Context) -> None:
        """Say what was said before the first step."""
        await self._say(ctx, 0)

    async def on_before_request(self, ctx: OneRequest) -> None:
        """Say what was said while this step was under way."""
        await self._say(ctx, ctx.step)

    async def _say(self, ctx: Context, step: int) -> None:
        for event in self.said.pop((ctx.turn, step), ()):
            send = Send(
                key=event.command,
                session=self._session,
                at=self.runtime.clock.now(),
                turn=self.runtime.ids.new("turn"),
                message=event.message.id,
                parts=event.message.parts,
                at_leaf=True,
                steers=True,
                joins=event.turn,
                options=TurnOptions(by=event.message.by),
            )
            await self.runtime.command(send)
            with suppress(TimeoutError):  # a difference, and told as one
                async with asyncio.timeout(PATIENCE):
                    while send.key not in ctx.run.steers:  # noqa: ASYNC110 - nobody rings when it was heard
                        await asyncio.sleep(0)
