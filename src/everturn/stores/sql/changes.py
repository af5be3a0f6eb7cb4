"""Events → rows: what an append changes beside the log itself. Pure.

A `Shadow` is what must be known of a session for that: where its log is, what is selected, and the messages of turns
that are still being written. It is a fold like any other; whoever has none reads it from the database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from msgspec import Struct, field

from everturn.core.events import (
    AnswerOpened,
    CallSettled,
    CommandDropped,
    Entry,
    Event,
    GateAnswered,
    GateOpened,
    LateArrived,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    StepRestarted,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnFailed,
    TurnParked,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.tree import Tree
from everturn.stores.mentions import blobs_in
from everturn.wire import dump, dump_gate, dump_verdict

TERMINAL: dict[type[Event], str] = {TurnCompleted: "completed", TurnFailed: "error", TurnCancelled: "cancelled"}

Values = tuple[Any, ...]


class Live(Struct):
    """A turn that is open, or whose tools are still out."""

    started: int  # the position of its first event
    last: int = 0  # of its last, once it is over
    state: str = "busy"  # busy | parked | over
    deadline: float = 0.0
    out: set[str] = set()  # calls whose tools outlived them
    asked: dict[str, str] = {}  # gates that stand open -> their calls
    messages: dict[str, Message] = {}  # as they joined


class Rows(Struct):
    """What an append writes, table by table, keyed by what the session is not needed for."""

    events: list[tuple[int, str, bytes]] = []  # seq, turn, body
    joined: list[tuple[int, str, Message]] = []  # seq, turn, message
    finished: dict[str, Message] = {}
    turns: dict[str, Live] = {}
    opened: list[Values] = []  # gate, turn, call, expires, opened, body
    answered: list[tuple[str, bytes]] = []  # gate, verdict
    closed: list[str] = []  # gates: there is nothing left to ask
    acted_on: list[str] = []  # keys of commands
    usage: list[Values] = []  # turn, at, outcome, input … cost
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
            timeout = cast("TurnStarted", event).options.timeout
            rows.turns[turn] = self.turns[turn] = Live(seq, deadline=event.at + timeout if timeout else 0.0)
        live = self.turns.get(turn)
        if live is None:
            return
        move = _MOVED.get(kind)
        if move is not None:
            move(live, event, rows)
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
    if event.input is not None:
        live.messages[event.input.id] = event.input


def _asks(live: Live, event: GateOpened, rows: Rows) -> None:
    live.asked[event.gate.id] = event.gate.call


def _answers(live: Live, event: GateAnswered, rows: Rows) -> None:
    live.asked.pop(event.gate, None)


def _settles(live: Live, event: CallSettled, rows: Rows) -> None:
    if live.asked:
        _close(live, [gate for gate, call in live.asked.items() if call == event.call], rows)
    if event.out:
        live.out.add(event.call)
        rows.turns[event.turn] = live


def _arrives(live: Live, event: LateArrived, rows: Rows) -> None:
    live.out.discard(event.call)
    rows.turns[event.turn] = live


def _ends(live: Live, event: TurnEnding, rows: Rows) -> None:
    _close(live, list(live.asked), rows)


def _close(live: Live, gates: list[str], rows: Rows) -> None:
    rows.closed += gates
    for gate in gates:
        del live.asked[gate]


_MOVED: dict[type[Event], Callable[[Live, Any, Rows], None]] = {
    TurnStarted: _starts,
    AnswerOpened: _joins,
    MessageAdded: _joins,
    GateOpened: _asks,
    GateAnswered: _answers,
    CallSettled: _settles,
    LateArrived: _arrives,
    TurnEnding: _ends,
}


# What an event says of other rows.


def _note_start(seq: int, event: TurnStarted, rows: Rows) -> None:
    _note_command(seq, event, rows)
    if event.input is not None:
        rows.joined.append((seq, event.turn, event.input))


def _note_message(seq: int, event: AnswerOpened | MessageAdded, rows: Rows) -> None:
    rows.joined.append((seq, event.turn, event.message))


def _note_gate(seq: int, event: GateOpened, rows: Rows) -> None:
    gate = event.gate
    rows.opened.append((gate.id, gate.turn, gate.call, gate.expires, event.at, dump_gate(gate)))


def _note_answer(seq: int, event: GateAnswered, rows: Rows) -> None:
    _note_command(seq, event, rows)
    rows.answered.append((event.gate, dump_verdict(event.verdict)))


def _note_end(seq: int, event: TurnCompleted | TurnFailed | TurnCancelled, rows: Rows) -> None:
    u = event.usage
    counts = (u.input, u.output, u.cached, u.reasoning, u.written, u.cost)
    rows.usage.append((event.turn, event.at, TERMINAL[type(event)], *counts))


def _note_command(seq: int, event: Any, rows: Rows) -> None:
    if event.command:
        rows.acted_on.append(event.command)


_NOTED: dict[type[Event], Callable[[int, Any, Rows], None]] = {
    TurnStarted: _note_start,
    AnswerOpened: _note_message,
    MessageAdded: _note_message,
    GateOpened: _note_gate,
    GateAnswered: _note_answer,
    TurnCompleted: _note_end,
    TurnFailed: _note_end,
    TurnCancelled: _note_end,
    **dict.fromkeys((LateArrived, TurnEnding, LeafSelected, MessageDeleted, CommandDropped), _note_command),
}
