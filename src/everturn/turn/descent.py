"""Where the sub-turns of a turn are: each in a session of its own, named after the call that asked for it."""

from __future__ import annotations

from collections.abc import Iterable

from everturn.core.calls import Call
from everturn.core.events import CallBelow
from everturn.core.ports import Store
from everturn.core.state import Phase, TurnState, fold
from everturn.errors import UnknownSession


def session_below(session: str, call: str, number: int = 1) -> str:
    """The session of the sub-turn that a call asks for, the first or a further one."""
    return f"{session}-{call}" if number == 1 else f"{session}-{call}.{number}"


def may_be_below(call: Call) -> bool:
    """Whether a sub-turn of a call may be under way. One that was cancelled may not have got as far as to cancel it."""
    return bool(call.below) and (call.state in ("running", "waiting", "cancelled") or call.is_out)


async def sessions_below(store: Store, session: str, states: Iterable[TurnState]) -> list[str]:
    """The sessions of sub-turns that may be under way for turns, and for their sub-turns."""
    found: list[str] = []
    for state in states:
        for call in state.calls.values():
            if may_be_below(call):
                for name, _ in call.below.values():
                    found += await _of_call(store, name)
    return list(dict.fromkeys(found))


async def _of_call(store: Store, session: str) -> list[str]:
    try:
        turns = await store.open_turns(session)
    except UnknownSession:  # it was about to be begun
        return []
    logs = [await store.events(session, turn=turn) for turn in turns]
    states = [fold(entry.event for entry in log) for log in logs if log]
    return [session, *await sessions_below(store, session, states)]


async def waits_below(store: Store, call: Call, turn: str) -> bool:
    """Whether the sub-turn that a call waits for waits itself."""
    for session, below in call.below.values():
        if below == turn:
            try:
                log = await store.events(session, turn=turn)
            except UnknownSession:  # it was never begun, or is erased: the tool that is run again finds out
                return False
            return bool(log) and fold(entry.event for entry in log).phase is Phase.WAITING
    return False


async def detached_below(store: Store, session: str) -> list[str]:
    """The sessions of sub-turns that go on though the turns are over that asked for them."""
    found: list[str] = []
    for entry in await store.events(session):
        if isinstance(entry.event, CallBelow) and entry.event.session not in found:
            found += await _of_call(store, entry.event.session) if await _is_open(store, entry.event.session) else []
    return found


async def _is_open(store: Store, session: str) -> bool:
    try:
        return bool(await store.open_turns(session))
    except UnknownSession:
        return False
