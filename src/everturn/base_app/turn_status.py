"""Status of a turn: what an app tells its listeners when a turn enters a phase."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from msgspec import Struct

from everturn.core.events import Problem
from everturn.core.gates import Gate
from everturn.core.phases import Phase
from everturn.core.state import TurnState

log = logging.getLogger(__name__)


class TurnStatus(Struct, frozen=True):
    """The status of a turn as it enters a phase: sent before the work of that phase starts."""

    session: str
    turn: str
    phase: Phase
    step: int
    open_calls: tuple[str, ...]
    gates: tuple[Gate, ...]
    problem: Problem | None


StatusListener = Callable[[TurnStatus], None]


def notify_listeners(listeners: Iterable[StatusListener], session: str, state: TurnState, phase: Phase) -> None:
    """Tell listeners that a turn enters a phase; one that fails does not stop the turn."""
    problem = state.ending.problem if state.ending is not None else None
    open_gates = tuple(gate for name, gate in state.gate_details.items() if state.gates[name] is None)
    status = TurnStatus(
        session,
        state.id,
        phase,
        state.step.number if state.step is not None else 0,
        tuple(call.id for call in state.open_calls),
        open_gates,
        problem,
    )
    for listener in list(listeners):
        try:
            listener(status)
        except Exception:
            log.exception("a listener failed; the turn continues")
