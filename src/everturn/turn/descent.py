"""Where the sub-turns of a turn are: each in a session of its own, named after the call that asked for it."""

from __future__ import annotations

from collections.abc import Iterable

from everturn.core.ports import Store
from everturn.core.state import TurnState, fold
from everturn.errors import UnknownSession


def session_below(session: str, call: str, number: int = 1) -> str:
    """The session of the sub-turn that a call asks for, the first or a further one."""
    return f"{session}-{call}" if number == 1 else f"{session}-{call}.{number}"


async def sessions_below(store: Store, session: str, states: Iterable[TurnState]) -> list[str]:
    """The sessions of sub-turns that may be under way for turns, and for their sub-turns."""
    found: list[str] = []
    for state in states:
        for call in state.calls.values():
            if call.state == "running" or call.is_out:
                found += await _of_call(store, session, call.id)
    return found


async def _of_call(store: Store, session: str, call: str) -> list[str]:
    found: list[str] = []
    number = 1
    while True:
        name = session_below(session, call, number)
        try:
            turns = await store.open_turns(name)
        except UnknownSession:
            return found
        logs = [await store.events(name, turn=turn) for turn in turns]
        states = [fold(entry.event for entry in log) for log in logs if log]
        found += [name, *await sessions_below(store, name, states)]
        number += 1
