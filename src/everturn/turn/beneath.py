"""A turn that a tool asks for → its answer: it is run in a session of its own, like any turn, and waited for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

from everturn.core.commands import AnyCommand, Cancel, Send
from everturn.core.deltas import Reader, Shown
from everturn.core.events import TurnParked
from everturn.core.parts import TextPart
from everturn.core.ports import Clock, Ids, Store, SubAnswer
from everturn.core.state import Phase, TurnState, fold
from everturn.errors import ConfigError, DriverLost, EverturnError, ToolError, UnknownSession, UnknownTurn
from everturn.turn.below import answer_of
from everturn.turn.run import Asked

log = logging.getLogger(__name__)

PAUSES = (0.5, 2.0, 5.0, 15.0, 30.0)  # seconds between the looks for a sub-turn that is not driven for a while


class Beneath:
    """Runs turns that tools ask for, through the front door."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        command: Callable[[AnyCommand], Awaitable[object]],
        go_on: Callable[[str], Awaitable[bool]],
        follow: Callable[[str, Reader], AsyncGenerator[Shown, None]],
        is_closing: Callable[[], bool],
    ) -> None:
        self._is_closing = is_closing
        self._store, self._clock, self._ids = store, clock, ids
        self._command, self._go_on, self._follow = command, go_on, follow

    async def run(self, asked: Asked, can_leave: bool, is_wanted: Callable[[], bool]) -> SubAnswer | None:
        """Run a turn in a session of its own, once, and wait until it is over, or (None) until it waits for a person.

        One that was begun before is gone on with as it was begun, whatever would be asked of it now.
        """
        pauses = iter(PAUSES)
        while True:
            try:
                return await self._run(asked, can_leave, is_wanted)
            except (DriverLost, ConfigError) as error:
                if self._is_closing():  # nothing came of it here: another process goes on
                    return await asyncio.get_running_loop().create_future()
                pause = next(pauses, 0.0) if isinstance(error, DriverLost) else 0.0
                if not pause:
                    await self._give_up(asked)
                    raise
                log.warning("the sub-turn in %s is looked for again in %g s: %s", asked.session, pause, error)
                await asyncio.sleep(pause)  # its store may be away, and it goes on when that is back

    async def _give_up(self, asked: Asked) -> None:
        """Leave no turn behind that nobody waits for."""
        if asked.options.above is None or not asked.options.above.is_detached:
            with suppress(EverturnError):
                await self.end(asked)

    async def _run(self, asked: Asked, can_leave: bool, is_wanted: Callable[[], bool]) -> SubAnswer | None:
        if await self._is_begun(asked):
            await self._go_on(asked.session)
        else:
            if not is_wanted():
                raise ToolError("the turn that would need it is over; there is no sub-turn any more")
            await self._command(
                Send(
                    key=asked.key,
                    session=asked.session,
                    tenant=asked.tenant,
                    at=self._clock.now(),
                    turn=asked.turn,
                    message=self._ids.new("msg"),
                    parts=(TextPart(asked.prompt),),
                    at_leaf=True,
                    options=asked.options,
                )
            )
        if not is_wanted():  # it was cancelled while this was asked for
            await self.end(asked)
        async with aclosing(self._follow(asked.session, Reader(asked.turn, None))) as following:
            async for shown in following:
                # What a reader is shown may be old: it is looked at once more.
                if can_leave and isinstance(shown, TurnParked) and (await self._state(asked)).phase is Phase.WAITING:
                    return None
        return answer_of(asked.session, await self._state(asked))

    async def _state(self, asked: Asked) -> TurnState:
        entries = await self._store.events(asked.session, turn=asked.turn)
        if not entries:
            raise ToolError("the sub-turn was cancelled before it began")
        return fold(entry.event for entry in entries)

    async def _is_begun(self, asked: Asked) -> bool:
        """Whether a sub-turn was asked for before."""
        try:
            inbox = await self._store.inbox(asked.session)
            return any(command.key == asked.key for command in inbox) or bool(
                await self._store.events(asked.session, turn=asked.turn)
            )
        except UnknownSession:
            return False

    async def end(self, asked: Asked) -> None:
        """End a sub-turn whose tool is stopped, unless it is this process that ends."""
        with suppress(UnknownSession, UnknownTurn):  # it was about to be asked for
            if await self._go_on(asked.session):
                key, tenant = f"{asked.key}:cancel", asked.tenant
                await self._command(Cancel(key=key, session=asked.session, tenant=tenant, turn=asked.turn, hard=True))
