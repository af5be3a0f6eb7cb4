"""Unattended turns: the chat and the authority of turns that no person starts, those of schedules and inbound hooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everturn.chat.session import Chat
from everturn.core.options import TurnOptions
from everturn.core.tenants.accounts import Role, is_at_least

if TYPE_CHECKING:
    from everturn.base_app import BaseApp


def unattended_chat(app: BaseApp, agent: str, session: str, tenant: str, options: TurnOptions) -> Chat:
    """The chat of a session, with an agent of the app; without one with the default agent, or the app's model."""
    if not app.agents and not agent:
        return Chat("", app=app, session=session, options=options, tenant=tenant)
    definition = app.agents[app.binding(agent).name]
    return Chat(definition, app=app, session=session, options=options, tenant=tenant)


async def user_problem(app: BaseApp, tenant: str, user: str, role: Role = "member") -> str:
    """Why a user has not (or no longer) the authority of a role; "" if they have, and for nobody ("")."""
    if not user:
        return ""
    found = await app.store.accounts.user(tenant, user)
    if found is None or not found[0].is_active:
        return f"its user {user!r} is no longer active; create it again as another user"
    if not found[1].is_active:
        return f"the tenant {tenant!r} is not active"
    if not is_at_least(found[0].role, role):
        allowed = "start turns" if role == "member" else "answer this"
        return f"its user {user!r} has the role {found[0].role!r}, which may not {allowed}"
    return ""
