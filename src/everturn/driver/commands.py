"""Command handling: turns the admitted commands of a session into events.

Commands are carried out in the order in which they were admitted; one whose branch is busy waits in the inbox.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from msgspec.structs import replace

from everturn.agents.session_agent import base_of, options_of_agent
from everturn.core.commands import (
    AnyCommand,
    Cancel,
    ClaimCall,
    Delete,
    FinishWait,
    ImportMessages,
    LateResult,
    NotifyCall,
    RateAnswer,
    ResolveGate,
    Revert,
    Revoke,
    Select,
    SelectAgent,
    Send,
    SetInstructions,
    UpdateSession,
)
from everturn.core.events import (
    AgentSelected,
    AnswerRated,
    CallClaimed,
    CallNotified,
    CommandDropped,
    Event,
    GateResolved,
    GrantRevoked,
    InstructionsSet,
    LateResultReceived,
    LeafSelected,
    LimitReached,
    MessageDeleted,
    MessagesImported,
    SessionUpdated,
    TitleSet,
    TurnFinishing,
    TurnStarted,
    WaitFinished,
    WaitStarted,
)
from everturn.core.forks import fork_answer
from everturn.core.gate_rows import claim_end
from everturn.core.gates import CallClaim, Gate, GateResolution, Grant
from everturn.core.messages import ForkPoint, Message
from everturn.core.options import Lineage, TurnOptions
from everturn.core.phases import Phase
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import SessionClaim, SessionInfo
from everturn.core.titles import derive_title
from everturn.core.waits import wait_key
from everturn.driver import revert, wider_answers
from everturn.errors import (
    CommandRefused,
    ConfigError,
    GateClosed,
    InvalidEvent,
    KeyConflict,
    UnknownMessage,
    UnknownSession,
)
from everturn.running.active_turn import ActiveTurn
from everturn.running.drive_setup import DriveSetup
from everturn.running.ledger import Ledger
from everturn.running.prompt_layers import with_prompt

log = logging.getLogger(__name__)

CANCELLED_BEFORE_START = "cancelled before it began"
EXPIRED = "nobody answered in time"
CLAIM_EXPIRED = "the client that began it did not answer in time; whether it took effect is not known"


ActiveTurns = dict[str, tuple[ActiveTurn, asyncio.Task[None]]]
"""The turns that a drive runs now, by id, each with its task."""


class CommandHandler:
    """Carries out the commands of one session. `active` are the turns of the drive, which starts and ends them."""

    def __init__(self, setup: DriveSetup, ledger: Ledger, claim: SessionClaim, active: ActiveTurns) -> None:
        self._setup, self._ledger, self._active = setup, ledger, active
        self.pending: list[AnyCommand] = list(claim.inbox)  # admitted, and not carried out yet
        self._dropped: set[str] = set()  # keys of dropped commands
        self._steers: dict[str, dict[str, Send]] = {}  # turn -> steering messages for it, by the keys of their commands
        self.unknown_agents: set[str] = set()  # that have the session, and take a message that waits
        self.inbox_changed = False  # a signal arrived: the inbox has to be read again
        self._info = claim.head, claim.info  # the session info, and the log position it was read at

    async def carry_out_all(self) -> None:
        """Carry out pending commands until none can proceed: one command may unblock an earlier one."""
        while self.inbox_changed or self.pending:
            if self.inbox_changed:
                await self._ledger.commit([])  # the inbox still has a command whose turn is only staged
                self.inbox_changed = False
                self.pending = await self._setup.store.inbox(self._ledger.session)
            self.unknown_agents.clear()
            waiting = [command for command in self.pending if not await self._carry_out(command)]
            waiting = [command for command in waiting if command.key not in self._dropped]
            if len(waiting) == len(self.pending) and not self.inbox_changed:
                return
            self.pending = waiting

    async def _carry_out(self, command: AnyCommand) -> bool:  # noqa: C901 - one line for each command
        """Carry out a command; False if it has to wait."""
        await self._ledger.commit([])  # the start of a turn may be staged: this command acts on what is written
        match command:
            case Send():
                return await self._send(command)
            case ResolveGate():
                await self._resolve_gate(command)
            case Cancel():
                await self._cancel(command)
            case LateResult():
                await self._record_late_result(command)
            case Select():
                await self._select(command)
            case SelectAgent():
                await self._select_agent(command)
            case Delete():
                await self._delete(command)
            case ClaimCall():
                await self._claim_call(command)
            case NotifyCall():
                await self._notify_call(command)
            case FinishWait():
                await self._finish_wait(command)
            case Revert():
                await self._revert(command)
            case ImportMessages():
                return await self._import_messages(command)
            case SetInstructions(text=text, by=by, key=key):
                await self._ledger.commit([InstructionsSet(at=self._now(), text=text, by=by, command=key)])
            case UpdateSession():
                await self._update_session(command)
            case RateAnswer():
                await self._rate_answer(command)
            case Revoke(grant=grant, by=by, key=key):
                await self._ledger.commit([GrantRevoked(at=self._now(), grant=grant, by=by, command=key)])
        return True

    async def _update_session(self, command: UpdateSession) -> None:
        changed = SessionUpdated(
            at=self._now(),
            title=command.title,
            pinned=command.pinned,
            archived=command.archived,
            labels=command.labels,
            parameters=command.parameters,
            by=command.by,
            command=command.key,
        )
        await self._ledger.commit([changed])

    async def _rate_answer(self, command: RateAnswer) -> None:
        try:
            await self._setup.store.path(self._ledger.session, command.message, 1)
        except UnknownMessage as error:  # it was deleted meanwhile
            await self._drop(command, str(error))
            return
        rated = AnswerRated(
            at=self._now(),
            message=command.message,
            rating=command.rating,
            reason=command.reason,
            by=command.by,
            command=command.key,
        )
        await self._ledger.commit([rated])

    def steering_messages(self, turn: str) -> dict[str, Send]:
        """The steering messages that wait to join a turn, by the keys of their commands."""
        return self._steers.setdefault(turn, {})

    def forget_turn(self, turn: str) -> None:
        """Drop the steering messages of a turn that is over; their commands start turns of their own."""
        self._steers.pop(turn, None)

    def _now(self) -> float:
        return self._setup.clock.now()

    async def _drop(self, command: AnyCommand, reason: str) -> None:
        self._dropped.add(command.key)
        await self._ledger.commit([CommandDropped(at=self._now(), command=command.key, reason=reason)])
        if isinstance(command, Send):
            self._setup.bus.close(command.turn)

    # Send --------------------------------------------------------------------------------------------------------

    @property
    def due(self) -> float:
        """When the next scheduled message starts its turn; 0: none is scheduled."""
        now = self._now()
        times = (command.not_before for command in self.pending if isinstance(command, Send))
        return min((time for time in times if time > now), default=0.0)

    async def _send(self, command: Send) -> bool:
        if command.not_before > self._now():
            return False
        if command.joins and (has_joined := self._queue_steering(command)) is not None:
            return has_joined
        info = await self._session_info()
        parent = info.leaf if command.at_leaf else command.parent
        if self._is_busy(parent, command.at_leaf):
            return False
        if (above := command.options.lineage) is not None and not await self._is_subagent_of(above):
            await self._drop(command, "it says that it is a sub-agent run of a session that it does not belong to")
            return True
        try:
            parent, copy = await self._place(command, parent)
        except CommandRefused as error:
            await self._drop(command, str(error))
            return True
        options = self._options_of(command, info)
        if options is None:
            return False
        message = None
        if command.parts is not None:
            message = Message(command.message, parent, "user", command.parts, turn=command.turn)
        base_options, options = options, with_prompt(self._setup.for_turn(options), options)
        started = TurnStarted(
            turn=command.turn,
            at=self._now(),
            parent=parent,
            input=message,
            options=options,
            command=command.key,
            untitled=not info.title,
        )
        # A message that a plugin may refuse gives its title once it has passed: see `turn.input_check`.
        is_checked = bool(self._setup.hooks["on_input"])
        title = derive_title(command.parts) if started.untitled and not is_checked else ""
        title_event = [TitleSet(turn=command.turn, at=started.at, title=title)] if title else []
        if copy is not None:  # the copy and its turn are one append: after a crash there are both, or neither
            await self._ledger.commit([MessagesImported(at=started.at, messages=(copy,)), started])
            return True
        if command.compared:
            # Written now: the other turns begin under a message that only the log has.
            await self._ledger.commit([started, *title_event, *self._compared_turns(command, base_options, started.at)])
            return True
        # Until its first request a turn only reads, unless code of the application runs: that commits first.
        self._ledger.stage([started, *title_event])
        return True

    async def _place(self, command: Send, parent: str | None) -> tuple[str | None, Message | None]:
        """The message under which a turn starts; with a fork, that is the copy, which is not written yet.

        Raises:
            CommandRefused: that message was deleted meanwhile, or there is nothing to fork.
        """
        try:
            if command.fork is not None:
                copy = await self._fork(command.fork, command.message)
                return copy.id, copy
            if not command.at_leaf:  # the leaf always exists; another parent may have been deleted meanwhile
                await self._setup.store.path(self._ledger.session, parent, 1)
        except UnknownMessage:
            name = parent if command.fork is None else command.fork.message
            raise CommandRefused(f"message {name} was deleted before its turn came") from None
        return parent, None

    async def _fork(self, place: ForkPoint, copy: str) -> Message:
        """The copy of an answer up to one of its steps, as the log has them now.

        Raises:
            UnknownMessage: the answer was deleted.
            CommandRefused: it has no such step, or the step is not finished.
        """
        (answer,) = await self._setup.store.path(self._ledger.session, place.message, 1)
        return fork_answer(answer, place.step, copy)

    def _compared_turns(self, command: Send, options: TurnOptions, at: float) -> list[Event]:
        """The starts of the other answers to a message, by other models."""
        events: list[Event] = []
        for answer in command.compared:
            own = replace(options, model=answer.model, params=answer.params)
            own = with_prompt(self._setup.for_turn(own), own)
            events.append(
                TurnStarted(turn=answer.turn, at=at, parent=command.message, options=own, command=command.key)
            )
        return events

    def _options_of(self, command: Send, info: SessionInfo) -> TurnOptions | None:
        """The options of a turn: of the agent that has the session now, unless the message names another.

        None: this process does not know that agent, and leaves the message to one that does.
        """
        if command.base is None or info.agent in ("", command.options.agent):
            return command.options
        try:
            return options_of_agent(self._setup.app, info.agent, base_of(command), command.chosen)
        except ConfigError:
            self.unknown_agents.add(info.agent)
            return None

    def _queue_steering(self, command: Send) -> bool | None:
        """Queue a steering message for its turn. Returns whether it has joined; None if it never will."""
        state = self._ledger.turns.get(command.joins)
        if state is None:
            return None
        if command.message in state.messages:
            return True
        if state.ending is not None or state.options.lineage is not None:
            return None
        self._steers.setdefault(state.id, {})[command.key] = command
        return False

    def _withdraw_steering(self, command: Send) -> bool:
        """Withdraw a steering message from its turn; False if it has already joined."""
        state = self._ledger.turns.get(command.joins)
        if state is not None and command.message in state.messages:
            return False
        self._steers.get(command.joins, {}).pop(command.key, None)
        return True

    async def _is_subagent_of(self, above: Lineage) -> bool:
        """Whether this session is a sub-agent run of that parent: by its id, and in the same tenant."""
        if not self._ledger.session.startswith(f"{above.session}-"):
            return False
        try:
            if (await self._setup.store.info(above.session)).tenant != self._ledger.tenant:
                return False
            return above.is_detached or await self._is_awaited(above)
        except UnknownSession:
            return False

    async def _is_awaited(self, above: Lineage) -> bool:
        """Whether the call that requested a sub-agent run still waits for it: it may have been cancelled meanwhile."""
        session, turn, call = above.by
        log = await self._setup.store.events(session, turn=turn) if session else []
        if not log:
            return not session
        state = fold(entry.event for entry in log)
        caller = state.calls.get(call)
        return state.ending is None and caller is not None and not caller.is_finished

    async def _session_info(self) -> SessionInfo:
        """The present session info; it is read again only after this drive has written."""
        head = self._ledger.head
        if self._info[0] != head:
            self._info = head, await self._setup.store.info(self._ledger.session)
        return self._info[1]

    def _is_busy(self, parent: str | None, at_leaf: bool) -> bool:
        """Whether a turn is still writing where this one would start; two turns on one branch never interleave."""
        for state in self._ledger.turns.values():
            # An input no longer changes, so a second answer beside the first one is fine.
            if parent in state.messages and (at_leaf or parent != state.input):
                return True
            if at_leaf and parent == state.tip:
                return True
            # A re-run has no input of its own, and its answer may not be in the store yet.
            if at_leaf and state.input is None and parent == state.parent:
                return True
        return False

    # Answers, cancels, late results --------------------------------------------------------------------------------

    async def _resolve_gate(self, command: ResolveGate) -> None:
        for state in self._ledger.turns.values():
            if command.gate in state.gates:
                await self._resolve_in(state, command)
                return
        await self._drop(command, "its turn is over")

    async def _resolve_in(self, state: TurnState, command: ResolveGate) -> None:
        gate, resolution = state.gate_details[command.gate], command.resolution
        grant = wider_answers.build_grant(self._setup, state, gate, resolution, self._ledger.session, self._now())
        is_wider = resolution.others if grant is None else not 0 < grant.expires <= self._now()
        if is_wider and _is_open(state, gate):
            # Before this answer is written: if the process dies in between, all of it is done again.
            await self._resolve_covered_gates(gate, resolution, grant)

        def events() -> list[Event]:
            if not _is_open(state, gate):
                return [CommandDropped(at=self._now(), command=command.key, reason="the gate is no longer open")]
            at, key = self._now(), command.key
            resolved = GateResolved(
                turn=state.id, at=at, gate=gate.id, call=gate.call, resolution=resolution, command=key, grant=grant
            )
            is_stop = resolution.stop and not resolution.allowed and state.limit is None
            return [resolved, _stop_event(state, gate, resolution, at)] if is_stop else [resolved]

        await self._ledger.commit(events)
        if state.id in self._active:
            self._active[state.id][0].notify_arrival()

    async def _resolve_covered_gates(self, answered: Gate, resolution: GateResolution, grant: Grant | None) -> None:
        """Resolve the other gates that this answer covers, through admission, where another answer may have been first."""
        open_gates = [
            (gate, state.options)
            for state in self._ledger.turns.values()
            for gate in state.gate_details.values()
            if gate.id != answered.id and _is_open(state, gate)
        ]
        grants: list[Grant] = []
        if grant is not None:
            grants = [*await self._setup.store.grants(grant.session or self._ledger.session, self._now()), grant]
            open_gates += (
                [] if grant.session else await wider_answers.open_gates_elsewhere(self._setup, self._ledger.session)
            )
        if grant is None or grant.session:
            open_gates += await wider_answers.open_gates_of_subagents(
                self._setup, self._ledger.session, self._ledger.turns.values()
            )
        for gate, options in open_gates:
            rules = (
                self._setup.permissions.rules_from_grants(
                    grants, self._setup.for_turn(options).app.find_tool, options.by, options.folder
                )
                if grant is not None
                else None
            )
            if await wider_answers.does_answer_cover(self._setup, gate, options, rules):
                await self._admit_resolution(
                    gate, wider_answers.copy_answer(answered, resolution), f"with:{answered.id}:{gate.id}"
                )

    async def _admit_resolution(self, gate: Gate, resolution: GateResolution, key: str) -> None:
        session, tenant = gate.session or self._ledger.session, self._ledger.tenant
        answer = ResolveGate(
            key=key, session=session, tenant=tenant, at=self._now(), gate=gate.id, hash=gate.hash, resolution=resolution
        )
        try:
            await self._setup.store.admit(answer)
        except (GateClosed, UnknownSession):  # another answer was first, or it is another tenant's session
            return
        except KeyConflict:  # the key was used for another command
            with suppress(GateClosed):
                await self._setup.store.admit(replace(answer, key=f"{key}:{gate.hash}"))
        if session == self._ledger.session:
            self.inbox_changed = True
        else:
            await self._setup.engine.wake(session)

    async def _claim_call(self, command: ClaimCall) -> None:
        for state in self._ledger.turns.values():
            if command.gate in state.gates:
                # With the end that was decided at admission.
                gate = state.gate_details[command.gate]
                claim = CallClaim(command.by, claim_end(gate, command.at, command.lease))

                def events(state: TurnState = state, gate: Gate = gate, claim: CallClaim = claim) -> list[Event]:
                    at, key = self._now(), command.key
                    if not _is_open(state, gate):
                        return [CommandDropped(at=at, command=key, reason="the gate is no longer open")]
                    return [CallClaimed(turn=state.id, at=at, gate=gate.id, claim=claim, command=key)]

                await self._ledger.commit(events)
                return
        await self._drop(command, "its turn is over")

    async def _notify_call(self, command: NotifyCall) -> None:
        state = self._ledger.turns.get(command.turn)

        def events() -> list[Event]:
            at, key = self._now(), command.key
            call = state.calls.get(command.call) if state is not None else None
            if state is None or state.ending is not None or call is None or call.state not in ("running", "waiting"):
                return [CommandDropped(at=at, command=key, reason="no call waits for it")]
            return [CallNotified(turn=state.id, at=at, call=call.id, command=key)]

        await self._ledger.commit(events)
        if command.turn in self._active:
            self._active[command.turn][0].notify_arrival()

    async def _finish_wait(self, command: FinishWait) -> None:
        state = self._ledger.turns.get(command.turn)
        finished = WaitFinished(
            turn=command.turn,
            at=self._now(),
            call=command.call,
            wait=command.wait,
            value=command.value,
            timed_out=command.timed_out,
            command=command.key,
        )

        def events() -> list[Event]:
            wait = None if state is None or state.ending is not None else state.waits.get(command.wait)
            if wait is None or wait.call != command.call:
                return [CommandDropped(at=finished.at, command=command.key, reason="no call waits for it")]
            return [finished]

        await self._ledger.commit(events)
        if command.turn in self._active:
            self._active[command.turn][0].notify_arrival()

    async def expire_wait(self, state: TurnState, wait: WaitStarted) -> None:
        """Fire a timer, or end the wait for an external result: through admission, where the result may have been first."""
        finish = FinishWait(
            key=wait_key(wait.turn, wait.wait),
            session=self._ledger.session,
            tenant=self._ledger.tenant,
            turn=wait.turn,
            call=wait.call,
            wait=wait.wait,
            timed_out=True,
        )
        if wait.kind == "timer":  # nothing competes with the time
            finish = replace(finish, key="", timed_out=False)
        else:
            with suppress(KeyConflict):
                await self._setup.store.admit(finish)
            inbox = await self._setup.store.inbox(self._ledger.session)
            if any(isinstance(other, FinishWait) and other.key == finish.key for other in inbox):
                self.inbox_changed = True
                return
            finish = replace(finish, key="")  # the key was used for another command
        await self._finish_wait(finish)

    async def _cancel(self, command: Cancel) -> None:
        state = self._ledger.turns.get(command.turn)
        held = self._active.get(command.turn)
        if command.hard and (state is None or state.ending is not None):
            self._setup.tool_tasks.cancel(command.turn)  # the turn is over, but its tools may still run
        if state is None:
            await self._cancel_queued(command)
        elif state.ending is not None:
            if state.ending.command != command.key:  # unless this command ended it
                await self._drop(command, "the turn is ending")
        elif held is not None and not held[1].done() and state.phase is not Phase.WAITING:
            await self._cancel_running(held[0], command)
        else:
            at = self._now()
            ending = TurnFinishing(turn=state.id, at=at, outcome="cancelled", hard=command.hard, command=command.key)
            await self._ledger.commit([ending])

    async def _cancel_running(self, run: ActiveTurn, command: Cancel) -> None:
        if not run.is_cancelled:
            async with self._ledger.write_lock:
                run.cancel(command)
        elif command.hard and run.cancel_request is not None and not run.cancel_request.hard:
            run.cancel_request = command
        elif run.cancel_request != command:
            await self._drop(command, "the turn is being cancelled already")

    async def _cancel_queued(self, command: Cancel) -> None:
        """Cancel a turn that has not started: its command is dropped."""
        inbox = await self._setup.store.inbox(self._ledger.session)
        if all(other.key != command.key for other in inbox):
            return  # this cancel has ended its turn meanwhile
        for other in inbox:
            if isinstance(other, Send) and other.turn == command.turn and self._withdraw_steering(other):
                await self._drop(other, CANCELLED_BEFORE_START)
        await self._drop(command, "the turn is not under way")

    async def _record_late_result(self, command: LateResult) -> None:
        session, turn = self._ledger.session, command.turn
        arrived = LateResultReceived(
            turn=turn, at=self._now(), call=command.call, output=command.output, command=command.key
        )
        try:
            entries = await self._setup.store.events(session, turn=turn)
            fold(entry.event for entry in entries).apply(arrived)
        except InvalidEvent as error:
            await self._drop(command, str(error))
            return
        await self._ledger.commit([arrived])
        for run, _ in self._active.values():
            if run.late is not None:
                run.late[command.call] = arrived

    async def _select(self, command: Select) -> None:
        try:
            if command.step and command.message is not None:
                copy = await self._fork(ForkPoint(command.message, command.step), command.copy)
                await self._ledger.commit([MessagesImported(at=self._now(), messages=(copy,), command=command.key)])
                return
            await self._setup.store.path(self._ledger.session, command.message, 1)
        except (UnknownMessage, CommandRefused) as error:
            await self._drop(command, str(error))
            return
        await self._ledger.commit([LeafSelected(at=self._now(), message=command.message, command=command.key)])

    async def _select_agent(self, command: SelectAgent) -> None:
        if self._ledger.turns:  # it began after admission; its agent may still hand over to another one
            await self._drop(command, "a turn has begun meanwhile: wait until it ends, or cancel it, then try again")
            return
        selected = AgentSelected(at=self._now(), agent=command.agent, by=command.by, command=command.key)
        await self._ledger.commit([selected])

    async def _delete(self, command: Delete) -> None:
        for state in list(self._ledger.turns.values()):
            # Not the path to its tip: that may be folded here and not be written yet.
            branch = await self._setup.store.path(self._ledger.session, state.parent)
            if command.message in state.messages or any(message.id == command.message for message in branch):
                await self._drop(command, "a turn is writing there")
                return
        await self._ledger.commit([MessageDeleted(at=self._now(), message=command.message, command=command.key)])

    async def _import_messages(self, command: ImportMessages) -> bool:
        info = await self._session_info()
        parent = info.leaf if command.at_leaf else command.parent
        if self._is_busy(parent, command.at_leaf):  # admission refuses this; a log of elsewhere may not
            return False
        try:
            await self._setup.store.path(self._ledger.session, parent, 1)
        except UnknownMessage as error:
            await self._drop(command, str(error))
            return True
        messages: list[Message] = []
        for message in command.messages:
            messages.append(replace(message, parent=messages[-1].id if messages else parent))
        first = next((message for message in messages if message.role == "user"), None)
        title = derive_title(first.parts) if first is not None and not info.title else ""
        imported = MessagesImported(
            at=self._now(), messages=tuple(messages), title=title, by=command.by, command=command.key
        )
        await self._ledger.commit([imported])
        return True

    async def _revert(self, command: Revert) -> None:
        if self._ledger.turns:
            await self._drop(command, "a turn is under way; what it does to files would be lost")
            return
        try:
            await revert.revert_files(self._setup, self._ledger, command)
        except CommandRefused as error:
            await self._drop(command, str(error))

    async def expire_gate(self, gate: Gate, reason: str = EXPIRED) -> None:
        """Deny an expired gate, through admission, where a person's answer may have been first."""
        resolution = GateResolution(False, reason, by="everturn")
        expired = ResolveGate(
            key=f"expired:{gate.id}",
            session=self._ledger.session,
            tenant=self._ledger.tenant,
            gate=gate.id,
            hash=gate.hash,
            resolution=resolution,
        )
        try:
            await self._setup.store.admit(expired)
        except GateClosed:
            log.info("gate %s was answered before it expired", gate.id)
        except KeyConflict:  # the key was used for another command
            await self._setup.store.admit(replace(expired, key=f"expired:{gate.id}:{gate.hash}"))
        self.inbox_changed = True


def _stop_event(state: TurnState, gate: Gate, resolution: GateResolution, at: float) -> LimitReached:
    """The record of who stopped a turn with a denial, and why; a result can say so."""
    action = f"denied {gate.tool}" if gate.tool else "denied"
    reason = f": {resolution.reason}" if resolution.reason else ""
    text = f"{resolution.by or 'a person'} {action} and stopped the turn{reason}"
    return LimitReached(turn=state.id, at=at, limit="denied", scope="turn", text=text)


def _is_open(state: TurnState, gate: Gate) -> bool:
    """Whether a gate can still be answered."""
    return state.phase in (Phase.TOOL_CALL, Phase.WAITING) and state.ending is None and state.is_gate_open(gate.id)
