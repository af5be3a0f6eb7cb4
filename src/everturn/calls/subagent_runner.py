"""Sub-agent runner: runs a sub-agent in a session of its own, like any turn, and waits for its result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from typing import Protocol

from everturn.calls.subagents import subagent_result
from everturn.core.commands import AnyCommand, Cancel, Send
from everturn.core.deltas import TurnItem, TurnReader
from everturn.core.events import TurnSuspended
from everturn.core.parts import TextPart
from everturn.core.phases import Phase
from everturn.core.ports import Clock, IdSource, SubagentResult
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import Store
from everturn.errors import ConfigError, DriverLost, EverturnError, ToolError, UnknownSession, UnknownTurn
from everturn.running.drive_setup import SubagentRun

log = logging.getLogger(__name__)

SUBAGENT_RETRY_PAUSES = (0.5, 2.0, 5.0, 15.0, 30.0)  # seconds between retries for a run that has no driver for a while


class SubagentHost(Protocol):
    """The runtime, as far as a sub-agent run needs it."""

    @property
    def is_closing(self) -> bool:
        """Whether this process is shutting down."""
        ...

    async def command(self, command: AnyCommand) -> object:
        """Admit a command, and wake the driver of its session."""
        ...

    async def resume_session(self, session: str) -> bool:
        """Wake a session; False if this process is shutting down."""
        ...

    def follow(self, session: str, reader: TurnReader) -> AsyncGenerator[TurnItem, None]:
        """Show a turn from the reader's position until its end."""
        ...


class SubagentRunner:
    """Runs sub-agents for tools, with the same commands that clients use."""

    def __init__(self, store: Store, clock: Clock, ids: IdSource, host: SubagentHost) -> None:
        self._store, self._clock, self._ids, self._host = store, clock, ids, host

    async def run(
        self, child_run: SubagentRun, can_leave: bool, is_wanted: Callable[[], bool]
    ) -> SubagentResult | None:
        """Run a sub-agent in a session of its own, once, and wait for its end; None if it waits for a person.

        A run that was started before continues with its original options.
        """
        pauses = iter(SUBAGENT_RETRY_PAUSES)
        while True:
            try:
                return await self._run(child_run, can_leave, is_wanted)
            except (DriverLost, ConfigError) as error:
                if self._host.is_closing:  # no result in this process: another process continues
                    return await asyncio.get_running_loop().create_future()
                pause = next(pauses, 0.0) if isinstance(error, DriverLost) else 0.0
                if not pause:
                    await self._give_up(child_run)
                    raise
                log.warning(
                    "the sub-agent run in %s could not be read, next attempt in %g s: %s",
                    child_run.session,
                    pause,
                    error,
                )
                await asyncio.sleep(pause)  # the store may be down; the run continues when it is back

    async def _give_up(self, child_run: SubagentRun) -> None:
        """Cancel a run that no call waits for any more."""
        if child_run.options.lineage is None or not child_run.options.lineage.is_detached:
            with suppress(EverturnError):
                await self.cancel(child_run)

    async def _run(
        self, child_run: SubagentRun, can_leave: bool, is_wanted: Callable[[], bool]
    ) -> SubagentResult | None:
        if await self._is_begun(child_run):
            await self._host.resume_session(child_run.session)
        else:
            if not is_wanted():
                raise ToolError("the turn has ended, so its sub-agent run has ended too")
            await self._host.command(
                Send(
                    key=child_run.key,
                    session=child_run.session,
                    tenant=child_run.tenant,
                    at=self._clock.now(),
                    turn=child_run.turn,
                    message=self._ids.new("msg"),
                    parts=(TextPart(child_run.prompt),),
                    at_leaf=True,
                    options=child_run.options,
                )
            )
        if not is_wanted():  # the parent was cancelled while the command was admitted
            await self.cancel(child_run)
        async with aclosing(self._host.follow(child_run.session, TurnReader(child_run.turn, None))) as following:
            async for shown in following:
                # The event may be old: the present state is checked.
                if (
                    can_leave
                    and isinstance(shown, TurnSuspended)
                    and (await self._state(child_run)).phase is Phase.WAITING
                ):
                    return None
        return subagent_result(child_run.session, await self._state(child_run))

    async def _state(self, child_run: SubagentRun) -> TurnState:
        entries = await self._store.events(child_run.session, turn=child_run.turn)
        if not entries:
            raise ToolError("the sub-agent run was cancelled before it began")
        return fold(entry.event for entry in entries)

    async def _is_begun(self, child_run: SubagentRun) -> bool:
        """Whether the run was requested before."""
        try:
            inbox = await self._store.inbox(child_run.session)
            return any(command.key == child_run.key for command in inbox) or bool(
                await self._store.events(child_run.session, turn=child_run.turn)
            )
        except UnknownSession:
            return False

    async def cancel(self, child_run: SubagentRun) -> None:
        """Cancel a run whose tool is stopped, unless this process is shutting down."""
        with suppress(UnknownSession, UnknownTurn):  # it was about to be requested
            if await self._host.resume_session(child_run.session):
                key, tenant = f"{child_run.key}:cancel", child_run.tenant
                await self._host.command(
                    Cancel(key=key, session=child_run.session, tenant=tenant, turn=child_run.turn, hard=True)
                )
