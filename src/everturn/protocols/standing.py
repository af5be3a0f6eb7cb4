"""The log of a turn → whether all of it waits for answers: where a stream ends that has to be closed to be answered.

A protocol that answers with its next request closes its stream at gates, and the next one goes on there. Where that was
is a matter of the log alone, so the second stream finds the place again: it is silent until it comes to it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from everturn.core.asking import Gate, GateKind
from everturn.core.events import (
    CallJudged,
    CallMade,
    CallPaused,
    CallResumed,
    CallSettled,
    CallStirred,
    CommandDropped,
    Event,
    FilesReverted,
    GateAnswered,
    GateOpened,
    GrantRevoked,
    HookFinished,
    LeafSelected,
    MessageDeleted,
    RevertStarted,
    StepFinished,
    StepInterrupted,
    TurnEnding,
    TurnParked,
)
from everturn.core.parts import ToolPart

SILENT: Final[frozenset[type[Event]]] = frozenset(
    {
        CallJudged,
        CallPaused,
        CallResumed,
        CallStirred,
        HookFinished,
        TurnEnding,
        TurnParked,
        # These are of a session and not of a turn, and no stream of a turn has them.
        CommandDropped,
        FilesReverted,
        GrantRevoked,
        LeafSelected,
        MessageDeleted,
        RevertStarted,
    }
)
"""What is of no interest to a face of somebody else's: whoever wants it follows the native stream."""

NOBODY: Final[frozenset[str]] = frozenset()


class Place(Struct, frozen=True):
    """Where a stream goes on, and which gates of the log are history by now; that of a new turn says nothing."""

    shown: frozenset[str] = NOBODY  # the gates at which the stream before this one ended
    answered: frozenset[str] = NOBODY  # with this very request
    still_open: frozenset[str] = NOBODY  # at the time when this stream was asked for,
    at: float = 0.0  # which was then; 0: together with its turn

    def is_history(self, opened: GateOpened) -> bool:
        """Whether a gate has been answered by now, though the log that comes in has not come to it."""
        gate = opened.gate.id
        was_there = self.at > 0 and opened.at <= self.at
        return gate in self.answered or (was_there and gate not in self.still_open)


class Standing:
    """The calls that are not settled and the gates that stand open, event by event."""

    def __init__(self, kinds: Collection[GateKind], place: Place | None = None) -> None:
        self._kinds, self._place = kinds, place or Place()
        self.gates: dict[str, Gate] = {}  # open, and of a kind that can be answered in this protocol
        self._history: set[str] = set()
        self._calls: dict[str, str] = {}  # not settled, and which call made it
        self._is_parked = False
        self._to_come = set(self._place.shown)
        self.is_silent = bool(self._to_come)
        """What comes now was shown by the stream before this one."""

    def feed(self, event: Event) -> bool:
        """Note an event; False: it was shown before."""
        was_silent = self.is_silent
        match event:
            case StepFinished(parts=parts) | StepInterrupted(parts=parts):
                self._calls = {part.call: "" for part in parts if type(part) is ToolPart}
            case CallMade(call=call, parent=parent):
                self._calls[call] = parent
            case CallSettled(call=call):
                self._calls.pop(call, None)
                self._close([gate.id for gate in self.gates.values() if gate.call == call])
            case GateOpened(gate=gate):
                if gate.kind in self._kinds:
                    self.gates[gate.id] = gate
                if self._place.is_history(event):
                    self._history.add(gate.id)
            case GateAnswered(gate=gate):
                self._close([gate])
            case TurnEnding():
                self._calls.clear()
                self._close(list(self.gates))
            case _:
                pass
        self._is_parked = isinstance(event, TurnParked)
        if not self._to_come:  # they are answered, and there was no place where all of them stood open
            self.is_silent = was_silent = False
        if was_silent and self.is_waiting and self._place.shown <= self.gates.keys():
            self.is_silent = False  # from the next one on
        return not was_silent

    def _close(self, gates: list[str]) -> None:
        for gate in gates:
            self.gates.pop(gate, None)
            self._to_come.discard(gate)

    @property
    def is_waiting(self) -> bool:
        """Whether nothing moves before one of the gates is answered."""
        tops = [call for call, parent in self._calls.items() if not parent]
        if not self.gates or not (tops or self._is_parked):
            return False
        asking = {gate.call for gate in self.gates.values()}
        return all(self._is_blocked(call, asking) for call in tops)

    def _is_blocked(self, call: str, asking: set[str]) -> bool:
        """Whether a call asks, or waits for calls that it made and that do."""
        made = [child for child, parent in self._calls.items() if parent == call]
        return call in asking or (bool(made) and all(self._is_blocked(child, asking) for child in made))

    @property
    def is_due(self) -> bool:
        """Whether the stream is to end here, to be answered."""
        return self.is_waiting and not self.is_silent and self._history.isdisjoint(self.gates)
