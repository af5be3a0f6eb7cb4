"""Steering target: finds the running turn that a steering message joins."""

from __future__ import annotations

from everturn.chat.turn import Turn
from everturn.core.commands import Send
from everturn.core.options import TurnOptions
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import Store
from everturn.errors import CommandRefused, UnknownSession, UnknownTurn

NOT_YOUR_TURN = "this turn uses client tools of the person who started it, so only that person can steer it; send this as the next message instead"
IS_SUBAGENT = "this is a sub-agent run: steer its parent turn instead"


def id_of_turn(turn: str | Turn) -> str:
    """The id of a turn."""
    return turn if isinstance(turn, str) else turn.id


async def find_steered_turn(store: Store, session: str, turn: str | bool, by: str = "") -> str:
    """The turn that a message joins: the given one, or (True) that of the selected branch; "" if none is running.

    Raises:
        UnknownTurn: there is no such turn in this session.
        CommandRefused: it is a sub-agent run, or has client tools of a user other than `by`.
    """
    try:
        # The inbox first: a turn that starts between the two reads is then seen by one of them.
        queued = [command for command in await store.inbox(session) if isinstance(command, Send) and not command.joins]
        if isinstance(turn, str):
            return await _given_turn(store, session, turn, queued, by)
        turns, leaf = await store.open_turns(session), (await store.info(session)).leaf
        for name in turns:
            state = await _state(store, session, name)
            if leaf in state.messages or leaf == state.tip:
                return _checked_target(name, state.options, by)
    except UnknownSession:  # the session is created by this message
        return ""
    return _checked_target(queued[0].turn, queued[0].options, by) if queued and not turns else ""


async def _given_turn(store: Store, session: str, turn: str, queued: list[Send], by: str) -> str:
    for send in queued:
        if send.turn == turn:
            return _checked_target(turn, send.options, by)
    if not await store.has_turn_command(session, turn):
        raise UnknownTurn(f"there is no turn {turn!r} in this session")
    return _checked_target(turn, (await _state(store, session, turn)).options, by)


async def _state(store: Store, session: str, turn: str) -> TurnState:
    entries = await store.events(session, turn=turn)
    return fold(entry.event for entry in entries) if entries else TurnState(turn)


def _checked_target(turn: str, options: TurnOptions, by: str) -> str:
    if options.clients and options.by != by:
        raise CommandRefused(NOT_YOUR_TURN)
    if options.lineage is not None:
        raise CommandRefused(IS_SUBAGENT)
    return turn
