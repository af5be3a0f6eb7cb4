"""A message that steers → the turn that it is to join, or none."""

from __future__ import annotations

from everturn.chat.turn import Turn
from everturn.core.commands import Send
from everturn.core.options import TurnOptions
from everturn.core.ports import Store
from everturn.core.state import TurnState, fold
from everturn.errors import CommandRefused, UnknownSession, UnknownTurn

OF_ANOTHER = (
    "this turn has tools that run with whoever began it, and they alone steer it; send this as the next message instead"
)
OF_A_TURN = "this is a sub-turn: it answers to the turn above it, and a person steers that one"


def id_of_turn(turn: str | Turn) -> str:
    """A turn, by its id."""
    return turn if isinstance(turn, str) else turn.id


async def steered_by(store: Store, session: str, turn: str | bool, by: str = "") -> str:
    """The turn that a message joins: this one, or (True) the one on the selected branch; "" when none is under way.

    Raises:
        UnknownTurn: there is no such turn in this session.
        CommandRefused: it is a sub-turn, or runs tools in the client of somebody who is not `by`.
    """
    try:
        # The inbox first: a turn that begins between the two looks is then seen by one of them.
        asked = [one for one in await store.inbox(session) if isinstance(one, Send) and not one.joins]
        if isinstance(turn, str):
            return await _named(store, session, turn, asked, by)
        turns, leaf = await store.open_turns(session), (await store.info(session)).leaf
        for name in turns:
            state = await _state(store, session, name)
            if leaf in state.messages or leaf == state.tip:
                return _checked(name, state.options, by)
    except UnknownSession:  # it begins with this
        return ""
    return _checked(asked[0].turn, asked[0].options, by) if asked and not turns else ""


async def _named(store: Store, session: str, turn: str, asked: list[Send], by: str) -> str:
    for one in asked:
        if one.turn == turn:
            return _checked(turn, one.options, by)
    if not await store.asked_for(session, turn):
        raise UnknownTurn(f"there is no turn {turn!r} in this session")
    return _checked(turn, (await _state(store, session, turn)).options, by)


async def _state(store: Store, session: str, turn: str) -> TurnState:
    entries = await store.events(session, turn=turn)
    return fold(entry.event for entry in entries) if entries else TurnState(turn)


def _checked(turn: str, options: TurnOptions, by: str) -> str:
    if options.clients and options.by != by:
        raise CommandRefused(OF_ANOTHER)
    if options.above is not None:
        raise CommandRefused(OF_A_TURN)
    return turn
