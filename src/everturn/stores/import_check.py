"""Validation of an imported log: checks that the events of an untrusted log could have happened. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everturn.core.events import (
    AnswerStarted,
    Event,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    MessagesImported,
    TurnEvent,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.state import TurnState
from everturn.errors import EverturnError, UnreadableLog

REVERT_BUSY = "a turn is under way in session {session!r}, or waiting: cancel it, then revert the files"
AGENT_BUSY = (
    "a turn of session {session!r} is running or waiting: wait until it ends, or cancel it, then select the agent"
)
IMPORT_BUSY = (
    "a turn of session {session!r} is running or queued: wait until it ends, or cancel it, then import messages"
)
SESSION_NOT_IDLE = (
    "a turn of session {session!r} is running or queued: wait until it ends, cancel it, or queue the message"
)


def parent_session(options: TurnOptions) -> str:
    """Return the session of the parent turn of a sub-agent run with these options; "" for a user's turn."""
    above = options.lineage
    return "" if above is None else above.by[0] or above.session


def creator_of(events: Iterable[Event]) -> str:
    """Return the user of the first turn of a log."""
    return next((event.options.by for event in events if isinstance(event, TurnStarted)), "")


def check_log(events: Sequence[Event]) -> list[TurnState]:
    """Fold every turn, check that the messages form a tree, and return the turns.

    Raises:
        UnreadableLog: no driver of ours can have written this log.
    """
    turns: dict[str, TurnState] = {}
    messages: set[str] = set()
    gates: set[str] = set()
    for seq, event in enumerate(events, 1):
        try:
            _check_tree(event, messages)
            if isinstance(event, TurnEvent):
                _apply(event, turns, gates)
        except (EverturnError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise UnreadableLog(f"event {seq} cannot have happened: {error}") from error
    return list(turns.values())


def _apply(event: TurnEvent, turns: dict[str, TurnState], gates: set[str]) -> None:
    if not event.turn:
        raise UnreadableLog("a turn has no id")
    state = turns.get(event.turn)
    if state is None:
        state = turns[event.turn] = TurnState(event.turn)
    before = len(state.gates)
    state.apply(event)
    if len(state.gates) > before:
        gate = next(reversed(state.gates))
        if state.gate_details[gate].turn != event.turn:  # otherwise it would stay open when its turn ends
            raise UnreadableLog(f"gate {gate!r} belongs to another turn")
        if gate in gates:
            raise UnreadableLog(f"gate {gate!r} exists twice")
        gates.add(gate)


def _check_tree(event: Event, messages: set[str]) -> None:
    """Each message is added once, below an existing one: so the tree has no cycles."""
    if isinstance(event, TurnStarted):
        _require_message(event.parent, messages)
    for message in _added_messages(event):
        if not message.id or message.id in messages:
            raise UnreadableLog(f"message {message.id!r} exists twice")
        _require_message(message.parent, messages)
        messages.add(message.id)
    if isinstance(event, LeafSelected | MessageDeleted):
        _require_message(event.message, messages)


def _added_messages(event: Event) -> Iterable[Message]:
    if isinstance(event, TurnStarted):
        return () if event.input is None else (event.input,)
    if isinstance(event, MessagesImported):
        return event.messages
    return (event.message,) if isinstance(event, AnswerStarted | MessageAdded) else ()


def _require_message(message: str | None, messages: set[str]) -> None:
    if message is not None and message not in messages:
        raise UnreadableLog(f"there is no message {message!r} at this place")
