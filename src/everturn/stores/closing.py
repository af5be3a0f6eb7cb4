"""Turns that a file leaves open → the events that end them. Pure.

A file is evidence of nothing: that a person has allowed a call, that a rule was meant, or that a tool is about to
answer. So nothing in it goes on; whoever imports it may read it, and say something new.
"""

from __future__ import annotations

from collections.abc import Iterable

from everturn.core.events import (
    CallSettled,
    Event,
    LateArrived,
    Problem,
    TurnCancelled,
    TurnCompleted,
    TurnEnding,
    TurnFailed,
)
from everturn.core.parts import Output
from everturn.core.state import TurnState

NOT_HERE = "The session was imported from a file before this call had ended. Nothing was run here."
NEVER_COMES = "The session was imported from a file before the result of this call had come; it does not come here."


def ended(turns: Iterable[TurnState], at: float) -> list[Event]:
    """What has to happen until nothing is under way any more."""
    return [event for state in turns for event in _ended(state, at)]


def _ended(state: TurnState, at: float) -> Iterable[Event]:
    turn = state.id
    for call in state.out if state.ending is not None else ():
        yield LateArrived(turn=turn, at=at, call=call, output=Output(NEVER_COMES, code="outcome_unknown"))
    if state.phase.is_terminal:
        return
    ending = state.ending
    if ending is None:
        ending = TurnEnding(turn=turn, at=at, outcome="cancelled", hard=True)
        yield ending  # with it every gate of the turn is closed
    for call in state.open_calls:
        yield CallSettled(turn=turn, at=at, call=call.id, state="cancelled", output=Output(NOT_HERE, code="cancelled"))
    if ending.outcome == "completed":
        yield TurnCompleted(turn=turn, at=at, usage=state.usage)
    elif ending.outcome == "cancelled":
        yield TurnCancelled(turn=turn, at=at, usage=state.usage)
    else:
        problem = ending.problem or Problem("error", "the turn failed")
        yield TurnFailed(turn=turn, at=at, problem=problem, usage=state.usage)
