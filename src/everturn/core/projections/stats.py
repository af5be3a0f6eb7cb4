"""Turn statistics: how many steps, calls and retries a turn had, and what its time was spent on. Folded from its events.

Each span between two events counts once, for what the turn did in it: the model if a step was streaming, else tools if a
call was running, else waiting if a person, a client or a time was awaited. So the parts never add up to more than the
whole, and a turn that waited three days for an answer has worked for its three seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from everturn.core.calls import CallRecord
from everturn.core.events import (
    CallStarted,
    Entry,
    Event,
    RequestRetried,
    StepFinished,
    StepInterrupted,
    StepRestarted,
    StepStarted,
    TurnEvent,
)
from everturn.core.phases import Phase
from everturn.core.state import TurnState


class TurnStats(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """Statistics of one turn; times are in seconds. Sub-agent runs have their own: to their parent they are a tool."""

    steps: int = 0  # model requests that were started
    calls: int = 0  # tool calls that were started
    retries: int = 0  # model requests that were sent again after an error
    restarts: int = 0  # steps that another process started again
    seconds: float = 0.0  # from its first event to its last
    waiting_seconds: float = 0.0  # of these, waiting for people, clients or timers, with nothing running
    model_seconds: float = 0.0
    tool_seconds: float = 0.0  # calls that ran at the same time count once
    retry_seconds: float = 0.0  # waiting before a retry
    first_token_seconds: float | None = None  # from its start to the first content of a model; None: nothing came

    @property
    def active_seconds(self) -> float:
        """The duration without waiting for people, clients and timers."""
        return self.seconds - self.waiting_seconds


Activity = Literal["model", "tools", "waiting", "other"]


def stats_of(entries: Iterable[Entry | Event], now: float | None = None) -> TurnStats:
    """Fold a turn's events into its statistics; with `now`, a turn that has not ended is counted up to then.

    Raises:
        InvalidEvent: the events are not the log of one turn.
    """
    events = [entry.event if isinstance(entry, Entry) else entry for entry in entries]
    turn_events = [event for event in events if isinstance(event, TurnEvent)]
    if not turn_events:
        return TurnStats()
    state, start = TurnState(turn_events[0].turn), turn_events[0].at
    spent: dict[Activity, float] = {"model": 0.0, "tools": 0.0, "waiting": 0.0, "other": 0.0}
    retry_seconds, last, retry = 0.0, start, 0.0
    first_token: float | None = None
    for event in turn_events:
        if state.phase.is_terminal:  # a late result: the turn had ended
            break
        passed = max(event.at - last, 0.0)  # clocks of two processes may differ
        waited = min(passed, retry)
        spent[activity_of(state)] += passed - waited
        retry_seconds, last, retry = retry_seconds + waited, max(event.at, last), 0.0
        state.apply(event)
        if isinstance(event, RequestRetried):
            retry = event.seconds
        if isinstance(event, StepFinished | StepInterrupted) and event.first_chunk_at and first_token is None:
            first_token = max(event.first_chunk_at - start, 0.0)
    if now is not None and not state.phase.is_terminal:
        passed = max(now - last, 0.0)
        waited = min(passed, retry)
        spent[activity_of(state)] += passed - waited
        retry_seconds += waited
    return TurnStats(
        steps=_count(turn_events, StepStarted),
        calls=_count(turn_events, CallStarted),
        retries=_count(turn_events, RequestRetried),
        restarts=_count(turn_events, StepRestarted),
        seconds=sum(spent.values()) + retry_seconds,
        waiting_seconds=spent["waiting"],
        model_seconds=spent["model"],
        tool_seconds=spent["tools"],
        retry_seconds=retry_seconds,
        first_token_seconds=first_token,
    )


def activity_of(state: TurnState) -> Activity:
    """What a turn does in this state."""
    if state.ending is not None:
        return "other"
    if state.compaction is not None or (state.step is not None and state.step.is_open):
        return "model"
    asking = {gate.call for name, gate in state.gate_details.items() if state.is_gate_open(name)}
    asking |= {state.calls[call].parent for call in asking if call in state.calls}  # the tool that made the call waits
    if any(call.id not in asking and _is_working(call) for call in state.open_calls):
        return "tools"
    return "waiting" if asking or state.phase is Phase.WAITING else "other"


def _is_working(call: CallRecord) -> bool:
    """Whether a call runs here or, while it is suspended, in its sub-agent run."""
    suspended = call.suspended if call.state == "waiting" else None
    return call.state == "running" or (suspended is not None and bool(suspended.child))


def _count(events: Iterable[Event], kind: type[Event]) -> int:
    return sum(type(event) is kind for event in events)
