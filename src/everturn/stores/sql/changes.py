"""Events → rows: what an append changes beside the log itself. Pure.

A `Shadow` is what must be known of a session for that: where its log is, what is selected, and the messages of turns
that are still being written. It is a fold like any other; whoever has none reads it from the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct, field

from everturn.core.asking import Gate, Grant
from everturn.core.events import (
    AnswerOpened,
    CallSettled,
    CallStarted,
    CallStirred,
    CommandDropped,
    Entry,
    Event,
    FilesChanged,
    FilesReverted,
    GateAnswered,
    GateClaimed,
    GateOpened,
    GrantRevoked,
    LateArrived,
    LeafSelected,
    LimitReached,
    MessageAdded,
    MessageDeleted,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnFailed,
    TurnParked,
    TurnStarted,
)
from everturn.core.gates import due_of
from everturn.core.messages import Message
from everturn.core.options import Lineage
from everturn.core.parts import Usage
from everturn.core.tree import Tree
from everturn.stores.mentions import blobs_in
from everturn.wire import dump, dump_claim, dump_gate, dump_verdict

TERMINAL: dict[type[Event], str] = {TurnCompleted: "completed", TurnFailed: "error", TurnCancelled: "cancelled"}

Values = tuple[Any, ...]


class Live(Struct):
    """A turn that is open, or whose tools are still out."""

    started: int  # the position of its first event
    last: int = 0  # of its last, once it is over
    state: str = "busy"  # busy | parked | over
    deadline: float = 0.0  # when it is ended, or has used up its time
    last_deadline: float = 0.0  # once it has reached a limit
    out: set[str] = set()  # calls whose tools outlived them
    asked: dict[str, Gate] = {}  # gates that stand open
    messages: dict[str, Message] = {}  # as they joined
    above: Lineage | None = None
    steps: int = 0
    calls: int = 0
    usage: Usage = Usage()
    moved: float = 0.0  # when it last ended a step, or ended
    outcome: str = ""
    agent: str = ""


class Rows(Struct):
    """What an append writes, table by table, keyed by what the session is not needed for."""

    events: list[tuple[int, str, bytes]] = []  # seq, turn, body
    joined: list[tuple[int, str, Message]] = []  # seq, turn, message
    finished: dict[str, Message] = {}
    turns: dict[str, Live] = {}
    opened: list[Values] = []  # gate, turn, call, expires, opened, body
    claimed: dict[str, tuple[bytes, float, list[str]]] = {}  # gate -> the last claim, when it is due, all commands
    answered: list[tuple[str, bytes]] = []  # gate, verdict
    closed: list[str] = []  # gates: there is nothing left to ask
    acted_on: list[str] = []  # keys of commands
    used: dict[str, Live] = {}  # turns that have used something since, or are over
    granted: list[Grant] = []
    revoked: list[str] = []  # grants
    trees: dict[str, str] = {}  # root -> the one that was recorded last
    mentions: set[str] = set()  # blobs
    at: float = 0.0  # the time of the last of them
    has_moved: bool = False  # more happened than that a step began again


class Shadow(Struct):
    """A session as its next append finds it. `tree` holds the messages of live turns only."""

    tenant: str
    head: int = 0
    tree: Tree = field(default_factory=Tree)
    turns: dict[str, Live] = {}

    @classmethod
    def of(cls, tenant: str, head: int, leaf: str | None, title: str, entries: Iterable[Entry]) -> Shadow:
        """The shadow of a session, from its row and the events of its live turns."""
        shadow = cls(tenant)
        shadow.recall(entries)
        shadow.head, shadow.tree.leaf, shadow.tree.title = head, leaf, title
        return shadow

    def recall(self, entries: Iterable[Entry]) -> None:
        """Know a turn again that was forgotten when it was over: something has come for it after all."""
        head, leaf, title, nowhere = self.head, self.tree.leaf, self.tree.title, Rows()
        for entry in entries:
            self.apply(entry.seq, entry.event, nowhere)
        self.head, self.tree.leaf, self.tree.title = head, leaf, title

    def apply(self, seq: int, event: Event, rows: Rows) -> None:
        """Take one event in, and note the rows it changes."""
        kind = type(event)
        self.head = seq
        if kind is not MessageDeleted:  # what is below a message only the database knows
            self.tree.apply(event)
        if kind is not StepRestarted:
            rows.has_moved = True
        if blobs := blobs_in(event):
            rows.mentions.update(blobs)
        note = _NOTED.get(kind)
        if note is not None:
            note(seq, event, rows)
        turn = getattr(event, "turn", "")
        if kind is TurnStarted:
            rows.turns[turn] = self.turns[turn] = Live(seq)
        live = self.turns.get(turn)
        if live is None:
            return
        move = _MOVED.get(kind)
        if move is not None:
            move(live, event, rows)
        if kind is GateClaimed and live.state != "over":  # with that it waits on
            return
        state = "over" if kind in TERMINAL or live.state == "over" else "parked" if kind is TurnParked else "busy"
        if state != live.state:
            live.state, rows.turns[turn] = state, live
        if state == "over":
            live.last, rows.turns[turn] = seq, live
            if kind in TERMINAL or kind is LateArrived:
                self._finish(live, rows)

    def _finish(self, live: Live, rows: Rows) -> None:
        messages = self.tree.messages
        for name, joined in live.messages.items():
            # One that nothing was added to stands in the database as it is; an answer is complete only now.
            if (message := messages[name]) is not joined or message.role == "assistant":
                rows.finished[name] = message

    def forget(self, turn: str) -> None:
        """Let go of a turn that is over: nothing of it is written any more."""
        tree, live = self.tree, self.turns.pop(turn)
        for name in live.messages:
            tree.children.pop(tree.messages.pop(name).parent, None)
        tree.writing.pop(turn, None)
        if tree.calls:
            tree.calls = {call: at for call, at in tree.calls.items() if at not in live.messages}


def project(shadow: Shadow, after: int, events: Sequence[Event]) -> Rows:
    """The rows an append writes; the shadow is then as after it."""
    rows = Rows()
    for seq, event in enumerate(events, after + 1):
        rows.events.append((seq, getattr(event, "turn", ""), dump(event)))
        shadow.apply(seq, event, rows)
    for turn, live in rows.turns.items():
        if live.state == "over" and not live.out:
            shadow.forget(turn)
    if events:
        rows.at = events[-1].at
    return rows


# What an event changes in its turn, by exact type: a class pattern that misses on a Struct costs more than most of these.


def _joins(live: Live, event: Any, rows: Rows) -> None:
    live.messages[event.message.id] = event.message


def _starts(live: Live, event: TurnStarted, rows: Rows) -> None:
    options = event.options
    live.deadline, live.last_deadline = options.due(event.at, False), options.due(event.at, True)
    live.above, live.agent, live.moved = options.above, options.agent, event.at
    if event.input is not None:
        live.messages[event.input.id] = event.input


def _steps(live: Live, event: StepFinished | StepInterrupted, rows: Rows) -> None:
    live.steps, live.usage, live.moved = live.steps + 1, live.usage + event.usage, event.at
    rows.used[event.turn] = live


def _begins(live: Live, event: CallStarted, rows: Rows) -> None:
    live.calls += 1
    rows.used[event.turn] = live


def _limits(live: Live, event: LimitReached, rows: Rows) -> None:
    if event.limit == "seconds" and live.deadline != live.last_deadline:
        live.deadline, rows.turns[event.turn] = live.last_deadline, live


def _asks(live: Live, event: GateOpened, rows: Rows) -> None:
    live.asked[event.gate.id] = event.gate


def _answers(live: Live, event: GateAnswered, rows: Rows) -> None:
    live.asked.pop(event.gate, None)


def _claims(live: Live, event: GateClaimed, rows: Rows) -> None:
    gate = live.asked.get(event.gate)
    if gate is not None:  # of one that is closed it does not matter any more
        _, _, commands = rows.claimed.get(gate.id, (b"", 0.0, []))
        rows.claimed[gate.id] = (dump_claim(event.claim), due_of(gate, event.claim), [*commands, event.command])


def _settles(live: Live, event: CallSettled, rows: Rows) -> None:
    if live.asked:
        _close(live, [name for name, gate in live.asked.items() if gate.call == event.call], rows)
    if event.out:
        live.out.add(event.call)
        rows.turns[event.turn] = live


def _arrives(live: Live, event: LateArrived, rows: Rows) -> None:
    live.out.discard(event.call)
    rows.turns[event.turn] = live


def _ends(live: Live, event: TurnEnding, rows: Rows) -> None:
    _close(live, list(live.asked), rows)


def _is_over(live: Live, event: TurnCompleted | TurnFailed | TurnCancelled, rows: Rows) -> None:
    live.outcome, live.moved, rows.used[event.turn] = TERMINAL[type(event)], event.at, live


def _close(live: Live, gates: list[str], rows: Rows) -> None:
    rows.closed += gates
    for gate in gates:
        del live.asked[gate]


_MOVED: dict[type[Event], Callable[[Live, Any, Rows], None]] = {
    TurnStarted: _starts,
    AnswerOpened: _joins,
    MessageAdded: _joins,
    StepFinished: _steps,
    StepInterrupted: _steps,
    CallStarted: _begins,
    LimitReached: _limits,
    GateOpened: _asks,
    GateClaimed: _claims,
    GateAnswered: _answers,
    CallSettled: _settles,
    LateArrived: _arrives,
    TurnEnding: _ends,
    **dict.fromkeys(TERMINAL, _is_over),
}


# What an event says of other rows.


def _note_start(seq: int, event: TurnStarted, rows: Rows) -> None:
    _note_command(seq, event, rows)
    if event.input is not None:
        rows.joined.append((seq, event.turn, event.input))


def _note_message(seq: int, event: AnswerOpened | MessageAdded, rows: Rows) -> None:
    rows.joined.append((seq, event.turn, event.message))


def _note_append(seq: int, event: MessageAdded, rows: Rows) -> None:
    _note_command(seq, event, rows)
    _note_message(seq, event, rows)


def _note_gate(seq: int, event: GateOpened, rows: Rows) -> None:
    gate = event.gate
    rows.opened.append((gate.id, gate.turn, gate.call, gate.expires, event.at, dump_gate(gate)))


def _note_answer(seq: int, event: GateAnswered, rows: Rows) -> None:
    _note_command(seq, event, rows)
    rows.answered.append((event.gate, dump_verdict(event.verdict)))
    if event.grant is not None:
        rows.granted.append(event.grant)


def _note_revoked(seq: int, event: GrantRevoked, rows: Rows) -> None:
    _note_command(seq, event, rows)
    rows.revoked.append(event.grant)


def _note_tree(seq: int, event: FilesChanged, rows: Rows) -> None:
    rows.trees[event.root] = event.after


def _note_revert(seq: int, event: FilesReverted, rows: Rows) -> None:
    _note_command(seq, event, rows)
    rows.trees[event.root] = event.after


def _note_command(seq: int, event: Any, rows: Rows) -> None:
    if event.command:
        rows.acted_on.append(event.command)


_NOTED: dict[type[Event], Callable[[int, Any, Rows], None]] = {
    TurnStarted: _note_start,
    AnswerOpened: _note_message,
    MessageAdded: _note_append,
    GateOpened: _note_gate,
    GateAnswered: _note_answer,
    GrantRevoked: _note_revoked,
    FilesChanged: _note_tree,
    FilesReverted: _note_revert,
    **dict.fromkeys((GateClaimed, CallStirred, LateArrived, TurnEnding), _note_command),
    **dict.fromkeys((LeafSelected, MessageDeleted, CommandDropped), _note_command),
}
