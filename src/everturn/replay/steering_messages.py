"""Steering messages: sends the messages again that joined a running turn, in time to join it after the same step."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from everturn.core.commands import Send
from everturn.core.events import MessageAdded, StepStarted, TurnStarted
from everturn.core.options import TurnOptions
from everturn.replay.recording import Recording
from everturn.running.hook_contexts import HookContext, RequestHookContext

if TYPE_CHECKING:
    from everturn.app import App

PATIENCE = 5.0  # seconds for the driver to receive a message


class Steering:
    """Plugin that sends the recorded steering messages."""

    name = "replay-steering"
    app: App

    def __init__(self, recording: Recording) -> None:
        self._session = recording.session
        self.messages: dict[
            tuple[str, int], list[MessageAdded]
        ] = {}  # (turn, step after which they joined) -> messages
        steps: dict[str, int] = {}
        for event in recording.events:
            if isinstance(event, TurnStarted):
                steps[event.turn] = 0
            elif isinstance(event, StepStarted):
                steps[event.turn] = event.step
            elif isinstance(event, MessageAdded) and event.command:
                self.messages.setdefault((event.turn, steps[event.turn]), []).append(event)

    async def on_turn_start(self, ctx: HookContext) -> None:
        """Send the messages that joined before the first step."""
        await self._send_recorded(ctx, 0)

    async def on_before_request(self, ctx: RequestHookContext) -> None:
        """Send the messages that joined during this step."""
        await self._send_recorded(ctx, ctx.step)

    async def _send_recorded(self, ctx: HookContext, step: int) -> None:
        for event in self.messages.pop((ctx.turn, step), ()):
            send = Send(
                key=event.command,
                session=self._session,
                at=self.app.clock.now(),
                turn=self.app.ids.new("turn"),
                message=event.message.id,
                parts=event.message.parts,
                at_leaf=True,
                steers=True,
                joins=event.turn,
                options=TurnOptions(by=event.message.by),
            )
            await self.app.command(send)
            with suppress(TimeoutError):  # the comparison reports it as a difference
                async with asyncio.timeout(PATIENCE):
                    while send.key not in ctx.run.steering_messages:  # noqa: ASYNC110 - nobody rings when it was heard
                        await asyncio.sleep(0)
