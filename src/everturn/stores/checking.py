"""A log that anybody may have written → a log that could have happened, or an error. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from everturn.core.events import (
    AnswerOpened,
    Event,
    LeafSelected,
    MessageAdded,
    MessageDeleted,
    TurnEvent,
    TurnStarted,
)
from everturn.core.messages import Message
from everturn.core.options import TurnOptions
from everturn.core.state import TurnState
from everturn.errors import EverturnError, UnreadableLog

BUSY = "a turn is under way in session {session!r}, or waiting: cancel it, then revert the files"
NOT_ALONE = (
    "a turn is under way in session {session!r}, or asked for: wait until it is over, cancel it, or ask to queue"
)


def session_above(options: TurnOptions) -> str:
    """The session whose turn has asked for a turn with these options; "" for one that a person has asked for."""
    above = options.above
    return "" if above is None else above.by[0] or above.session


def began(events: Iterable[Event]) -> tuple[str, str]:
    """The agent of the last turn of a log, and who asked for the first."""
    options = [event.options for event in events if isinstance(event, TurnStarted)]
    return (options[-1].agent, options[0].by) if options else ("", "")


def check_log(events: Sequence[Event]) -> list[TurnState]:
    """Fold every turn, and see that the messages form a tree; these are the turns.

    Raises:
        UnreadableLog: no driver of ours has written this.
    """
    turns: dict[str, TurnState] = {}
    there: set[str] = set()
    gates: set[str] = set()
    for seq, event in enumerate(events, 1):
        try:
            _check_places(event, there)
            if isinstance(event, TurnEvent):
                _apply(event, turns, gates)
        except (EverturnError, KeyError, ValueError, TypeError, AttributeError) as error:
            raise UnreadableLog(f"event {seq} cannot have happened: {error}") from error
    return list(turns.values())


def _apply(event: TurnEvent, turns: dict[str, TurnState], gates: set[str]) -> None:
    if not event.turn:
        raise UnreadableLog("a turn without a name")
    state = turns.get(event.turn)
    if state is None:
        state = turns[event.turn] = TurnState(event.turn)
    before = len(state.gates)
    state.apply(event)
    if len(state.gates) > before:
        gate = next(reversed(state.gates))
        if state.asked[gate].turn != event.turn:  # or it would stay open when its turn ends
            raise UnreadableLog(f"gate {gate!r} is asked by another turn")
        if gate in gates:
            raise UnreadableLog(f"gate {gate!r} is there twice")
        gates.add(gate)


def _check_places(event: Event, there: set[str]) -> None:
    """A message joins once, below one that is there: so there is no way round in circles."""
    if isinstance(event, TurnStarted):
        _known(event.parent, there)
    for message in _joining(event):
        if not message.id or message.id in there:
            raise UnreadableLog(f"message {message.id!r} is there twice")
        _known(message.parent, there)
        there.add(message.id)
    if isinstance(event, LeafSelected | MessageDeleted):
        _known(event.message, there)


def _joining(event: Event) -> Iterable[Message]:
    if isinstance(event, TurnStarted):
        return () if event.input is None else (event.input,)
    return (event.message,) if isinstance(event, AnswerOpened | MessageAdded) else ()


def _known(message: str | None, there: set[str]) -> None:
    if message is not None and message not in there:
        raise UnreadableLog(f"there is no message {message!r} at this place")
