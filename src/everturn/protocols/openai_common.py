"""Common parts of Responses and Chat Completions: segments of a turn, and the ids under which a client answers gates.

An OpenAI answer ends where the client is asked something; our turn waits, and continues. So a turn is cut into segments:
the first begins with it, and each ends where the turn suspends with a gate that was not open at the end of an earlier
one. The cuts depend on the log alone, so that every reader cuts a turn at the same places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from everturn import api
from everturn.core.deltas import Delta
from everturn.core.events import (
    Event,
    NestedCallRequested,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    TurnSuspended,
)
from everturn.core.gate_rows import GateRow, apply_to_gates
from everturn.core.gates import Gate

APPROVABLE: Final = ("call", "egress", "loop", "question", "limit")
"""Gates that can be approved or denied. The others need what these protocols cannot carry: a text, or a review."""

FINGERPRINT_BYTES: Final = 20


def gate_fingerprint(session: str, gate: Gate) -> str:
    """The id under which a gate is answered: it stands for the very question that was shown, in this session alone.

    It is never decoded, only computed again for the open gates and compared, so a forged one matches nothing.
    """
    data = msgspec.json.encode([session, gate.turn, gate.id, gate.call, gate.hash])
    return hashlib.sha256(data).hexdigest()[: 2 * FINGERPRINT_BYTES]


def call_name(session: str, gate: Gate) -> str:
    """The id of a call that the client is to run."""
    return f"call_{gate_fingerprint(session, gate)}"


def approval_name(session: str, gate: Gate) -> str:
    """The id of an approval request."""
    return f"mcpr_{gate_fingerprint(session, gate)}"


class TurnSegments:
    """Follows a turn, and tells in which segment it is. `is_suspended`: the turn is at the end of a segment."""

    def __init__(self, segment: int = 0, *, only_clients: bool = False) -> None:
        self.wanted, self.current = segment, 0
        self._only_clients = only_clients  # gates for people end no segment: they answer in another client
        self.ordinal = 0  # of the last event in the wanted segment, from 1
        self.total = 0  # events of the turn
        self.rows: dict[str, GateRow] = {}
        self.segment_of_gate: dict[str, int] = {}  # gate -> the segment that ended with it
        self.nested_calls: set[str] = set()  # nested calls, which tools have requested
        self.started: TurnStarted | None = None
        self.is_over = self.is_suspended = False

    @property
    def is_in_wanted(self) -> bool:
        """Whether the turn is in the wanted segment."""
        return self.current == self.wanted

    @property
    def open(self) -> list[Gate]:
        """The open gates, oldest first."""
        return [row.gate for row in self.rows.values() if row.is_open]

    @property
    def calls(self) -> list[Gate]:
        """The open calls of client tools that came with the client's message."""
        client_tools = {tool.name for tool in self.started.options.clients} if self.started else set[str]()
        return [gate for gate in self.open if gate.kind == "client" and gate.tool in client_tools]

    @property
    def approvals(self) -> list[Gate]:
        """The open gates that can be approved or denied."""
        return [gate for gate in self.open if gate.kind in APPROVABLE]

    def apply(self, event: Event) -> bool:
        """Apply an event; True when it belongs to the wanted segment, including its last."""
        if self.is_suspended:
            self.current, self.is_suspended = self.current + 1, False
        self.total += 1
        is_mine = self.is_in_wanted
        if is_mine:
            self.ordinal += 1
        apply_to_gates(self.rows, event)
        match event:
            case TurnStarted():
                self.started = event
            case NestedCallRequested(call=call):
                self.nested_calls.add(call)
            case TurnSuspended():
                new = [
                    gate
                    for gate in (self.calls if self._only_clients else self.open)
                    if gate.id not in self.segment_of_gate
                ]
                self.segment_of_gate.update((gate.id, self.current) for gate in new)
                self.is_suspended = bool(new)
            case TurnCompleted() | TurnFailed() | TurnCancelled():
                self.is_over = True
            case _:
                pass
        return is_mine

    def unanswered(self, segment: int) -> list[Gate]:
        """The gates of a client at the end of a segment, or before, that are not answered yet.

        They must be answered together: otherwise the next answer would end where the rest of the answers is still to come.
        """
        gates = self.calls if self._only_clients else [*self.calls, *self.approvals]
        return [gate for gate in gates if self.segment_of_gate.get(gate.id, segment + 1) <= segment]

    def is_mine(self, delta: Delta) -> bool:
        """Whether a delta belongs to the wanted segment."""
        return self.is_in_wanted and not self.is_suspended and bool(delta.text)


def segments_of_log(events: Iterable[Event], *, only_clients: bool = False) -> TurnSegments:
    """The segments of a turn, as far as its log goes."""
    segments = TurnSegments(only_clients=only_clients)
    for event in events:
        segments.apply(event)
    return segments


def everturn_object(session: str, turn: str, gates: Iterable[Gate] = ()) -> dict[str, Any]:
    """The `everturn` object of a response, for what OpenAI has no field for: session, turn, and open gates."""
    open_gates = [{"gate": gate.id, "kind": gate.kind, "tool": gate.tool} for gate in gates]
    return {"session": session, "turn": turn, **({"gates": open_gates} if open_gates else {})}


_KINDS: Final = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def openai_error(view: api.ErrorView, status: int) -> dict[str, Any]:
    """The body of an error, as OpenAI's clients read it."""
    kind = "server_error" if status >= 500 else _KINDS.get(status, "invalid_request_error")
    code = "model_not_found" if view.code == "unknown_model" else view.code
    return {"error": {"message": view.message, "type": kind, "code": code, "param": view.where or None}}
