"""The events of a session → what there is of it: the tree, the turns, and what streams at the moment. Pure."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from everturn.api import GateView, Item, QueuedView
from everturn.core.asking import Gate
from everturn.core.deltas import CallDelta, CallProgress, Delta, ReasoningDelta
from everturn.core.events import (
    CallSettled,
    CallStarted,
    Event,
    LateArrived,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    Terminal,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.state import TurnState
from everturn.core.tree import Tree

MOST_PROGRESS = 200  # rows that are kept of what a call says of itself: the last ones


class Live(Struct):
    """A part that still streams; `pieces` are joined by whoever draws it."""

    kind: Literal["text", "reasoning", "call"]
    pieces: list[str] = field(default_factory=list[str])
    call: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        """What has come so far."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class StepTimes(Struct):
    """When a step began and ended, and how often it had to begin again."""

    began: float = 0.0
    ended: float = 0.0
    restarts: int = 0
    closing: bool = False


class SessionState(Struct):
    """What the events of a session come to. Owned by whoever folds; everyone else reads."""

    seq: int = 0
    tree: Tree = field(default_factory=Tree)
    turns: dict[str, TurnState] = field(default_factory=dict[str, TurnState])
    ends: dict[str, Terminal] = field(default_factory=dict[str, Terminal])  # turn -> how it ended
    steps: dict[str, dict[int, StepTimes]] = field(default_factory=dict[str, dict[int, StepTimes]])
    live: dict[str, dict[int, Live]] = field(default_factory=dict[str, dict[int, Live]])  # turn -> part -> what came
    progress: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # call -> what it said of itself
    times: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])  # call -> from, to
    queued: list[QueuedView] = field(default_factory=list[QueuedView])  # not in the log: whoever follows asks for it
    below: list[GateView] = field(default_factory=list[GateView])  # what sub-turns ask; it is in the logs of theirs

    def apply(self, item: Item) -> str:
        """Take one item of the stream in; the turn that it is about, or ""."""
        if item.event is not None:
            self.seq = max(self.seq, item.seq)
            return self._event(item.event)
        if item.delta is not None:
            self._delta(item.delta)
            return item.delta.turn
        if item.progress is not None:
            self._progress(item.progress)
            return item.progress.turn
        return ""

    def _event(self, event: Event) -> str:
        self.tree.apply(event)
        if not isinstance(event, TurnEvent):
            return ""
        if isinstance(event, TurnStarted):
            self.turns[event.turn] = TurnState(event.turn)
        if event.turn in self.turns:
            self.turns[event.turn].apply(event)
        if isinstance(event, StepStarted | StepFinished | StepInterrupted | StepRestarted):
            self._step(event)
        elif isinstance(event, CallStarted | CallSettled | LateArrived):
            self._call(event)
        elif isinstance(event, TurnCompleted | TurnFailed | TurnCancelled):
            self.ends[event.turn] = event
            self.live.pop(event.turn, None)
        return event.turn

    def _step(self, event: StepStarted | StepFinished | StepInterrupted | StepRestarted) -> None:
        self.live.pop(event.turn, None)
        times = self.steps.setdefault(event.turn, {}).setdefault(event.step, StepTimes())
        if isinstance(event, StepStarted):
            times.began, times.closing = event.at, event.closing
        elif isinstance(event, StepRestarted):
            times.restarts += 1
        else:
            times.ended = event.at

    def _call(self, event: CallStarted | CallSettled | LateArrived) -> None:
        began = self.times.get(event.call, (0.0, 0.0))[0]
        if isinstance(event, CallStarted):
            self.times[event.call] = (event.at, 0.0)
        elif isinstance(event, CallSettled):
            self.times[event.call] = (began, event.at)

    def _progress(self, said: CallProgress) -> None:
        rows = self.progress.setdefault(said.call, [])
        rows.append(said.text)
        if len(rows) > 2 * MOST_PROGRESS:
            del rows[:-MOST_PROGRESS]

    def _delta(self, delta: Delta) -> None:
        parts = self.live.setdefault(delta.turn, {})
        live = parts.get(delta.part)
        if live is None:
            if isinstance(delta, CallDelta):
                live = Live("call", call=delta.call, name=delta.name)
            else:
                live = Live("reasoning" if isinstance(delta, ReasoningDelta) else "text")
            parts[delta.part] = live
        if isinstance(delta, CallDelta):
            live.call, live.name = delta.call, delta.name
        live.pieces.append(delta.text)

    def branch(self, leaf: str | None = None) -> list[Message]:
        """The messages that are shown of a branch, oldest first; None is the one that is selected."""
        at = self.tree.leaf if leaf is None else leaf
        found: list[Message] = []
        while at is not None and at in self.tree.messages:
            message = self.tree.messages[at]
            if not message.hidden and at not in self.tree.deleted:
                found.append(message)
            at = message.parent
        found.reverse()
        return found

    @property
    def running(self) -> TurnState | None:
        """The turn of the selected branch that goes on, or else the last one that does."""
        going = [turn for turn in self.turns.values() if not turn.phase.is_terminal]
        shown = {message.turn for message in self.branch()} if len(going) > 1 else set[str]()
        return next((turn for turn in reversed(going) if turn.id in shown), going[-1] if going else None)

    @property
    def open_gates(self) -> list[Gate]:
        """What waits for an answer here, oldest first."""
        turns = [turn for turn in self.turns.values() if not turn.phase.is_terminal]
        return [gate for turn in turns for name, gate in turn.asked.items() if turn.is_asked(name)]

    @property
    def waiting(self) -> list[QueuedView]:
        """The messages that wait to be sent; one that has joined the tree meanwhile waits no more."""
        return [one for one in self.queued if one.message not in self.tree.messages]

    @property
    def has_below(self) -> bool:
        """Whether some call that goes on has sub-turns: what they ask is asked somewhere else."""
        turns = [turn for turn in self.turns.values() if not turn.phase.is_terminal]
        return any(call.below for turn in turns for call in turn.open_calls)
