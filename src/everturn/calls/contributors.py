"""Contributors: users other than the one who started a turn whose input a call may carry out.

They sent a message into the turn while it ran, or edited the arguments of the call or of one above it. A sub-agent run has
those of the turns above it. A tool that acts with the rights of one person refuses such a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from everturn.core.events import MessageAdded
from everturn.core.state import TurnState, fold
from everturn.core.store_ports import EventLog

PLUGIN: Final = "plugin:"


async def find_contributors(log: EventLog, session: str, state: TurnState, call: str) -> Sequence[str]:
    """Return the users who contributed to a call, without the one who started the turn."""
    user, found = state.options.by, set[str]()
    while True:
        found |= {by for by in _editors(state, call) if not by.startswith(PLUGIN)}
        others = [
            message
            for message in state.messages.values()
            if message.role == "user" and message.id != state.input and message.by not in (user, "")
        ]
        if others:  # plugins append messages, too; those of people came with a command
            events = [entry.event for entry in await log.events(session, turn=state.id)]
            sent = {event.message.id for event in events if isinstance(event, MessageAdded) and event.command}
            found |= {message.by for message in others if message.id in sent}
        above = state.options.lineage
        if above is None or not above.by[0]:
            return sorted(found - {user, ""})
        session, turn, call = above.by
        state = fold(entry.event for entry in await log.events(session, turn=turn))


def _editors(state: TurnState, call: str) -> Iterator[str]:
    record = state.calls.get(call)
    while record is not None:
        if record.resolution is not None and record.resolution.arguments:
            yield record.resolution.by
        record = state.calls.get(record.parent) if record.parent else None
