"""What Responses and Chat Completions have in common: where an answer of theirs begins and ends inside a turn of ours, and
the names under which a client answers what it was asked.

Their answer ends where something is asked of the client; our turn waits, and goes on. So a turn is cut into segments:
the first begins with it, and each ends where the turn parks with a gate that was not asked in those before. All of it
is read off the log, so that every reader cuts a turn at the same places.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from everturn import api
from everturn.core.asking import Gate
from everturn.core.deltas import Delta
from everturn.core.events import CallMade, Event, TurnCancelled, TurnCompleted, TurnFailed, TurnParked, TurnStarted
from everturn.core.gates import GateRow, apply_to_gates

APPROVABLE: Final = ("call", "egress", "loop", "question")
"""Gates that yes or no is an answer to. The others take what these protocols have no room for: a text, or a look at it."""

MARK_BYTES: Final = 20


def name_of(session: str, gate: Gate) -> str:
    """The name under which a gate is answered: it stands for the very question that was shown, in this session alone.

    It is never read, only made again for the gates that stand open and compared; so no forged one means anything.
    """
    said = msgspec.json.encode([session, gate.turn, gate.id, gate.call, gate.hash])
    return hashlib.sha256(said).hexdigest()[: 2 * MARK_BYTES]


def call_name(session: str, gate: Gate) -> str:
    """The id of a call that the client is to do."""
    return f"call_{name_of(session, gate)}"


def approval_name(session: str, gate: Gate) -> str:
    """The id of a request for an approval."""
    return f"mcpr_{name_of(session, gate)}"


class Segments:
    """Follows a turn, and says in which of its segments it is. `is_parked`: it stands at the end of one."""

    def __init__(self, segment: int = 0, *, only_clients: bool = False) -> None:
        self.wanted, self.now = segment, 0
        self._only_clients = only_clients  # what people are asked ends none: they answer elsewhere
        self.ordinal = 0  # of the last event, in the segment that is wanted; from 1
        self.total = 0  # events of the turn
        self.rows: dict[str, GateRow] = {}
        self.asked: dict[str, int] = {}  # a gate -> the segment that ended with it
        self.inner: set[str] = set()  # calls that tools have made
        self.started: TurnStarted | None = None
        self.is_over = self.is_parked = False

    @property
    def is_here(self) -> bool:
        """Whether what comes now belongs to the segment that is wanted."""
        return self.now == self.wanted

    @property
    def open(self) -> list[Gate]:
        """What is being asked, oldest first."""
        return [row.gate for row in self.rows.values() if row.is_open]

    @property
    def calls(self) -> list[Gate]:
        """What the client is asked to do: calls of the tools that came with its message."""
        brought = {tool.name for tool in self.started.options.clients} if self.started else set[str]()
        return [gate for gate in self.open if gate.kind == "client" and gate.tool in brought]

    @property
    def approvals(self) -> list[Gate]:
        """What is asked that can be answered with yes or no."""
        return [gate for gate in self.open if gate.kind in APPROVABLE]

    def take(self, event: Event) -> bool:
        """Note an event; True when it belongs to the segment that is wanted, be it as its last."""
        if self.is_parked:
            self.now, self.is_parked = self.now + 1, False
        self.total += 1
        is_mine = self.is_here
        if is_mine:
            self.ordinal += 1
        apply_to_gates(self.rows, event)
        match event:
            case TurnStarted():
                self.started = event
            case CallMade(call=call):
                self.inner.add(call)
            case TurnParked():
                new = [gate for gate in (self.calls if self._only_clients else self.open) if gate.id not in self.asked]
                self.asked.update((gate.id, self.now) for gate in new)
                self.is_parked = bool(new)
            case TurnCompleted() | TurnFailed() | TurnCancelled():
                self.is_over = True
            case _:
                pass
        return is_mine

    def unanswered(self, segment: int) -> list[Gate]:
        """What the client was asked at the end of a segment, or before, and has not been answered yet.

        It is answered all at once: else an answer would end where the rest of the answers is still on its way.
        """
        mine = self.calls if self._only_clients else [*self.calls, *self.approvals]
        return [gate for gate in mine if self.asked.get(gate.id, segment + 1) <= segment]

    def is_mine(self, delta: Delta) -> bool:
        """Whether a delta belongs to the segment that is wanted."""
        return self.is_here and not self.is_parked and bool(delta.text)


def walked(events: Iterable[Event], *, only_clients: bool = False) -> Segments:
    """A turn as far as its log goes."""
    segments = Segments(only_clients=only_clients)
    for event in events:
        segments.take(event)
    return segments


def told_of(session: str, turn: str, gates: Iterable[Gate] = ()) -> dict[str, Any]:
    """What these protocols have no field for, as our own: where this is kept, and what is asked of people there."""
    asked = [{"gate": gate.id, "kind": gate.kind, "tool": gate.tool} for gate in gates]
    return {"session": session, "turn": turn, **({"gates": asked} if asked else {})}


_KINDS: Final = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}


def openai_error(view: api.ErrorView, status: int) -> dict[str, Any]:
    """The body of an answer that is no success, as OpenAI's clients read it."""
    kind = "server_error" if status >= 500 else _KINDS.get(status, "invalid_request_error")
    code = "model_not_found" if view.code == "unknown_model" else view.code
    return {"error": {"message": view.message, "type": kind, "code": code, "param": view.where or None}}
