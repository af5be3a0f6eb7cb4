"""Next action of a turn: `decide` says from its state alone what its driver does next.

It decides and does not act: it reads no clock and awaits nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from everturn.core.events import (
    CompactionStarted,
    DeferredMessage,
    Outcome,
    Problem,
)
from everturn.core.phases import Phase
from everturn.core.state import StepState, TurnState

MAX_PAUSES: Final = 10  # steps in a row that continue a paused one; then the model is asked for a closing answer


class StartAnswer(Struct, frozen=True):
    """Add the placeholder that the next step writes into."""


class RequestModel(Struct, frozen=True):
    """Request the model: a new step, or again the one whose driver died."""

    step: int
    closing: bool = False
    again: bool = False


class Compact(Struct, frozen=True):
    """Ask a model for a summary: the one that was started, or (None) the one that the turn is for."""

    started: CompactionStarted | None = None


class FinishIncompleteCalls(Struct, frozen=True):
    """No step is left for the open calls, or no plugin took them: they get a result without running."""

    reason: str  # max_steps_reached | nobody_answered | stopped | the limit that was reached


class AskAtLimit(Struct, frozen=True):
    """Ask a person whether the turn may take more steps; with a `gate`, wait for the answer to that one."""

    max_steps: int  # the limit that an approval sets
    gate: str = ""


class AfterRequest(Struct, frozen=True):
    """Run `on_after_request` of these plugins, which are not done with the step."""

    plugins: tuple[str, ...]


class WriteDeferred(Struct, frozen=True):
    """Every plugin is done; add the messages they deferred, in this order."""

    appends: tuple[DeferredMessage, ...]


class Finalize(Struct, frozen=True):
    """End the turn."""

    outcome: Outcome
    problem: Problem | None = None


class WaitForInput(Struct, frozen=True):
    """Nothing can be done until something arrives."""


class TurnDone(Struct, frozen=True):
    """The turn is over."""


TurnAction = (
    StartAnswer
    | RequestModel
    | Compact
    | FinishIncompleteCalls
    | AskAtLimit
    | AfterRequest
    | WriteDeferred
    | Finalize
    | WaitForInput
    | TurnDone
)


_UNRUN: Final = ("pending", "asking")


def decide(state: TurnState, plugins: Sequence[str] = ()) -> TurnAction:
    """Say what happens next in a turn; `plugins` are those with an `on_after_request`, in registration order."""
    step = state.step
    if state.phase.is_terminal:
        return TurnDone()
    if state.ending is not None:
        return Finalize(state.ending.outcome, state.ending.problem)
    if state.phase is Phase.WAITING:
        return WaitForInput()
    if state.compaction is not None:
        return Compact(state.compaction)
    if state.options.compact is not None:
        return _decide_compaction_turn(state)
    if step is None:
        is_ready = state.answer is not None and state.answer == state.tip
        return RequestModel(1, closing=state.limit is not None) if is_ready else StartAnswer()
    if step.is_open:
        return RequestModel(step.number, step.closing, again=True)
    if step.broke_off:
        return Finalize("cancelled" if step.finish == "cancelled" else "error", step.problem)
    return _decide_after_stream(state, step, plugins)


def _decide_compaction_turn(state: TurnState) -> TurnAction:
    """The next action of a turn that only compacts its branch."""
    if state.compactions:
        return Finalize("completed")
    return Compact() if state.compaction_problem is None else Finalize("error", state.compaction_problem)


def _decide_after_stream(state: TurnState, step: StepState, plugins: Sequence[str]) -> TurnAction:
    """The next action after a step's stream has completed."""
    if state.refusal is not None:  # its text is the answer, and no plugin may ask for another
        return Finalize("completed")
    limit = state.limit
    is_stopping = step.closing or limit is not None or state.is_stopped
    is_stopping = is_stopping or (step.finish == "paused" and state.pauses >= MAX_PAUSES)
    is_last = is_stopping or step.number >= state.max_steps
    may_ask = is_last and not is_stopping and state.may_ask_at_limit
    open_calls = [call for call in step.calls if not call.is_finished]
    if may_ask and open_calls:
        return _ask_at_limit(state)
    # A call that ran has a result, limit or not.
    may_run = limit is not None or state.is_stopped
    if is_last and open_calls and (not may_run or all(call.state in _UNRUN for call in open_calls)):
        if state.is_stopped:
            return FinishIncompleteCalls("stopped")
        return FinishIncompleteCalls("max_steps_reached" if limit is None else f"{limit.limit}_limit_reached")
    if not step.is_handed_over and (remaining := tuple(name for name in plugins if name not in step.done)):
        return AfterRequest(remaining)
    if open_calls:
        return FinishIncompleteCalls("nobody_answered")
    if appends := _pending_deferred(state, step, plugins):
        return WriteDeferred(appends)
    wants_more = (
        bool(step.calls)
        or step.finish == "paused"
        or (step.request and not step.loops)
        or (step.continues and not is_last)
    )
    if not wants_more or step.closing or state.is_stopped:
        return Finalize("completed")
    if may_ask:
        return _ask_at_limit(state)
    if state.answer != state.tip:
        return StartAnswer()
    return RequestModel(step.number + 1, closing=is_last)


def _ask_at_limit(state: TurnState) -> TurnAction:
    """Ask for as many steps again as the turn had, or wait for the answer to the gate that asks."""
    open_gate = state.limit_gate if state.limit_gate and state.gates[state.limit_gate] is None else ""
    return AskAtLimit(state.max_steps + state.options.max_steps, open_gate)


def may_steering_join(state: TurnState, action: TurnAction) -> bool:
    """Whether steering messages may join before this action is carried out; after it, it would be too late."""
    is_between = isinstance(action, StartAnswer | Finalize) or (isinstance(action, RequestModel) and not action.again)
    if isinstance(action, RequestModel) and state.step is not None and state.step.awaits_provider:
        return False
    return is_between and state.is_joinable


def _pending_deferred(state: TurnState, step: StepState, plugins: Sequence[str]) -> tuple[DeferredMessage, ...]:
    """The deferred messages that have not been added yet: high priority first, then in registration order."""
    if not step.deferred:
        return ()
    rank = {name: at for at, name in enumerate(plugins)}
    ordered = sorted(step.deferred, key=lambda item: (-item[1].priority, rank.get(item[0], len(rank))))
    return tuple(append for _, append in ordered if append.message.id not in state.messages)
