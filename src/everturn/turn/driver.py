"""Commands in, turns on: drives one session until nothing is left to do in it.

Whoever drives is the one writer of the session's log. Commands are acted on in the order in which they were admitted;
one whose branch is busy waits for it in the inbox.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from everturn.core.commands import Answer, AnyCommand, Cancel, Delete, Late, Select, Send
from everturn.core.events import (
    CommandDropped,
    Event,
    GateAnswered,
    LateArrived,
    LeafSelected,
    MessageDeleted,
    TurnEnding,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.state import Phase, TurnState, fold
from everturn.errors import InvalidEvent, UnknownMessage
from everturn.turn.ledger import Announce, Ledger
from everturn.turn.loop import drive_turn
from everturn.turn.run import Run, Setup

NEVER_BEGAN = "cancelled before it began"


class Driver:
    """Drives sessions with one setup."""

    def __init__(self, setup: Setup, announce: Announce) -> None:
        self._setup, self._announce = setup, announce

    async def drive(self, session: str) -> None:
        """Load what is open in a session, move it on until everything is over or waits, and return.

        Raises:
            Stale: somebody else drives it now.
        """
        store, bus = self._setup.store, self._setup.bus
        ear = bus.listen(session)
        try:
            ledger = Ledger(session, await store.head(session), store, bus, self._announce)
            for turn in await store.open_turns(session):
                ledger.adopt(fold(entry.event for entry in await store.events(session, turn=turn)))
            await _Drive(self._setup, ledger).until_idle(ear.wait)
        finally:
            ear.close()


class _Drive:
    """One drive of one session."""

    def __init__(self, setup: Setup, ledger: Ledger) -> None:
        self._setup, self._ledger = setup, ledger
        self._runs: dict[str, tuple[Run, asyncio.Task[None]]] = {}

    async def until_idle(self, signal: Callable[[], Coroutine[Any, Any, None]]) -> None:
        loop = asyncio.get_running_loop()
        rung = loop.create_task(signal())
        try:
            while True:
                await self._act_on_all()
                self._start_runs()
                if not self._runs:
                    return
                tasks = {task for _, task in self._runs.values()}
                await asyncio.wait({*tasks, rung}, return_when="FIRST_COMPLETED")
                if rung.done():
                    rung = loop.create_task(signal())
                self._reap()
        finally:
            rung.cancel()
            tasks = [task for _, task in self._runs.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _act_on_all(self) -> None:
        """Act on the inbox until nothing in it moves: one command may clear the way for an earlier one."""
        left: list[str] | None = None
        while True:
            commands = await self._setup.store.inbox(self._ledger.session)
            keys = [command.key for command in commands]
            if keys == left:
                return
            left = keys
            for command in commands:
                await self._act(command)

    def _start_runs(self) -> None:
        for turn, state in self._ledger.turns.items():
            if turn not in self._runs and state.phase is not Phase.WAITING:
                run = Run(self._setup, self._ledger, state)
                self._runs[turn] = (run, asyncio.get_running_loop().create_task(drive_turn(run)))

    def _reap(self) -> None:
        for turn, (run, task) in list(self._runs.items()):
            if task.done():
                del self._runs[turn]
                task.result()
                if run.state.phase.is_terminal:
                    del self._ledger.turns[turn]

    async def _act(self, command: AnyCommand) -> None:
        match command:
            case Send():
                await self._send(command)
            case Answer():
                await self._answer(command)
            case Cancel():
                await self._cancel(command)
            case Late():
                await self._late(command)
            case Select():
                await self._select(command)
            case Delete():
                await self._delete(command)

    def _now(self) -> float:
        return self._setup.clock.now()

    async def _drop(self, command: AnyCommand, reason: str) -> None:
        await self._ledger.commit([CommandDropped(at=self._now(), command=command.key, reason=reason)])
        if isinstance(command, Send):
            self._setup.bus.close(command.turn)

    # Send --------------------------------------------------------------------------------------------------------

    async def _send(self, command: Send) -> None:
        info = await self._setup.store.info(self._ledger.session)
        parent = info.leaf if command.at_leaf else command.parent
        if self._is_busy(parent, command.at_leaf):
            return
        try:
            if not command.at_leaf:  # the leaf is always there; another place may have been deleted meanwhile
                await self._setup.store.path(self._ledger.session, parent)
        except UnknownMessage:
            await self._drop(command, f"message {parent} was deleted before its turn came")
            return
        message = None
        if command.parts is not None:
            message = Message(command.message, parent, "user", command.parts, turn=command.turn)
        started = TurnStarted(
            turn=command.turn,
            at=self._now(),
            parent=parent,
            input=message,
            options=command.options,
            command=command.key,
            untitled=not info.title,
        )
        await self._ledger.commit([started])

    def _is_busy(self, place: str | None, at_leaf: bool) -> bool:
        """Whether a turn is still writing where this one would begin; two on one branch never interleave."""
        for state in self._ledger.turns.values():
            # An input does not change any more, so answering it a second time beside the first answer is fine.
            if place in state.messages and (at_leaf or place != state.input):
                return True
            if at_leaf and place == state.tip:
                return True
            # A re-run has no input of its own, and the store may not have heard of its answer yet.
            if at_leaf and state.input is None and place == state.parent:
                return True
        return False

    # Answers, cancels, late results --------------------------------------------------------------------------------

    async def _answer(self, command: Answer) -> None:
        for state in self._ledger.turns.values():
            if command.gate in state.gates:
                await self._answer_in(state, command)
                return
        await self._drop(command, "its turn is over")

    async def _answer_in(self, state: TurnState, command: Answer) -> None:
        asking = [call.id for call in state.calls.values() if call.gate is not None and call.gate.id == command.gate]
        answered = GateAnswered(
            turn=state.id,
            at=self._now(),
            gate=command.gate,
            call=asking[0] if asking else "",
            verdict=command.verdict,
            command=command.key,
        )

        def events() -> list[Event]:
            is_asked = not asking or state.calls[asking[0]].state == "asking"
            is_waiting = state.phase in (Phase.TOOL_CALL, Phase.WAITING) and state.gates[command.gate] is None
            if is_asked and is_waiting:
                return [answered]
            return [CommandDropped(at=self._now(), command=command.key, reason="nobody asks that any more")]

        await self._ledger.commit(events)
        if state.id in self._runs:
            self._runs[state.id][0].arrive()

    async def _cancel(self, command: Cancel) -> None:
        state = self._ledger.turns.get(command.turn)
        held = self._runs.get(command.turn)
        if command.hard and (state is None or state.ending is not None):
            self._setup.supervisor.cancel(command.turn)  # the turn is over, its tools need not be
        if state is None:
            await self._cancel_queued(command)
        elif state.ending is not None:
            await self._drop(command, "the turn is ending")
        elif held is not None and not held[1].done() and state.phase is not Phase.WAITING:
            await self._cancel_held(held[0], command)
        else:
            at = self._now()
            ending = TurnEnding(turn=state.id, at=at, outcome="cancelled", hard=command.hard, command=command.key)
            await self._ledger.commit([ending])

    async def _cancel_held(self, run: Run, command: Cancel) -> None:
        if not run.is_cancelled:
            async with self._ledger.at_rest:
                run.cancel(command)
        elif command.hard and run.cancel_request is not None and not run.cancel_request.hard:
            run.cancel_request = command
        elif run.cancel_request != command:
            await self._drop(command, "the turn is being cancelled already")

    async def _cancel_queued(self, command: Cancel) -> None:
        """Cancel a turn that has not begun: it never does."""
        for other in await self._setup.store.inbox(self._ledger.session):
            if isinstance(other, Send) and other.turn == command.turn:
                await self._drop(other, NEVER_BEGAN)
        await self._drop(command, "the turn is not under way")

    async def _late(self, command: Late) -> None:
        session, turn = self._ledger.session, command.turn
        arrived = LateArrived(turn=turn, at=self._now(), call=command.call, output=command.output, command=command.key)
        try:
            entries = await self._setup.store.events(session, turn=turn)
            fold(entry.event for entry in entries).apply(arrived)
        except InvalidEvent as error:
            await self._drop(command, str(error))
            return
        await self._ledger.commit([arrived])
        for run, _ in self._runs.values():
            if run.late is not None:
                run.late[command.call] = arrived

    async def _select(self, command: Select) -> None:
        try:
            await self._setup.store.path(self._ledger.session, command.message)
        except UnknownMessage as error:
            await self._drop(command, str(error))
            return
        await self._ledger.commit([LeafSelected(at=self._now(), message=command.message, command=command.key)])

    async def _delete(self, command: Delete) -> None:
        for state in list(self._ledger.turns.values()):
            # Not the path to its tip: that may be folded here and still be on its way to the store.
            above = await self._setup.store.path(self._ledger.session, state.parent)
            if command.message in state.messages or any(message.id == command.message for message in above):
                await self._drop(command, "a turn is writing there")
                return
        await self._ledger.commit([MessageDeleted(at=self._now(), message=command.message, command=command.key)])
