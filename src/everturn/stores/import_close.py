"""Closing of imported turns: returns the events that end the turns which an imported file leaves open. Pure.

A file proves nothing: neither that a person approved a call, nor that a rule was intended, nor that a tool will still
return. So no imported turn continues; the importing user can read the session and send a new message.
"""

from __future__ import annotations

from collections.abc import Iterable

from everturn.core.events import (
    CallFinished,
    Event,
    LateResultReceived,
    Problem,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnFinishing,
)
from everturn.core.parts import Output
from everturn.core.state import TurnState

CALL_NOT_RUN = "The session was imported from a file before this call had ended. Nothing was run here."
NO_LATE_RESULT = "The session was imported from a file before the result of this call had come; it does not come here."


def close_open_turns(turns: Iterable[TurnState], at: float) -> list[Event]:
    """Return the events that end all turns which are still open."""
    return [event for state in turns for event in _closing_events(state, at)]


def _closing_events(state: TurnState, at: float) -> Iterable[Event]:
    turn = state.id
    for call in state.still_running if state.ending is not None else ():
        yield LateResultReceived(turn=turn, at=at, call=call, output=Output(NO_LATE_RESULT, code="outcome_unknown"))
    if state.phase.is_terminal:
        return
    ending = state.ending
    if ending is None:
        ending = TurnFinishing(turn=turn, at=at, outcome="cancelled", hard=True)
        yield ending  # this closes every gate of the turn
    for call in state.open_calls:
        yield CallFinished(
            turn=turn, at=at, call=call.id, state="cancelled", output=Output(CALL_NOT_RUN, code="cancelled")
        )
    if ending.outcome == "completed":
        yield TurnCompleted(turn=turn, at=at, usage=state.usage)
    elif ending.outcome == "cancelled":
        yield TurnCancelled(turn=turn, at=at, usage=state.usage)
    else:
        problem = ending.problem or Problem("error", "the turn failed")
        yield TurnFailed(turn=turn, at=at, problem=problem, usage=state.usage)
