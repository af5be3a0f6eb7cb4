"""Projections: computes the rows that an append changes beside the log itself. Pure.

A `SessionProjection` is the state of a session that this needs: the position of its log, the selected leaf, and the
messages of turns that are still being written. It is a fold like any other; a store without it reads it from the
database.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from everturn.core.events import (
    AgentSelected,
    AnswerRated,
    AnswerStarted,
    CallClaimed,
    CallFinished,
    CallNotified,
    CallStarted,
    CommandDropped,
    CompactionFailed,
    CompactionFinished,
    Entry,
    Event,
    FilesChanged,
    FilesReverted,
    FileUploadChanged,
    GateOpened,
    GateResolved,
    GrantRevoked,
    InputRefused,
    InstructionsSet,
    LateResultReceived,
    LeafSelected,
    LimitReached,
    MessageAdded,
    MessageDeleted,
    MessagesImported,
    RequestRetried,
    SessionUpdated,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    TitleSet,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnFinishing,
    TurnStarted,
    TurnSuspended,
    WaitFinished,
    WaitStarted,
)
from everturn.core.gate_rows import gate_deadline
from everturn.core.gates import Gate, Grant
from everturn.core.messages import Message
from everturn.core.options import Lineage
from everturn.core.parts import ToolPart, Usage
from everturn.core.projections.event_index import index_key
from everturn.core.state import TurnState
from everturn.core.tree import MessageTree
from everturn.core.waits import OpenWaits, apply_to_waits, next_wait
from everturn.core.webhooks import webhook_event
from everturn.stores.blob_refs import referenced_blobs
from everturn.stores.memory_usage import usage_time
from everturn.wire import dump_claim, dump_event, dump_gate, dump_resolution

TERMINAL: dict[type[Event], str] = {TurnCompleted: "completed", TurnFailed: "error", TurnCancelled: "cancelled"}

Values = tuple[Any, ...]


class LiveTurn(Struct):
    """A turn that is open, or whose tools still run."""

    started: int  # the position of its first event
    last: int = 0  # of its last, once it is over
    state: str = "busy"  # busy | suspended | over
    deadline: float = 0.0  # when its time limit or its grace period ends
    last_deadline: float = 0.0  # the deadline once it has reached a limit
    waits: OpenWaits = {}  # of its tools
    out: set[str] = set()  # calls whose tools still run after they were answered
    open_gates: dict[str, Gate] = {}  # open gates
    messages: dict[str, Message] = {}  # as they were added
    lineage: Lineage | None = None
    steps: int = 0
    calls: int = 0
    usage: Usage = Usage()
    moved: float = 0.0  # when its last step, or the turn itself, ended; see `usage_time`
    outcome: str = ""
    agent: str = ""
    by: str = ""  # the user who started it
    model: str = ""  # of its last step
    has_snapshot: bool = False  # the database has one, to be dropped when the turn ends

    @property
    def due(self) -> float:
        """When the turn has to be driven next, whatever arrives; 0: never."""
        return min((time for time in (self.deadline, next_wait(self.waits)) if time), default=0.0)


class _StoredLiveTurn(Struct):
    """A live turn in a snapshot, without its messages, which its fold has."""

    live: LiveTurn
    waits: list[tuple[str, str, dict[str, float]]]  # turn, call, waits


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_StoredLiveTurn).decode


def dump_live_turn(live: LiveTurn) -> bytes:
    """Write a live turn for a snapshot."""
    waits = [(turn, call, waits) for (turn, call), waits in live.waits.items()]
    return _encode(_StoredLiveTurn(replace(live, waits={}, messages={}), waits))


def load_live_turn(data: bytes, state: TurnState) -> LiveTurn:
    """Read a live turn of a snapshot; its messages are those of the fold.

    Raises:
        DecodeError: these bytes are none.
    """
    stored = _decode(data)
    waits = {(turn, call): waits for turn, call, waits in stored.waits}
    return replace(stored.live, waits=waits, messages=dict(state.messages))


class ProjectionRows(Struct):
    """The rows that an append writes, by table, without the session."""

    events: list[tuple[int, str, bytes]] = []  # seq, turn, body
    keys: list[tuple[str, str, int]] = []  # kind, key, seq: see `core.projections.event_index`
    joined: list[tuple[int, str, Message]] = []  # seq, turn, message
    finished: dict[str, Message] = {}
    turns: dict[str, LiveTurn] = {}
    opened: list[Values] = []  # gate, turn, call, expires, opened, body
    claimed: dict[str, tuple[bytes, float, list[str]]] = {}  # gate -> the last claim, when it is due, all commands
    answered: list[tuple[str, bytes]] = []  # gate, resolution
    closed: list[str] = []  # gates that were closed without an answer
    acted_on: list[str] = []  # keys of commands
    used: dict[str, LiveTurn] = {}  # turns whose usage changed, or that are over
    snapshots: list[Values] = []  # turn, seq, fold, state, projection
    without_snapshot: list[str] = []  # turns that had one, and are over
    granted: list[Grant] = []
    revoked: list[str] = []  # grants
    trees: dict[str, str] = {}  # root -> the one that was recorded last
    mentions: set[str] = set()  # blobs
    organized: SessionUpdated | None = None  # what the append changes in how the session is listed
    outbox: list[tuple[int, str, float, str]] = []  # seq, type, time, data: see `core.webhooks`
    at: float = 0.0  # the time of the last of them
    has_moved: bool = False  # more happened than the restart of a step


class SessionProjection(Struct):
    """The state of a session that its next append needs. `tree` holds the messages of live turns only."""

    tenant: str
    head: int = 0
    tree: MessageTree = field(default_factory=MessageTree)
    turns: dict[str, LiveTurn] = {}

    @classmethod
    def from_entries(
        cls,
        tenant: str,
        head: int,
        leaf: str | None,
        title: str,
        agent: str,
        entries: Iterable[Entry],
        folded: Sequence[tuple[TurnState, LiveTurn]] = (),
        with_snapshot: Collection[str] = (),
        is_renamed: bool = False,
    ) -> SessionProjection:
        """Build the projection of a session from its row, the snapshots of its live turns and the events after them."""
        messages = [message for state, _ in folded for message in state.messages.values()]
        tree = MessageTree.from_messages(messages, set(), leaf=leaf, title=title, agent=agent, is_renamed=is_renamed)
        tree.writing = {state.id: state.answer for state, _ in folded if state.answer is not None}
        tree.calls = {call.id: call.message for state, _ in folded for call in state.calls.values()}
        projection = cls(tenant, tree=tree, turns={state.id: live for state, live in folded})
        projection.reload_turn(entries)
        tree = projection.tree
        projection.head, tree.leaf, tree.title, tree.agent = head, leaf, title, agent
        for turn in with_snapshot:
            projection.turns[turn].has_snapshot = True
        return projection

    def reload_turn(self, entries: Iterable[Entry]) -> None:
        """Load a finished turn again: a late event has arrived for it."""
        tree, head, discarded = self.tree, self.head, ProjectionRows()
        leaf, title, agent = tree.leaf, tree.title, tree.agent
        for entry in entries:
            self.apply(entry.seq, entry.event, discarded)
        self.head, tree.leaf, tree.title, tree.agent = head, leaf, title, agent

    def apply(self, seq: int, event: Event, rows: ProjectionRows) -> None:
        """Apply one event, and record the rows it changes."""
        kind = type(event)
        self.head = seq
        if kind is not MessageDeleted:  # only the database knows the descendants of a message
            self.tree.apply(event)
        if kind not in (StepRestarted, RequestRetried, FileUploadChanged):
            rows.has_moved = True
        if blobs := referenced_blobs(event):
            rows.mentions.update(blobs)
        note = _ROW_HANDLERS.get(kind)
        if note is not None:
            note(seq, event, rows)
        turn = getattr(event, "turn", "")
        if kind is TurnStarted:
            rows.turns[turn] = self.turns[turn] = LiveTurn(seq)
        live = self.turns.get(turn)
        if live is None:
            return
        move = _TURN_HANDLERS.get(kind)
        if move is not None:
            move(live, event, rows)
        if kind is CallClaimed and live.state != "over":  # a claim leaves the turn suspended
            return
        state = "over" if kind in TERMINAL or live.state == "over" else "suspended" if kind is TurnSuspended else "busy"
        if state != live.state:
            live.state, rows.turns[turn] = state, live
        if state == "over":
            live.last, rows.turns[turn] = seq, live
            if kind in TERMINAL or kind is LateResultReceived:
                self._finish(live, rows)

    def _finish(self, live: LiveTurn, rows: ProjectionRows) -> None:
        messages = self.tree.messages
        for name, joined in live.messages.items():
            # A message that did not change is in the database already; an answer is complete only now.
            if (message := messages[name]) is not joined or message.role == "assistant":
                rows.finished[name] = message

    def drop_turn(self, turn: str) -> None:
        """Drop a turn that is over: nothing of it is written any more."""
        tree, live = self.tree, self.turns.pop(turn)
        for name in live.messages:
            for part in tree.messages[name].parts:
                if type(part) is ToolPart:
                    tree.calls.pop(part.call, None)
        self.forget_messages(live.messages)
        tree.writing.pop(turn, None)

    def forget_messages(self, names: Iterable[str]) -> None:
        """Drop messages that nothing completes any more."""
        for name in names:
            self.tree.children.pop(self.tree.messages.pop(name).parent, None)


def project(projection: SessionProjection, after: int, events: Sequence[Event]) -> ProjectionRows:
    """Return the rows that an append writes, and update the projection."""
    rows = ProjectionRows()
    for seq, event in enumerate(events, after + 1):
        rows.events.append((seq, getattr(event, "turn", ""), dump_event(event)))
        if (key := index_key(event)) is not None:
            rows.keys.append((*key, seq))
        if (outbox_event := webhook_event(event)) is not None:
            rows.outbox.append((seq, outbox_event[0], event.at, outbox_event[1]))
        projection.apply(seq, event, rows)
        if isinstance(event, MessagesImported):
            projection.forget_messages(message.id for message in event.messages)
    for turn, live in rows.turns.items():
        if live.state == "over" and not live.out:
            projection.drop_turn(turn)
    if events:
        rows.at = events[-1].at
    return rows


# What an event changes in its turn, by exact type: a class pattern that misses on a Struct costs more than most of these.


def _joins(live: LiveTurn, event: Any, rows: ProjectionRows) -> None:
    live.messages[event.message.id] = event.message


def _answers_with(live: LiveTurn, event: AnswerStarted, rows: ProjectionRows) -> None:
    live.model = event.message.by
    _joins(live, event, rows)


def _refuses(live: LiveTurn, event: InputRefused, rows: ProjectionRows) -> None:
    message = live.messages.get(event.message)
    if message is not None and message.turn == event.turn:
        # Written at once, and its terms are taken out of the search index; see `append`.
        rows.finished[message.id] = replace(message, refused=True)


def _starts(live: LiveTurn, event: TurnStarted, rows: ProjectionRows) -> None:
    options = event.options
    live.deadline, live.last_deadline = options.due(event.at, False), options.due(event.at, True)
    live.lineage, live.agent, live.by, live.moved = options.lineage, options.agent, options.by, event.at
    if event.input is not None:
        live.messages[event.input.id] = event.input


def _steps(live: LiveTurn, event: StepFinished | StepInterrupted, rows: ProjectionRows) -> None:
    live.steps, live.usage, live.moved = live.steps + 1, live.usage + event.usage, usage_time(live.moved, event.at)
    live.model = getattr(event, "model", "") or live.model  # a fallback
    rows.used[event.turn] = live


def _compacts(live: LiveTurn, event: CompactionFinished | CompactionFailed, rows: ProjectionRows) -> None:
    live.usage, live.moved = live.usage + event.usage, usage_time(live.moved, event.at)
    rows.used[event.turn] = live


def _names(live: LiveTurn, event: TitleSet, rows: ProjectionRows) -> None:
    if event.model:
        live.usage, live.moved = live.usage + event.usage, usage_time(live.moved, event.at)
        rows.used[event.turn] = live


def _begins(live: LiveTurn, event: CallStarted, rows: ProjectionRows) -> None:
    live.calls += 1
    rows.used[event.turn] = live


def _limits(live: LiveTurn, event: LimitReached, rows: ProjectionRows) -> None:
    if event.limit == "seconds" and live.deadline != live.last_deadline:
        live.deadline, rows.turns[event.turn] = live.last_deadline, live


def _asks(live: LiveTurn, event: GateOpened, rows: ProjectionRows) -> None:
    live.open_gates[event.gate.id] = event.gate
    if apply_to_waits(live.waits, event):
        rows.turns[event.turn] = live


def _answers(live: LiveTurn, event: GateResolved, rows: ProjectionRows) -> None:
    live.open_gates.pop(event.gate, None)


def _claims(live: LiveTurn, event: CallClaimed, rows: ProjectionRows) -> None:
    gate = live.open_gates.get(event.gate)
    if gate is not None:  # a claim on a closed gate is void
        _, _, commands = rows.claimed.get(gate.id, (b"", 0.0, []))
        rows.claimed[gate.id] = (dump_claim(event.claim), gate_deadline(gate, event.claim), [*commands, event.command])


def _waits(live: LiveTurn, event: WaitStarted | WaitFinished, rows: ProjectionRows) -> None:
    if apply_to_waits(live.waits, event):
        rows.turns[event.turn] = live


def _finish_call(live: LiveTurn, event: CallFinished, rows: ProjectionRows) -> None:
    if apply_to_waits(live.waits, event):
        rows.turns[event.turn] = live
    if live.open_gates:
        _close(live, [name for name, gate in live.open_gates.items() if gate.call == event.call], rows)
    if event.still_running:
        live.out.add(event.call)
        rows.turns[event.turn] = live


def _arrives(live: LiveTurn, event: LateResultReceived, rows: ProjectionRows) -> None:
    live.out.discard(event.call)
    rows.turns[event.turn] = live


def _ends(live: LiveTurn, event: TurnFinishing, rows: ProjectionRows) -> None:
    _close(live, list(live.open_gates), rows)
    if apply_to_waits(live.waits, event):
        rows.turns[event.turn] = live


def _is_over(live: LiveTurn, event: TurnCompleted | TurnFailed | TurnCancelled, rows: ProjectionRows) -> None:
    live.outcome, live.moved = TERMINAL[type(event)], usage_time(live.moved, event.at)
    rows.used[event.turn] = live
    if live.has_snapshot:
        live.has_snapshot = False
        rows.without_snapshot.append(event.turn)


def _close(live: LiveTurn, gates: list[str], rows: ProjectionRows) -> None:
    rows.closed += gates
    for gate in gates:
        del live.open_gates[gate]


_TURN_HANDLERS: dict[type[Event], Callable[[LiveTurn, Any, ProjectionRows], None]] = {
    TurnStarted: _starts,
    AnswerStarted: _answers_with,
    MessageAdded: _joins,
    InputRefused: _refuses,
    StepFinished: _steps,
    StepInterrupted: _steps,
    CompactionFinished: _compacts,
    CompactionFailed: _compacts,
    TitleSet: _names,
    CallStarted: _begins,
    LimitReached: _limits,
    GateOpened: _asks,
    CallClaimed: _claims,
    GateResolved: _answers,
    WaitStarted: _waits,
    WaitFinished: _waits,
    CallFinished: _finish_call,
    LateResultReceived: _arrives,
    TurnFinishing: _ends,
    **dict.fromkeys(TERMINAL, _is_over),
}


# What an event changes in other tables.


def _note_start(seq: int, event: TurnStarted, rows: ProjectionRows) -> None:
    _note_command(seq, event, rows)
    if event.input is not None:
        rows.joined.append((seq, event.turn, event.input))


def _note_message(seq: int, event: AnswerStarted | MessageAdded, rows: ProjectionRows) -> None:
    rows.joined.append((seq, event.turn, event.message))


def _note_append(seq: int, event: MessageAdded, rows: ProjectionRows) -> None:
    _note_command(seq, event, rows)
    _note_message(seq, event, rows)


def _note_import(seq: int, event: MessagesImported, rows: ProjectionRows) -> None:
    _note_command(seq, event, rows)
    rows.joined += [(seq, "", message) for message in event.messages]


def _note_gate(seq: int, event: GateOpened, rows: ProjectionRows) -> None:
    gate = event.gate
    rows.opened.append((gate.id, gate.turn, gate.call, gate.expires, event.at, dump_gate(gate)))


def _note_answer(seq: int, event: GateResolved, rows: ProjectionRows) -> None:
    _note_command(seq, event, rows)
    rows.answered.append((event.gate, dump_resolution(event.resolution)))
    if event.grant is not None:
        rows.granted.append(event.grant)


def _note_revoked(seq: int, event: GrantRevoked, rows: ProjectionRows) -> None:
    _note_command(seq, event, rows)
    rows.revoked.append(event.grant)


def _note_tree(seq: int, event: FilesChanged, rows: ProjectionRows) -> None:
    rows.trees[event.root] = event.after


def _note_revert(seq: int, event: FilesReverted, rows: ProjectionRows) -> None:
    _note_command(seq, event, rows)
    rows.trees[event.root] = event.after


def _note_organized(seq: int, event: SessionUpdated, rows: ProjectionRows) -> None:
    _note_command(seq, event, rows)
    before = rows.organized
    if before is not None:  # one row is written for an append
        fields = ("title", "pinned", "archived", "labels")
        kept = {name: getattr(before, name) for name in fields if getattr(event, name) is None}
        event = replace(event, at=max(before.at, event.at), **kept)
    rows.organized = event


def _note_command(seq: int, event: Any, rows: ProjectionRows) -> None:
    if event.command:
        rows.acted_on.append(event.command)


_ROW_HANDLERS: dict[type[Event], Callable[[int, Any, ProjectionRows], None]] = {
    TurnStarted: _note_start,
    AnswerStarted: _note_message,
    MessageAdded: _note_append,
    MessagesImported: _note_import,
    GateOpened: _note_gate,
    GateResolved: _note_answer,
    GrantRevoked: _note_revoked,
    FilesChanged: _note_tree,
    FilesReverted: _note_revert,
    SessionUpdated: _note_organized,
    **dict.fromkeys((CallClaimed, CallNotified, WaitFinished, LateResultReceived, TurnFinishing), _note_command),
    **dict.fromkeys((LeafSelected, AgentSelected, InstructionsSet, AnswerRated), _note_command),
    **dict.fromkeys((MessageDeleted, CommandDropped), _note_command),
}
