"""Quarantined sessions: lists those of the tenant without their text, runs one again, or cancels its turns.

A session is quarantined when its driver died too often. An owner may act on one that is private to its author, and sees
no more than its id, its author and the reason.
"""

from __future__ import annotations

import secrets
from typing import Final

from everturn import api
from everturn.access.context.roles import needs
from everturn.access.context.scope import ScopedAccess, is_id
from everturn.core.store_ports import SessionInfo
from everturn.core.tenants.sharing import TEMPORARY_SECONDS
from everturn.errors import UnknownSession

PAGE: Final = 500  # sessions that are read at once


class QuarantineAccess:
    """Access to the quarantined sessions of the tenant."""

    __slots__ = ("scope",)

    def __init__(self, scope: ScopedAccess) -> None:
        self.scope = scope

    @needs("owner")
    async def list(self) -> api.QuarantineList:
        """The quarantined sessions, oldest first, and how long sessions are kept."""
        found: list[api.QuarantinedSession] = []
        after: tuple[float, str] | None = None
        while True:
            with self.scope.tenant_scope(whole=True):
                page = await self.scope.store.sessions(quarantined=True, limit=PAGE, after=after)
                own = [info for info in page if info.tenant == self.scope.principal.tenant]
                found += [await self._view(info) for info in own]
            if len(page) < PAGE:
                break
            after = (page[-1].created, page[-1].id)
        return api.QuarantineList(
            sessions=found,
            retention_days=self.scope.server_context.retention_days,
            temporary_hours=TEMPORARY_SECONDS / 3600.0,
        )

    async def _view(self, info: SessionInfo) -> api.QuarantinedSession:
        turns = await self.scope.store.open_turns(info.id)
        return api.QuarantinedSession(
            id=info.id,
            by=info.by,
            agent=info.agent,
            created=info.created,
            updated=info.touched,
            reason=info.quarantined,
            open_turns=len(turns),
        )

    async def _session(self, session: str) -> SessionInfo:
        """A session of the tenant, also one that is private to others or a sub-agent's."""
        if not is_id(session):
            raise UnknownSession("there is no such session")
        return await self.scope.tenant_session(session)

    @needs("owner")
    async def retry(self, session: str) -> None:
        """Let a quarantined session be driven again, at once."""
        info = await self._session(session)
        await self.scope.audit_action("session.retry", info.id)
        if await self.scope.store.retry(info.id):
            await self.scope.server_context.app.engine.wake(info.id)

    @needs("owner")
    async def cancel(self, session: str) -> api.CancelledSession:
        """Cancel the open turns of a session; the command also ends its quarantine."""
        info = await self._session(session)
        with self.scope.tenant_scope(whole=True):
            turns = await self.scope.store.open_turns(info.id)
        await self.scope.audit_action("turn.cancel", info.id, turns=list(turns))
        for turn in turns:
            await self.scope.chat(info.id).turn(turn).cancel(key=f"admin_{secrets.token_hex(8)}")
        return api.CancelledSession(turns=len(turns))
