"""Waiting point of a turn: whether all of it waits for answers, which is where a stream ends in protocols that answer with
their next request.

Such a protocol closes its stream at gates, and the stream of the next request continues there. That position depends on the
log alone, so the second stream finds it again: it stays silent until it reaches it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from everturn.core.events import (
    AgentSelected,
    AgentSwitched,
    AnswerRated,
    CallFinished,
    CallNotified,
    CallResumed,
    CallSuspended,
    CommandDropped,
    CompactionFailed,
    CompactionFinished,
    CompactionStarted,
    Event,
    FilesReverted,
    FileUploadChanged,
    GateOpened,
    GateResolved,
    GrantRevoked,
    HookFinished,
    InstructionsSet,
    LeafSelected,
    MessageDeleted,
    MessagesImported,
    NestedCallRequested,
    PermissionDecided,
    RequestRetried,
    RevertStarted,
    SessionUpdated,
    StepFinished,
    StepInterrupted,
    ToolStepFinished,
    ToolStepStarted,
    TurnFinishing,
    TurnSuspended,
    WaitFinished,
    WaitStarted,
)
from everturn.core.gates import Gate, GateKind
from everturn.core.parts import ToolPart

HIDDEN_EVENTS: Final[frozenset[type[Event]]] = frozenset(
    {
        PermissionDecided,
        CallSuspended,
        CallResumed,
        CallNotified,
        ToolStepStarted,
        ToolStepFinished,
        AgentSwitched,
        CompactionStarted,
        CompactionFinished,
        CompactionFailed,
        FileUploadChanged,
        RequestRetried,
        WaitStarted,
        WaitFinished,
        HookFinished,
        TurnFinishing,
        TurnSuspended,
        # These belong to a session, not to a turn, and no stream of a turn has them.
        AgentSelected,
        AnswerRated,
        CommandDropped,
        FilesReverted,
        GrantRevoked,
        InstructionsSet,
        LeafSelected,
        MessageDeleted,
        MessagesImported,
        RevertStarted,
        SessionUpdated,
    }
)
"""Events that other protocols do not show; clients that want them follow the native stream."""

NO_GATES: Final[frozenset[str]] = frozenset()


class StreamPosition(Struct, frozen=True):
    """Where a stream continues, and which gates of the log are already answered; the default is a new turn."""

    shown: frozenset[str] = NO_GATES  # the gates at which the previous stream ended
    answered: frozenset[str] = NO_GATES  # with this very request
    still_open: frozenset[str] = NO_GATES  # when this stream was requested
    at: float = 0.0  # the time of that request; 0: together with its turn

    def is_history(self, opened: GateOpened) -> bool:
        """Whether a gate is already answered, though the resolution in the log has not been read yet."""
        gate = opened.gate.id
        was_open_before = self.at > 0 and opened.at <= self.at
        return gate in self.answered or (was_open_before and gate not in self.still_open)


class OpenItems:
    """Tracks unfinished calls and open gates, event by event."""

    def __init__(self, kinds: Collection[GateKind], place: StreamPosition | None = None) -> None:
        self._kinds, self._place = kinds, place or StreamPosition()
        self.gates: dict[str, Gate] = {}  # open, and of a kind that can be answered in this protocol
        self._history: set[str] = set()
        self._calls: dict[str, str] = {}  # unfinished call -> the call that requested it
        self._is_suspended = False
        self._still_expected = set(self._place.shown)
        self.is_silent = bool(self._still_expected)
        """The previous stream has already sent the current events."""

    def feed(self, event: Event) -> bool:
        """Apply an event; False if the previous stream has sent it."""
        was_silent = self.is_silent
        match event:
            case StepFinished(parts=parts) | StepInterrupted(parts=parts):
                self._calls = {part.call: "" for part in parts if type(part) is ToolPart}
            case NestedCallRequested(call=call, parent=parent):
                self._calls[call] = parent
            case CallFinished(call=call):
                self._calls.pop(call, None)
                self._close([gate.id for gate in self.gates.values() if gate.call == call])
            case GateOpened(gate=gate):
                if gate.kind in self._kinds:
                    self.gates[gate.id] = gate
                if self._place.is_history(event):
                    self._history.add(gate.id)
            case GateResolved(gate=gate):
                self._close([gate])
            case TurnFinishing():
                self._calls.clear()
                self._close(list(self.gates))
            case _:
                pass
        self._is_suspended = isinstance(event, TurnSuspended)
        if not self._still_expected:  # they are answered, and there was no position at which all of them were open
            self.is_silent = was_silent = False
        if was_silent and self.is_waiting and self._place.shown <= self.gates.keys():
            self.is_silent = False  # from the next event on
        return not was_silent

    def _close(self, gates: list[str]) -> None:
        for gate in gates:
            self.gates.pop(gate, None)
            self._still_expected.discard(gate)

    @property
    def is_waiting(self) -> bool:
        """Whether nothing proceeds before one of the gates is answered."""
        top_calls = [call for call, parent in self._calls.items() if not parent]
        if not self.gates or not (top_calls or self._is_suspended):
            return False
        gated_calls = {gate.call for gate in self.gates.values()}
        return all(self._is_blocked(call, gated_calls) for call in top_calls)

    def _is_blocked(self, call: str, gated_calls: set[str]) -> bool:
        """Whether a call has a gate, or waits for nested calls that have."""
        nested = [child for child, parent in self._calls.items() if parent == call]
        return call in gated_calls or (bool(nested) and all(self._is_blocked(child, gated_calls) for child in nested))

    @property
    def is_end_of_stream(self) -> bool:
        """Whether the stream is to end here, so that the gates can be answered."""
        return self.is_waiting and not self.is_silent and self._history.isdisjoint(self.gates)
