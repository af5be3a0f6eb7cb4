"""Presence access: a caller says what they look at, and learns who else does.

A name is shown to those who may see the conversation. An approver who is not part of it learns only of other approvers
who are not, and look at an approval of it. An administrator who opened the conversation is shown as such.
"""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.core.presence import Viewing
from everturn.core.tenants.sharing import level_of
from everturn.errors import UnknownSession

NAME_SECONDS: Final = 60.0  # for which the name of a user is remembered
MOST_NAMES: Final = 10_000


class PresenceAccess:
    """Access to who looks at conversations."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("viewer")
    async def look(self, looking: api.Looking) -> api.PresenceView:
        """Say what a tab looks at now, and learn who else looks at that. A look that is not repeated ends after ten seconds."""
        principal, board = self.scope.principal, self.scope.server_context.presence
        name = await self._name()
        reports: list[Viewing] = []
        found: dict[tuple[str, str, str], api.ViewerView] = {}
        for session in dict.fromkeys(at.session for at in looking.at):
            kind = await self._kind(session)
            if kind is None:
                continue  # not there, or not theirs: nobody is told of it
            gates = [at.gate for at in looking.at if at.session == session]
            if kind == "outside":
                gates = [gate for gate in gates if gate and await self._is_open(session, gate)]
            for gate in dict.fromkeys(gates):
                viewing = Viewing(
                    tenant=principal.tenant,
                    session=session,
                    user=principal.user,
                    name=name,
                    tab=looking.tab,
                    gate=gate,
                    kind=kind,
                    has_left=looking.has_left,
                )
                reports.append(viewing)
            for other in board.viewers(principal.tenant, session) if gates else ():
                is_shown = kind != "outside" or (other.kind == "outside" and other.gate in gates)
                if other.user != principal.user and is_shown:
                    found[session, other.gate, other.user] = api.ViewerView(
                        session=session,
                        gate=other.gate,
                        user=other.user,
                        name=other.name,
                        is_administrator=other.kind == "administrator",
                    )
        if reports:
            board.report(principal.tenant, reports)
        return api.PresenceView(viewers=list(found.values()))

    async def _kind(self, session: str) -> str | None:
        """How the caller sees a session: as a part of it, as an administrator who opened it, or its approvals from outside."""
        if not is_id(session):
            return None
        try:
            if not await self.scope.takes_part(session):
                return "outside"
            info = await self.scope.readable_session(session)
        except UnknownSession:
            return None
        root = (await self.scope.root_sessions({session})).get(session, info)
        with self.scope.tenant_scope(whole=True):
            shares = await self.scope.store.sharing.shares([root.id])
        own = level_of(self.scope.reader, root.by, [share for share in shares if share.kind != "admin"])
        return "" if own is not None else "administrator"

    async def _is_open(self, session: str, gate: str) -> bool:
        with self.scope.tenant_scope(whole=True):
            rows = await self.scope.store.gates(session)
        return any(row.gate.id == gate for row in rows)

    async def _name(self) -> str:
        context, principal = self.scope.server_context, self.scope.principal
        known, now = context.presence_names, context.app.clock.now()
        name, until = known.get((principal.tenant, principal.user), ("", 0.0))
        if until <= now:
            if len(known) >= MOST_NAMES:
                known.clear()
            account = await context.accounts.user(principal.tenant, principal.user)
            name = (account[0].name if account is not None else "") or principal.user
            known[principal.tenant, principal.user] = name, now + NAME_SECONDS
        return name
