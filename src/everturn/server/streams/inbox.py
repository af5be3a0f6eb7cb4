"""Inbox feed: polls each watched tenant once a second for changed sessions and gates, and pushes each to the streams of those
who may see it. An approver who is not part of a conversation gets its gates and its title, and nothing else.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from msgspec.structs import replace

from everturn.access.access import Access
from everturn.access.context.role_redaction import redact_gate
from everturn.access.conversations.sessions import session_view
from everturn.access.conversations.sharing import Audience, outside_view, read_audience
from everturn.access.conversations.titles import with_title, with_titles
from everturn.api import GateView, InboxItem, SessionView
from everturn.core.store_ports import SessionFilter
from everturn.core.tenants.accounts import Principal
from everturn.errors import UnknownSession
from everturn.server.streams.response import EventStreamResponse
from everturn.server.streams.sse import encode_message

if TYPE_CHECKING:
    from everturn.access.context.server_context import ServerContext

log = logging.getLogger(__name__)

POLL_INTERVAL = 1.0  # seconds between two polls
GATE_POLL_EVERY = (
    5  # polls after which gates are read although no session changed: those of sub-agents change no listed session
)
CLOCK_SKEW = 15.0  # seconds by which the clocks of nodes may differ
PAGE = 200  # sessions


class _WatchedTenant:
    """The streams that watch a tenant, and what they were last sent."""

    def __init__(self, now: float) -> None:
        self.streams: dict[EventStreamResponse, bool] = {}  # whether results under review are redacted
        self.since = now
        self.sessions: dict[str, SessionView] = {}  # as of the last few polls
        self.open_gates: dict[str, list[GateView]] | None = None  # None: not read yet
        self.polls = 0


class InboxFeed:
    """The watched tenants of a node."""

    def __init__(self, server_context: ServerContext) -> None:
        self._server_context = server_context
        self._tenants: dict[str, _WatchedTenant] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start polling."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._poll_all())

    def attach(self, stream: EventStreamResponse, is_redacted: bool) -> None:
        """Push changes to a stream from now on."""
        name = stream.principal.tenant
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = self._tenants[name] = _WatchedTenant(self._server_context.app.clock.now())
        tenant.streams[stream] = is_redacted

    def detach(self, stream: EventStreamResponse) -> None:
        """Remove a stream that has closed."""
        tenant = self._tenants.get(stream.principal.tenant)
        if tenant is not None:
            tenant.streams.pop(stream, None)
            if not tenant.streams:
                del self._tenants[stream.principal.tenant]

    async def _poll_all(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            for name, tenant in list(self._tenants.items()):
                try:
                    await self._poll(name, tenant)
                except Exception as error:
                    log.warning("changes in tenant %s could not be read; trying again: %r", name, error)

    async def _poll(self, name: str, tenant: _WatchedTenant) -> None:
        store = self._server_context.app.store
        # By our own clock: the time in a log may be wrong, and a session with a time in the future is listed at every poll.
        since, tenant.since = tenant.since - CLOCK_SKEW, self._server_context.app.clock.now()
        page = sessions = await store.session_page(name, limit=PAGE, since=since)
        while len(page) == PAGE:
            page = await store.session_page(name, limit=PAGE, since=since, before=(page[-1].touched, page[-1].id))
            sessions = [*sessions, *page]
        # To rename or to archive a session does not change its place in a list, and so not the time of that order.
        organized = SessionFilter(organized_since=since)
        sessions = [*sessions, *await store.session_page(name, limit=PAGE, where=organized)]
        views = {info.id: session_view(info) for info in await with_titles(store, sessions)}
        moved = {session for session, view in views.items() if tenant.sessions.get(session) != view}
        tenant.polls += 1
        gated = set(tenant.open_gates or ())  # sessions that had open gates, of which approvers have been told
        if moved or tenant.open_gates is None or tenant.polls % GATE_POLL_EVERY == 0:
            waits = await self._waits(name)
            # At the first poll nothing has changed: every stream has a snapshot that is newer than this one.
            before = waits if tenant.open_gates is None else tenant.open_gates
            moved |= {
                session_id
                for session_id in waits.keys() | before.keys()
                if waits.get(session_id) != before.get(session_id)
            }
            tenant.open_gates = waits
        tenant.sessions = views  # an older one cannot be sent again: it is not listed any more
        audience = await read_audience(store, moved) if moved else None
        for session in sorted(moved):
            view = views.get(session) or await self._view(session)
            if view is not None and audience is not None:
                waits = (tenant.open_gates or {}).get(session, [])
                self._push(tenant, view, waits, audience, bool(waits) or session in gated)

    async def _waits(self, tenant: str) -> dict[str, list[GateView]]:
        access = Access(self._server_context, Principal(tenant, "everturn", "approver"))
        waits: dict[str, list[GateView]] = {}
        for gate in (await access.gates.page()).gates:
            waits.setdefault(gate.session, []).append(gate)
        return waits

    async def _view(self, session: str) -> SessionView | None:
        try:
            store = self._server_context.app.store
            info = await with_title(store, await store.info(session))
        except UnknownSession:
            return None
        return session_view(info)

    def _push(
        self, tenant: _WatchedTenant, view: SessionView, waits: list[GateView], audience: Audience, is_gated: bool
    ) -> None:
        now, is_listed = self._server_context.app.clock.now(), audience.is_listed(view.id)
        shown = view if is_listed else replace(view, is_listed=False)
        whole = encode_message(InboxItem(session=shown, waits=waits))
        redacted = [replace(gate_view, gate=redact_gate(gate_view.gate)) for gate_view in waits]
        redacted_frame = whole if redacted == waits else encode_message(InboxItem(session=shown, waits=redacted))
        outside = encode_message(InboxItem(session=outside_view(view, waits[0].title if waits else ""), waits=waits))
        for stream, is_redacted in list(tenant.streams.items()):
            if audience.includes(stream.principal, view.id, now):
                frame = (redacted_frame if is_redacted else whole) if is_listed or is_gated else b""
            else:
                frame = outside if is_gated and not is_redacted else b""
            if frame and not stream.push(frame):
                self.detach(stream)

    async def aclose(self) -> None:
        """Stop polling."""
        if self._task is not None:
            self._task.cancel()
        self._tenants.clear()
