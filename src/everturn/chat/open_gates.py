"""Open gates of a session and its sub-agent runs."""

from __future__ import annotations

from everturn.base_app import BaseApp
from everturn.core.gates import Gate
from everturn.core.state import fold
from everturn.errors import UnknownSession
from everturn.running.subagent_index import active_subagent_sessions, detached_subagent_sessions
from everturn.tools.subagent import SubagentTool


async def read_open_gates(app: BaseApp, session: str) -> list[Gate]:
    """The open gates of a session, then those of its sub-agent runs, detached ones too."""
    store = app.store
    try:
        gates = [row.gate for row in await store.gates(session)]
        logs = [await store.events(session, turn=turn) for turn in await store.open_turns(session)]
    except UnknownSession:  # the session is created by its first message
        return []
    states = [fold(entry.event for entry in log) for log in logs if log]
    subagent_sessions = await active_subagent_sessions(store, session, states)
    if any(isinstance(tool, SubagentTool) and tool.request.detached for tool in app.tools.values()):
        subagent_sessions += [
            name for name in await detached_subagent_sessions(store, session) if name not in subagent_sessions
        ]
    for name in subagent_sessions:
        gates += [row.gate for row in await store.gates(name)]
    return gates
