"""Session parameters in the log: reads the last ones that a person chose."""

from __future__ import annotations

from everturn.core.events import SessionUpdated
from everturn.core.session_parameters import NO_PARAMETERS, SessionParameters
from everturn.core.store_ports import Store
from everturn.errors import UnknownSession


async def read_session_parameters(store: Store, session: str) -> SessionParameters:
    """The parameters that a session has now; none if it does not exist yet."""
    try:
        entries = await store.indexed_events(session, "parameters")
    except UnknownSession:
        return NO_PARAMETERS
    last = entries[-1].event if entries else None
    return (last.parameters if isinstance(last, SessionUpdated) else None) or NO_PARAMETERS
