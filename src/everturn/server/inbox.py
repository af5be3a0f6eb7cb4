"""What moves in a tenant, for whoever watches all of it: one look per second and tenant, however many watch."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec.structs import replace

from everturn.access.talking import session_view
from everturn.access.titles import with_title, with_titles
from everturn.access.veiling import veil
from everturn.api import GateView, InboxItem, SessionView
from everturn.core.accounts import Principal
from everturn.errors import UnknownSession
from everturn.server.live import Live
from everturn.server.sse import message

if TYPE_CHECKING:
    from everturn.access.access import House

log = logging.getLogger(__name__)

LOOK = 1.0  # seconds between two looks
GATES = 5  # looks after which gates are looked for although nothing moved: those of sub-turns move no session that is listed
MARGIN = 15.0  # seconds by which the clocks of nodes may differ
PAGE = 200  # sessions


class _Tenant:
    """Those who watch a tenant, and what they were last told."""

    def __init__(self, now: float) -> None:
        self.lives: dict[Live, bool] = {}  # whether results that wait for a review are veiled
        self.since = now
        self.sessions: dict[str, SessionView] = {}  # as of the last few looks
        self.waits: dict[str, list[GateView]] | None = None  # None: nobody has looked yet
        self.looks = 0


class Inbox:
    """The watched tenants of a node."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._tenants: dict[str, _Tenant] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def attach(self, live: Live, is_veiled: bool) -> None:
        """Let somebody hear what changes from now on."""
        name = live.principal.tenant
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = self._tenants[name] = _Tenant(self._house.runtime.clock.now())
        tenant.lives[live] = is_veiled

    def detach(self, live: Live) -> None:
        """Somebody has left."""
        tenant = self._tenants.get(live.principal.tenant)
        if tenant is not None:
            tenant.lives.pop(live, None)
            if not tenant.lives:
                del self._tenants[live.principal.tenant]

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            for name, tenant in list(self._tenants.items()):
                try:
                    await self._look(name, tenant)
                except Exception as error:
                    log.warning("what moves in tenant %s could not be seen, and is looked at again: %r", name, error)

    async def _look(self, name: str, tenant: _Tenant) -> None:
        store = self._house.runtime.store
        # By our own clock: what a log says of the time may be wrong, and what is ahead of us is listed every time.
        since, tenant.since = tenant.since - MARGIN, self._house.runtime.clock.now()
        page = found = await store.listed(name, limit=PAGE, since=since)
        while len(page) == PAGE:
            page = await store.listed(name, limit=PAGE, since=since, before=(page[-1].touched, page[-1].id))
            found = [*found, *page]
        views = {info.id: session_view(info) for info in await with_titles(store, found)}
        moved = {session for session, view in views.items() if tenant.sessions.get(session) != view}
        tenant.looks += 1
        if moved or tenant.waits is None or tenant.looks % GATES == 0:
            waits = await self._waits(name)
            before = waits if tenant.waits is None else tenant.waits  # everybody has a snapshot that is newer than it
            moved |= {one for one in waits.keys() | before.keys() if waits.get(one) != before.get(one)}
            tenant.waits = waits
        tenant.sessions = views  # what is older cannot be told again: it is not listed any more
        for session in sorted(moved):
            view = views.get(session) or await self._view(session)
            if view is not None:
                self._tell(tenant, view, (tenant.waits or {}).get(session, []))

    async def _waits(self, tenant: str) -> dict[str, list[GateView]]:
        access = self._house.access(Principal(tenant, "everturn", "approver"))
        waits: dict[str, list[GateView]] = {}
        for gate in await access.open_gates():
            waits.setdefault(gate.session, []).append(gate)
        return waits

    async def _view(self, session: str) -> SessionView | None:
        try:
            store = self._house.runtime.store
            info = await with_title(store, await store.info(session))
        except UnknownSession:
            return None
        return session_view(info)

    def _tell(self, tenant: _Tenant, view: SessionView, waits: list[GateView]) -> None:
        whole = message(InboxItem(session=view, waits=waits))
        seen = [replace(one, gate=veil(one.gate)) for one in waits]
        veiled = whole if seen == waits else message(InboxItem(session=view, waits=seen))
        for live, is_veiled in list(tenant.lives.items()):
            if not live.push(veiled if is_veiled else whole):
                self.detach(live)

    async def aclose(self) -> None:
        """Look no longer."""
        if self._task is not None:
            self._task.cancel()
        self._tenants.clear()
