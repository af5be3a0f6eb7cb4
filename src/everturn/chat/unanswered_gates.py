"""Unanswered gates: warns when a script awaits a turn that waits for a person, and no UI follows it."""

from __future__ import annotations

import logging
from typing import Final

from everturn.base_app import BaseApp
from everturn.core.deltas import TurnItem
from everturn.core.events import Event, GateOpened, GateResolved, TurnSuspended, WaitFinished, WaitStarted
from everturn.core.gates import Gate
from everturn.core.ports import Timer

log = logging.getLogger(__name__)

WARN_AFTER: Final = 5.0  # seconds that a turn has waited without an answer
MAX_SHOWN_ARGUMENTS: Final = 200  # characters that are shown
UNANSWERED_WARNING: Final = (
    "turn {turn} waits for {what}, and `await turn` returns only after an answer. `await chat.gates()` lists "
    "what is open, here or in another process; `await turn.answer(gate, allow='once')` or `deny='why'` answers; "
    "`await turn.cancel()` gives up. Without a person: rules, a plugin's `on_gate`, or TurnOptions(gate_timeout=…)."
)


class UnansweredWarning:
    """Logs once why `await turn` does not return, unless another reader follows the turn or listens to the runtime."""

    def __init__(self, app: BaseApp, session: str, turn: str) -> None:
        self._app, self._session, self._turn = app, session, turn
        self._open: dict[str, Gate] = {}
        self._waits: set[str] = set()  # of tools, for a time or an external result
        self._timer: Timer | None = None
        self._has_warned = False

    def process(self, shown: TurnItem) -> None:
        """Process an event of the turn."""
        if not isinstance(shown, Event):
            return
        if isinstance(shown, GateOpened):
            self._open[shown.gate.id] = shown.gate
        elif isinstance(shown, GateResolved):
            self._open.pop(shown.gate, None)
        elif isinstance(shown, WaitStarted):
            self._waits.add(shown.wait)
        elif isinstance(shown, WaitFinished):
            self._waits.discard(shown.wait)
        self.stop()
        is_for_people = bool(self._open) or not self._waits
        if isinstance(shown, TurnSuspended) and is_for_people and not self._has_warned:
            self._timer = self._app.clock.call_later(WARN_AFTER, self._warn)

    def stop(self) -> None:
        """Cancel the timer: the turn continues, or is no longer awaited."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _warn(self) -> None:
        self._timer = None
        if self._app.listeners or self._app.count_readers(self._session, self._turn) > 1:
            return  # another reader can show the gate to a person
        self._has_warned = True
        descriptions = "; ".join(_describe_gate(gate) for gate in self._open.values())
        log.warning(
            "%s",
            UNANSWERED_WARNING.format(
                turn=self._turn, what=descriptions or "a sub-agent run, which waits for a person"
            ),
        )


def _describe_gate(gate: Gate) -> str:
    cut = "…" if len(gate.arguments) > MAX_SHOWN_ARGUMENTS else ""
    return f"gate {gate.id} ({gate.kind}: {gate.tool} {gate.arguments[:MAX_SHOWN_ARGUMENTS]}{cut})"
