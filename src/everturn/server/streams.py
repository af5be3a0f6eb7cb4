"""Streams of events to whoever may follow them: a session's, a turn's, a tenant's inbox, or a turn in another protocol.

sse      what is shown → bytes
live     one stream, bounded
lives    all of them: limits, signs of life, what was revoked
room     one session, read once for all who follow it
hub      the rooms, and how somebody comes in with a cursor
inbox    what moves in a tenant
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing

from starlette.responses import Response

from everturn.access.access import Access, House, inbox_after
from everturn.access.veiling import veil_event
from everturn.api import InboxItem
from everturn.config.options import ServerOptions
from everturn.core.deltas import Cursor, Reader
from everturn.core.following import SessionCursor, SessionReader
from everturn.errors import UnknownTurn
from everturn.protocols import Encoder
from everturn.server.hub import Hub
from everturn.server.inbox import Inbox
from everturn.server.live import Live
from everturn.server.lives import Lives, Seat, Standing, standing_by
from everturn.server.sse import HEADERS, Sight, Why, ending, message
from everturn.turn.follow import is_turn_over


class Streams:
    """The streams of a node. They share what they read: a thousand readers of a turn cost one reading of its log.

    `standing` says which credentials hold no more; without it the accounts of the house are asked.
    """

    def __init__(self, house: House, options: ServerOptions, standing: Standing | None = None) -> None:
        runtime = house.runtime
        self._lives = Lives(
            standing or standing_by(house.accounts, runtime.clock),
            lambda tenant: house.agents.limits(tenant).streams,
            options.keep_alive,
        )
        self.hub = Hub(runtime.store, runtime.bus, runtime.log_poll, options.merge, runtime.why_gone)
        self._inbox = Inbox(house)

    @property
    def open(self) -> int:
        """How many streams are open."""
        return len(self._lives.all)

    async def session(self, access: Access, session: str, after: str = "") -> Response:
        """All turns of a session, from a cursor; "" is its beginning.

        Raises:
            UnknownSession: it is not there, or theirs.
            TooMuch: the tenant has as many streams as it may.
        """
        is_veiled = await access.follow(session)
        sight = Sight(SessionReader(SessionCursor.parse(after)), veil=veil_event if is_veiled else None)
        return self._joining(access, session, sight, "session")

    async def turn(self, access: Access, session: str, turn: str, after: str = "") -> Response:
        """One turn, from a cursor, until it is over.

        Raises:
            UnknownSession, UnknownTurn: it is not there, or theirs.
            TooMuch: the tenant has as many streams as it may.
        """
        is_veiled = await access.follow(session)
        await self._know(session, turn)
        sight = Sight(Reader(turn, Cursor.parse(after)), turn, veil_event if is_veiled else None)
        return self._joining(access, session, sight, "turn")

    def seat(self, access: Access) -> Seat:
        """Keep a place for a stream, before something is sent whose answer is to be streamed.

        Raises:
            TooMuch: the tenant has as many streams as it may.
        """
        return self._lives.seat(access.principal)

    async def encoded(
        self,
        access: Access,
        session: str,
        turn: str,
        encoder: Encoder,
        headers: Mapping[str, str] | None = None,
        seat: Seat | None = None,
    ) -> Live:
        """One turn from its beginning in another protocol, until it is over or the encoder is done.

        Raises:
            UnknownSession, UnknownTurn: it is not there, or theirs.
            TooMuch: the tenant has as many streams as it may, and no `seat` was kept for this one.
        """
        is_veiled = await access.follow(session)
        await self._know(session, turn)
        sight = Sight(Reader(turn), turn, veil_event if is_veiled else None, encoder)

        async def begin(live: Live) -> None:
            if first := encoder.begin():
                await live.write(first)
            await self.hub.join(live, session, access.principal.tenant, sight)

        return self._live(access, begin, encoder.end, {**HEADERS, **(headers or {})}, seat, kind="protocol")

    async def inbox(self, access: Access) -> Response:
        """What waits for somebody in the tenant, and what moves.

        Raises:
            TooMuch: the tenant has as many streams as it may.
        """
        self._lives.admit(access.principal)
        first = await access.inbox()

        async def begin(live: Live) -> None:
            # Before the snapshot is written, which may take a while: a change that it has already does no harm.
            self._inbox.attach(live, access.is_veiled)
            live.on_leave = lambda: self._inbox.detach(live)
            await live.write(message(InboxItem(snapshot=first)))
            async with aclosing(inbox_after(access, first)) as more:
                async for item in more:
                    await live.write(message(item))

        return self._live(access, begin, _inbox_ending, kind="inbox")

    async def _know(self, session: str, turn: str) -> None:
        """Refuse a turn that is not of this session."""
        room = self.hub.rooms.get(session)
        if room is not None and room.is_open(turn):
            return
        store = self.hub.store
        if not await is_turn_over(store, session, turn) or await store.events(session, 0, turn):
            return
        if not await store.asked_for(session, turn):  # else it was cancelled before it began, and is over
            raise UnknownTurn(f"there is no turn {turn[:200]!r} in this session")

    def _joining(self, access: Access, session: str, sight: Sight, kind: str) -> Response:
        async def begin(live: Live) -> None:
            await self.hub.join(live, session, access.principal.tenant, sight)

        return self._live(access, begin, ending, kind=kind)

    def _live(
        self,
        access: Access,
        begin: Callable[[Live], Awaitable[None]],
        ends: Callable[[Why], bytes],
        headers: Mapping[str, str] | None = None,
        seat: Seat | None = None,
        *,
        kind: str,
    ) -> Live:
        if seat is None:
            self._lives.admit(access.principal)
        else:
            seat.take()
        lives = self._lives
        return lives.count_in(Live(access.principal, begin, ends, lives.arrived, lives.left, headers, kind))

    def erased(self, session: str) -> None:
        """End the streams of a session that was erased here; elsewhere they end when somebody looks."""
        self.hub.end(session, "erased")

    async def start(self) -> None:
        """Begin to look for what was revoked, and for what moved."""
        self._lives.start()
        self._inbox.start()

    async def aclose(self, grace: float = 0.0) -> None:
        """End every stream, so that its reader goes on elsewhere; an answer that is collected has `grace` seconds."""
        await self._lives.aclose(grace)
        await self._inbox.aclose()
        await self.hub.aclose()


def _inbox_ending(why: Why) -> bytes:
    return message(InboxItem(end=why if why in ("drain", "slow", "revoked") else ""))
