"""Agent selection: hands a session to another agent, and waits until its log says so."""

from __future__ import annotations

from everturn.base_app import BaseApp
from everturn.chat.commands import carry_out
from everturn.chat.replies import checked_name
from everturn.core.commands import SelectAgent


async def select_agent(app: BaseApp, session: str, tenant: str, agent: str, by: str, key: str | None = None) -> None:
    """Hand a session to an agent that the caller has checked.

    Raises:
        SessionBusy: a turn is running or suspended.
        CommandRefused: a turn began at the same moment.
        UnknownSession: the session does not exist.
    """
    key, at = key or app.ids.new("cmd"), app.clock.now()
    command = SelectAgent(key=key, session=session, tenant=tenant, at=at, agent=agent, by=checked_name(by))
    await carry_out(app, command)
