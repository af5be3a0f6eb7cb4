"""Commands → events: what people, clients and late tools ask of a session is acted on here.

Commands are acted on in the order in which they were admitted; one whose branch is busy waits for it in the inbox.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from msgspec.structs import replace

from everturn.core.asking import Claimed, Gate, Grant, Verdict
from everturn.core.commands import Answer, AnyCommand, Cancel, Delete, Late, Revert, Revoke, Select, Send, Stir, Take
from everturn.core.events import (
    CallStirred,
    CommandDropped,
    Event,
    GateAnswered,
    GateClaimed,
    GrantRevoked,
    LateArrived,
    LeafSelected,
    MessageDeleted,
    TitleSet,
    TurnEnding,
    TurnStarted,
)
from everturn.core.gates import until_of
from everturn.core.messages import Message
from everturn.core.options import Lineage
from everturn.core.ports import Claim, SessionInfo
from everturn.core.state import Phase, TurnState, fold
from everturn.core.titles import title_of
from everturn.errors import CommandRefused, GateClosed, InvalidEvent, KeyConflict, UnknownMessage, UnknownSession
from everturn.turn import beside, reverting
from everturn.turn.ledger import Ledger
from everturn.turn.run import Run, Setup

log = logging.getLogger(__name__)

NEVER_BEGAN = "cancelled before it began"
EXPIRED = "nobody answered in time"
LAPSED = "the client that began it did not answer in time; whether it took effect is not known"


class Acting:
    """The commands of one session, and what is done about them."""

    def __init__(self, setup: Setup, ledger: Ledger, claim: Claim) -> None:
        self._setup, self._ledger = setup, ledger
        self._runs: dict[str, tuple[Run, asyncio.Task[None]]] = {}
        self._pending: list[AnyCommand] = list(claim.inbox)  # admitted, and not acted on yet
        self._dropped: set[str] = set()  # keys of commands that have lost their object
        self._steers: dict[str, dict[str, Send]] = {}  # turn -> messages that are to join it, by their keys
        self._is_heard = False  # a signal came: the inbox has more
        self._info = claim.head, claim.info  # and the position at which it was so

    async def _act_on_all(self) -> None:
        """Act on what is pending until nothing moves: one command may clear the way for an earlier one."""
        while self._is_heard or self._pending:
            if self._is_heard:
                self._is_heard = False
                self._pending = await self._setup.store.inbox(self._ledger.session)
            waiting = [command for command in self._pending if not await self._act(command)]
            waiting = [command for command in waiting if command.key not in self._dropped]
            if len(waiting) == len(self._pending) and not self._is_heard:
                return
            self._pending = waiting

    async def _act(self, command: AnyCommand) -> bool:
        """Act on a command; False when it has to wait."""
        match command:
            case Send():
                return await self._send(command)
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
            case Take():
                await self._take(command)
            case Stir():
                await self._stir(command)
            case Revert():
                await self._revert(command)
            case Revoke():
                await self._ledger.commit(
                    [GrantRevoked(at=self._now(), grant=command.grant, by=command.by, command=command.key)]
                )
        return True

    def _now(self) -> float:
        return self._setup.clock.now()

    async def _drop(self, command: AnyCommand, reason: str) -> None:
        self._dropped.add(command.key)
        await self._ledger.commit([CommandDropped(at=self._now(), command=command.key, reason=reason)])
        if isinstance(command, Send):
            self._setup.bus.close(command.turn)

    # Send --------------------------------------------------------------------------------------------------------

    async def _send(self, command: Send) -> bool:
        if command.joins and (has_joined := self._steer(command)) is not None:
            return has_joined
        info = await self._look()
        parent = info.leaf if command.at_leaf else command.parent
        if self._is_busy(parent, command.at_leaf):
            return False
        if (above := command.options.above) is not None and not await self._is_below(above):
            await self._drop(command, "it says that it is a sub-turn of a session that it does not belong to")
            return True
        try:
            if not command.at_leaf:  # the leaf is always there; another place may have been deleted meanwhile
                await self._setup.store.path(self._ledger.session, parent)
        except UnknownMessage:
            await self._drop(command, f"message {parent} was deleted before its turn came")
            return True
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
        title = title_of(command.parts) if started.untitled else ""
        named = [TitleSet(turn=command.turn, at=started.at, title=title)] if title else []
        await self._ledger.commit([started, *named])
        return True

    def _steer(self, command: Send) -> bool | None:
        """Leave a message to the turn that it is to join. Whether it has joined; None when it never will."""
        state = self._ledger.turns.get(command.joins)
        if state is None:
            return None
        if command.message in state.messages:
            return True
        if state.ending is not None or state.options.above is not None:
            return None
        self._steers.setdefault(state.id, {})[command.key] = command
        return False

    def _unsteer(self, command: Send) -> bool:
        """Take a message back from the turn that it was to join; False when it has joined."""
        state = self._ledger.turns.get(command.joins)
        if state is not None and command.message in state.messages:
            return False
        self._steers.get(command.joins, {}).pop(command.key, None)
        return True

    async def _is_below(self, above: Lineage) -> bool:
        """Whether a sub-turn is one: by its name, and of the same tenant."""
        if not self._ledger.session.startswith(f"{above.session}-"):
            return False
        try:
            if (await self._setup.store.info(above.session)).tenant != self._ledger.tenant:
                return False
            return above.is_detached or await self._is_wanted(above)
        except UnknownSession:
            return False

    async def _is_wanted(self, above: Lineage) -> bool:
        """Whether the call that asked for a sub-turn still waits for it: it may have been cancelled on the way."""
        session, turn, call = above.by
        log = await self._setup.store.events(session, turn=turn) if session else []
        if not log:
            return not session
        state = fold(entry.event for entry in log)
        asked = state.calls.get(call)
        return state.ending is None and asked is not None and not asked.is_settled

    async def _look(self) -> SessionInfo:
        """The session as it is now; it is read again only when this drive has written something."""
        head = self._ledger.head
        if self._info[0] != head:
            self._info = head, await self._setup.store.info(self._ledger.session)
        return self._info[1]

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
        gate, verdict = state.asked[command.gate], command.verdict
        grant = beside.grant_of(self._setup, state, gate, verdict, self._ledger.session, self._now())
        is_wider = verdict.others if grant is None else not 0 < grant.expires <= self._now()
        if is_wider and _is_open(state, gate):
            # Before this is written: if the process dies in between, all of it is done again.
            await self._answer_beside(gate, verdict, grant)

        def events() -> list[Event]:
            if not _is_open(state, gate):
                return [CommandDropped(at=self._now(), command=command.key, reason="nobody asks that any more")]
            at, key = self._now(), command.key
            return [
                GateAnswered(
                    turn=state.id, at=at, gate=gate.id, call=gate.call, verdict=verdict, command=key, grant=grant
                )
            ]

        await self._ledger.commit(events)
        if state.id in self._runs:
            self._runs[state.id][0].arrive()

    async def _answer_beside(self, answered: Gate, verdict: Verdict, grant: Grant | None) -> None:
        """Answer what else is asked and answered by the same word: at the door, where others may have been first."""
        asked = [
            (gate, state.options)
            for state in self._ledger.turns.values()
            for gate in state.asked.values()
            if gate.id != answered.id and _is_open(state, gate)
        ]
        known: list[Grant] = []
        if grant is not None:
            known = [*await self._setup.store.grants(grant.session or self._ledger.session, self._now()), grant]
            asked += [] if grant.session else await beside.elsewhere(self._setup, self._ledger.session)
        if grant is None or grant.session:
            asked += await beside.below(self._setup, self._ledger.session, self._ledger.turns.values())
        for gate, options in asked:
            rules = (
                self._setup.permits.granted(known, self._setup.tool_named, options.by) if grant is not None else None
            )
            if await beside.is_answered(self._setup, gate, options, rules):
                await self._admit(gate, beside.same(answered, verdict), f"with:{answered.id}:{gate.id}")

    async def _admit(self, gate: Gate, verdict: Verdict, key: str) -> None:
        session, tenant = gate.session or self._ledger.session, self._ledger.tenant
        answer = Answer(
            key=key, session=session, tenant=tenant, at=self._now(), gate=gate.id, hash=gate.hash, verdict=verdict
        )
        try:
            await self._setup.store.admit(answer)
        except (GateClosed, UnknownSession):  # somebody was first, or it is another tenant's
            return
        except KeyConflict:  # somebody has used that key for something else
            with suppress(GateClosed):
                await self._setup.store.admit(replace(answer, key=f"{key}:{gate.hash}"))
        if session == self._ledger.session:
            self._is_heard = True
        else:
            await self._setup.wake(session, None)

    async def _take(self, command: Take) -> None:
        for state in self._ledger.turns.values():
            if command.gate in state.gates:
                # As it was told at the door, which is where it was decided.
                gate = state.asked[command.gate]
                claim = Claimed(command.by, until_of(gate, command.at, command.lease))

                def events(state: TurnState = state, gate: Gate = gate, claim: Claimed = claim) -> list[Event]:
                    at, key = self._now(), command.key
                    if not _is_open(state, gate):
                        return [CommandDropped(at=at, command=key, reason="nobody asks that any more")]
                    return [GateClaimed(turn=state.id, at=at, gate=gate.id, claim=claim, command=key)]

                await self._ledger.commit(events)
                return
        await self._drop(command, "its turn is over")

    async def _stir(self, command: Stir) -> None:
        state = self._ledger.turns.get(command.turn)

        def events() -> list[Event]:
            at, key = self._now(), command.key
            call = state.calls.get(command.call) if state is not None else None
            if state is None or state.ending is not None or call is None or call.state not in ("running", "waiting"):
                return [CommandDropped(at=at, command=key, reason="nobody waits for it")]
            return [CallStirred(turn=state.id, at=at, call=call.id, command=key)]

        await self._ledger.commit(events)
        if command.turn in self._runs:
            self._runs[command.turn][0].arrive()

    async def _cancel(self, command: Cancel) -> None:
        state = self._ledger.turns.get(command.turn)
        held = self._runs.get(command.turn)
        if command.hard and (state is None or state.ending is not None):
            self._setup.supervisor.cancel(command.turn)  # the turn is over, its tools need not be
        if state is None:
            await self._cancel_queued(command)
        elif state.ending is not None:
            if state.ending.command != command.key:  # or it is this one that ends it
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
        inbox = await self._setup.store.inbox(self._ledger.session)
        if all(other.key != command.key for other in inbox):
            return  # it has ended its turn meanwhile
        for other in inbox:
            if isinstance(other, Send) and other.turn == command.turn and self._unsteer(other):
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

    async def _revert(self, command: Revert) -> None:
        if self._ledger.turns:
            await self._drop(command, "a turn is under way; what it does to files would be lost")
            return
        try:
            await reverting.revert(self._setup, self._ledger, command)
        except CommandRefused as error:
            await self._drop(command, str(error))

    async def _expire(self, gate: Gate, reason: str = EXPIRED) -> None:
        """Answer a gate whose time is over: at the door, where a person's answer may have been first."""
        verdict = Verdict(False, reason, by="everturn")
        expired = Answer(
            key=f"expired:{gate.id}",
            session=self._ledger.session,
            tenant=self._ledger.tenant,
            gate=gate.id,
            hash=gate.hash,
            verdict=verdict,
        )
        try:
            await self._setup.store.admit(expired)
        except GateClosed:
            log.info("gate %s was answered in time after all", gate.id)
        except KeyConflict:  # somebody has used that key for something else
            await self._setup.store.admit(replace(expired, key=f"expired:{gate.id}:{gate.hash}"))
        self._is_heard = True


def _is_open(state: TurnState, gate: Gate) -> bool:
    """Whether a gate can still be answered."""
    return state.phase in (Phase.TOOL_CALL, Phase.WAITING) and state.ending is None and state.is_asked(gate.id)
