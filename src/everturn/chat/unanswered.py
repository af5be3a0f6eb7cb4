"""A warning for a script that awaits a turn which waits for a person, where nobody is asking one."""

from __future__ import annotations

import logging
from typing import Final

from everturn.core.asking import Gate
from everturn.core.deltas import Shown
from everturn.core.events import Event, GateAnswered, GateOpened, TurnParked
from everturn.core.ports import Timer
from everturn.wiring import Runtime

log = logging.getLogger(__name__)

WARN_AFTER: Final = 5.0  # seconds that a turn has waited, and nobody answered
MOST_ARGUMENTS: Final = 200  # characters that are shown
WAITS: Final = (
    "turn {turn} waits for {what}, and `await turn` returns only when somebody has answered. `await chat.gates()` lists "
    "what is open, here or in another process; `await turn.answer(gate, allow='once')` or `deny='why'` answers; "
    "`await turn.cancel()` gives up. Without a person: rules, a plugin's `on_gate`, or TurnOptions(gate_timeout=…)."
)


class UnansweredWarning:
    """Logs once why `await turn` does not return, unless somebody else follows the turn or listens to the runtime."""

    def __init__(self, runtime: Runtime, session: str, turn: str) -> None:
        self._runtime, self._session, self._turn = runtime, session, turn
        self._open: dict[str, Gate] = {}
        self._timer: Timer | None = None
        self._has_warned = False

    def see(self, shown: Shown) -> None:
        """Take in what the turn shows."""
        if not isinstance(shown, Event):
            return
        if isinstance(shown, GateOpened):
            self._open[shown.gate.id] = shown.gate
        elif isinstance(shown, GateAnswered):
            self._open.pop(shown.gate, None)
        self.stop()
        if isinstance(shown, TurnParked) and not self._has_warned:
            self._timer = self._runtime.clock.call_later(WARN_AFTER, self._warn)

    def stop(self) -> None:
        """It goes on, or nobody waits for it any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _warn(self) -> None:
        self._timer = None
        if self._runtime.listeners or self._runtime.followers(self._session, self._turn) > 1:
            return  # they show it to somebody
        self._has_warned = True
        asked = "; ".join(_named(gate) for gate in self._open.values())
        log.warning("%s", WAITS.format(turn=self._turn, what=asked or "a sub-turn, which waits for a person"))


def _named(gate: Gate) -> str:
    cut = "…" if len(gate.arguments) > MOST_ARGUMENTS else ""
    return f"gate {gate.id} ({gate.kind}: {gate.tool} {gate.arguments[:MOST_ARGUMENTS]}{cut})"
