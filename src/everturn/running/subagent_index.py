"""Sub-agent index: finds the sessions of a turn's sub-agent runs.

Each has a session of its own, named after its call.
"""

from __future__ import annotations

from collections.abc import Iterable

from everturn.core.calls import CallRecord
from everturn.core.events import SubagentStarted
from everturn.core.phases import Phase
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import Store
from everturn.errors import UnknownSession


def subagent_session_id(session: str, call: str, number: int = 1) -> str:
    """The session id of a call's sub-agent run, the first or a further one."""
    return f"{session}-{call}" if number == 1 else f"{session}-{call}.{number}"


def may_have_active_subagents(call: CallRecord) -> bool:
    """Whether a sub-agent run of a call may be active. A cancelled call may not have cancelled its runs yet."""
    return bool(call.children) and (call.state in ("running", "waiting", "cancelled") or call.is_still_running)


async def active_subagent_sessions(store: Store, session: str, states: Iterable[TurnState]) -> list[str]:
    """The sessions of active sub-agent runs of these turns, at any depth."""
    sessions: list[str] = []
    for state in states:
        for call in state.calls.values():
            if may_have_active_subagents(call):
                for name, _ in call.children.values():
                    sessions += await _active_sessions(store, name)
    return list(dict.fromkeys(sessions))


async def _active_sessions(store: Store, session: str) -> list[str]:
    try:
        turns = await store.open_turns(session)
    except UnknownSession:  # it was about to be started
        return []
    logs = [await store.events(session, turn=turn) for turn in turns]
    states = [fold(entry.event for entry in log) for log in logs if log]
    return [session, *await active_subagent_sessions(store, session, states)]


async def is_subagent_suspended(store: Store, call: CallRecord, turn: str) -> bool:
    """Whether the sub-agent run that a call waits for is itself suspended."""
    for session, run_turn in call.children.values():
        if run_turn == turn:
            try:
                log = await store.events(session, turn=turn)
            except UnknownSession:  # it was never started, or is erased: the resumed tool finds out
                return False
            return bool(log) and fold(entry.event for entry in log).phase is Phase.WAITING
    return False


async def detached_subagent_sessions(store: Store, session: str) -> list[str]:
    """The sessions of detached sub-agent runs, which continue after their parent turns have ended."""
    sessions: list[str] = []
    for entry in await store.indexed_events(session, "subagent"):
        if isinstance(entry.event, SubagentStarted) and entry.event.session not in sessions:
            sessions += (
                await _active_sessions(store, entry.event.session) if await _is_open(store, entry.event.session) else []
            )
    return sessions


async def _is_open(store: Store, session: str) -> bool:
    try:
        return bool(await store.open_turns(session))
    except UnknownSession:
        return False
