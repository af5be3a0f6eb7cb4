"""Session state: folds events and deltas into the message tree, the turns, and the streaming parts. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct, field

from everturn.api import GateView, LogTail, QueuedView, StreamItem
from everturn.core.context.context_report import ContextReport
from everturn.core.deltas import CallDelta, CallProgress, Delta, ReasoningDelta
from everturn.core.events import (
    CallFinished,
    CallStarted,
    Event,
    LateResultReceived,
    MessageDeleted,
    RequestRetried,
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
from everturn.core.gates import Gate
from everturn.core.messages import Message
from everturn.core.parts import Usage
from everturn.core.state import TurnState
from everturn.core.tree import MessageTree

MAX_PROGRESS_ROWS = 200  # progress rows that are kept of a call: the last ones


class StreamingPart(Struct):
    """A part that is streaming; `text` joins the `pieces` when it is read."""

    kind: Literal["text", "reasoning", "call"]
    pieces: list[str] = field(default_factory=list[str])
    call: str = ""
    name: str = ""

    @property
    def text(self) -> str:
        """The text so far."""
        if len(self.pieces) > 1:
            self.pieces[:] = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""


class StepTimes(Struct):
    """When a step began and ended, and how often it was restarted and its request retried."""

    began: float = 0.0
    ended: float = 0.0
    restarts: int = 0
    closing: bool = False
    retries: int = 0
    retry: RequestRetried | None = None  # the last one, until something of the answer arrives


def _minus(total: float | None, part: float | None) -> float | None:
    """Subtract what is known of a cost; never less than nothing."""
    return None if total is None else max(total - (part or 0.0), 0.0)


class SessionState(Struct):
    """The folded events of a session. Only the session follower changes it; everything else reads."""

    seq: int = 0
    cost_before: float | None = None  # of turns that are not loaded
    start: int = 1  # turns that started before this position are not loaded; 1: all are
    tree: MessageTree = field(default_factory=MessageTree)
    turns: dict[str, TurnState] = field(default_factory=dict[str, TurnState])
    ends: dict[str, Terminal] = field(default_factory=dict[str, Terminal])  # turn -> how it ended
    steps: dict[str, dict[int, StepTimes]] = field(default_factory=dict[str, dict[int, StepTimes]])
    live: dict[str, dict[int, StreamingPart]] = field(
        default_factory=dict[str, dict[int, StreamingPart]]
    )  # turn -> part -> streamed so far
    progress: dict[str, list[str]] = field(default_factory=dict[str, list[str]])  # call -> progress rows
    waits: dict[str, str] = field(default_factory=dict[str, str])  # turn -> what its model request waits for
    times: dict[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])  # call -> from, to
    queued: list[QueuedView] = field(default_factory=list[QueuedView])  # not in the log: the follower polls it
    subagent_gates: list[GateView] = field(
        default_factory=list[GateView]
    )  # gates of sub-agents, which are in the logs of their own sessions
    shown_gate: str = ""  # the gate whose dialog is on the screen
    context: ContextReport | None = None  # of the selected branch; not in the log: the follower asks for it

    def apply(self, item: StreamItem) -> str:
        """Apply one item of the stream; return the turn that it is about, or ""."""
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

    def load(self, page: LogTail) -> None:
        """Begin, or begin again, with the last turns of a log."""
        loaded = SessionState(seq=page.seq, start=page.start)
        for item in page.entries:
            loaded._event(item.event)
        loaded.tree.leaf, loaded.tree.title = page.leaf, page.title
        loaded.cost_before = _minus(page.cost, loaded.usage.cost)
        for name in ("seq", "start", "cost_before", "tree", "turns", "ends", "steps", "live", "progress", "times"):
            setattr(self, name, getattr(loaded, name))

    def load_earlier(self, page: LogTail) -> None:
        """Add the turns before those that are loaded. Turns that are loaded already stay as they are."""
        earlier = SessionState(start=page.start)
        for item in page.entries:
            earlier._event(item.event)
        before = self.usage.cost
        self.start, self.turns = page.start, {**earlier.turns, **self.turns}
        self.ends, self.steps = {**earlier.ends, **self.ends}, {**earlier.steps, **self.steps}
        self.times = {**earlier.times, **self.times}
        self.tree.add_earlier(earlier.tree)
        self.cost_before = _minus(self.cost_before, _minus(self.usage.cost, before))

    @property
    def usage(self) -> Usage:
        """The usage of all loaded turns, in all branches."""
        total = Usage()
        for turn in self.turns.values():
            total = total + turn.usage + turn.child_spend.usage
        return total

    @property
    def cost(self) -> float | None:
        """The cost of the session, in all branches: all of them were paid for; None if no price is known."""
        known = [cost for cost in (self.cost_before, self.usage.cost) if cost is not None]
        return sum(known) if known else None

    @property
    def is_leaf_missing(self) -> bool:
        """Whether the selected branch ends at a message that is not loaded."""
        return self.tree.leaf is not None and self.tree.leaf not in self.tree.messages

    def _is_left_out(self, event: Event) -> bool:
        """Whether an event is about something that is not loaded: the page that brings it has this event as well."""
        if isinstance(event, MessageDeleted):
            return event.message not in self.tree.messages
        return isinstance(event, TurnEvent) and not isinstance(event, TurnStarted) and event.turn not in self.turns

    def _event(self, event: Event) -> str:
        if self.start > 1 and self._is_left_out(event):
            if isinstance(event, MessageDeleted):
                self.tree.delete_unknown(event.message)
            return ""
        self.tree.apply(event)
        if not isinstance(event, TurnEvent):
            return ""
        if isinstance(event, TurnStarted):
            self.turns[event.turn] = TurnState(event.turn)
        if event.turn in self.turns:
            self.turns[event.turn].apply(event)
        if isinstance(event, StepStarted | StepFinished | StepInterrupted | StepRestarted | RequestRetried):
            self._step(event)
        elif isinstance(event, CallStarted | CallFinished | LateResultReceived):
            self._call(event)
        elif isinstance(event, TurnCompleted | TurnFailed | TurnCancelled):
            self.ends[event.turn] = event
            self.live.pop(event.turn, None)
        return event.turn

    def _step(self, event: StepStarted | StepFinished | StepInterrupted | StepRestarted | RequestRetried) -> None:
        self.live.pop(event.turn, None)
        self.waits.pop(event.turn, None)
        times = self.steps.setdefault(event.turn, {}).setdefault(event.step, StepTimes())
        if isinstance(event, StepStarted):
            times.began, times.closing = event.at, event.closing
        elif isinstance(event, StepRestarted):
            times.restarts += 1
            times.retry = None
        elif isinstance(event, RequestRetried):
            times.retries += 1
            times.retry = event
        else:
            times.ended = event.at

    def _call(self, event: CallStarted | CallFinished | LateResultReceived) -> None:
        began = self.times.get(event.call, (0.0, 0.0))[0]
        if isinstance(event, CallStarted):
            self.times[event.call] = (event.at, 0.0)
        elif isinstance(event, CallFinished):
            self.times[event.call] = (began, event.at)

    def _progress(self, progress: CallProgress) -> None:
        if not progress.call:  # of the model request: what it waits for
            self.waits[progress.turn] = progress.text
            return
        rows = self.progress.setdefault(progress.call, [])
        rows.append(progress.text)
        if len(rows) > 2 * MAX_PROGRESS_ROWS:
            del rows[:-MAX_PROGRESS_ROWS]

    def _delta(self, delta: Delta) -> None:
        self.waits.pop(delta.turn, None)
        parts = self.live.setdefault(delta.turn, {})
        live = parts.get(delta.part)
        if live is None:
            if isinstance(delta, CallDelta):
                live = StreamingPart("call", call=delta.call, name=delta.name)
            else:
                live = StreamingPart("reasoning" if isinstance(delta, ReasoningDelta) else "text")
            parts[delta.part] = live
        if isinstance(delta, CallDelta):
            live.call, live.name = delta.call, delta.name
        live.pieces.append(delta.text)

    def branch(self, leaf: str | None = None) -> list[Message]:
        """Return the visible messages of a branch, oldest first; None is the selected branch."""
        messages = [message for message in self.upwards(leaf) if not message.hidden]
        messages.reverse()
        return messages

    def upwards(self, leaf: str | None = None) -> Iterator[Message]:
        """Yield the loaded messages of a branch, newest first; None is the selected branch."""
        current = self.tree.leaf if leaf is None else leaf
        while current is not None and current in self.tree.messages:
            message = self.tree.messages[current]
            if current not in self.tree.deleted:
                yield message
            current = message.parent

    @property
    def running(self) -> TurnState | None:
        """The running turn of the selected branch, or else the last one that runs."""
        active = [turn for turn in self.turns.values() if not turn.phase.is_terminal]
        shown = {message.turn for message in self.branch()} if len(active) > 1 else set[str]()
        return next((turn for turn in reversed(active) if turn.id in shown), active[-1] if active else None)

    @property
    def open_gates(self) -> list[Gate]:
        """The open gates of this session, oldest first."""
        turns = [turn for turn in self.turns.values() if not turn.phase.is_terminal]
        return [gate for turn in turns for name, gate in turn.gate_details.items() if turn.is_gate_open(name)]

    @property
    def queued_messages(self) -> list[QueuedView]:
        """The queued messages; a message that has joined the tree meanwhile is not queued any more."""
        return [message for message in self.queued if message.message not in self.tree.messages]

    @property
    def has_subagents(self) -> bool:
        """Whether a running call has sub-agent runs, whose gates are in other sessions."""
        turns = [turn for turn in self.turns.values() if not turn.phase.is_terminal]
        return any(call.children for turn in turns for call in turn.open_calls)
