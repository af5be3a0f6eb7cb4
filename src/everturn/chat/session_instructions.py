"""Session instructions: what a person adds to the instructions of the agent, for one session. The log has them."""

from __future__ import annotations

from everturn.base_app import BaseApp
from everturn.chat.commands import carry_out
from everturn.chat.replies import checked_name
from everturn.core.commands import SetInstructions
from everturn.core.events import InstructionsSet
from everturn.core.store_ports import Store
from everturn.errors import UnknownSession


async def read_session_instructions(store: Store, session: str) -> str:
    """The instructions that a session has now; "" if it has none, or does not exist yet."""
    if not session:
        return ""
    try:
        entries = await store.indexed_events(session, "instructions")
    except UnknownSession:
        return ""
    last = entries[-1].event if entries else None
    return last.text if isinstance(last, InstructionsSet) else ""


async def set_session_instructions(
    app: BaseApp, session: str, tenant: str, text: str, *, by: str = "", key: str | None = None
) -> None:
    """Set the instructions of a session, and wait until its log has them; "" removes them.

    Raises:
        UnknownSession: the session does not exist.
    """
    key, at = key or app.ids.new("cmd"), app.clock.now()
    command = SetInstructions(key=key, session=session, tenant=tenant, at=at, text=text, by=checked_name(by))
    await carry_out(app, command)
