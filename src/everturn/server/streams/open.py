"""Stream endpoints: opens the event stream of a session, a turn, a tenant's inbox, or a turn in another protocol."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing

from starlette.responses import Response

from everturn.access.access import Access, read_inbox_after
from everturn.access.context.role_redaction import redact_event
from everturn.access.context.server_context import ServerContext
from everturn.access.conversations.sharing import find_lost_access
from everturn.api import InboxItem
from everturn.config.server_options import ServerOptions
from everturn.core.deltas import Cursor, TurnReader
from everturn.core.projections.session_reader import SessionCursor, SessionReader
from everturn.errors import UnknownTurn
from everturn.protocols import Encoder
from everturn.running.follow import is_turn_over
from everturn.server.streams.hub import StreamHub
from everturn.server.streams.inbox import InboxFeed
from everturn.server.streams.registry import CredentialCheck, StreamRegistry, StreamSlot, check_with_accounts
from everturn.server.streams.response import EventStreamResponse
from everturn.server.streams.sse import HEADERS, EndReason, Subscriber, encode_end, encode_message


class StreamEndpoints:
    """The streams of a node. They share what they read: a thousand streams of a turn cost one reading of its log.

    `standing` returns the credentials that are no longer valid; the default queries the accounts.
    """

    def __init__(
        self, server_context: ServerContext, options: ServerOptions, standing: CredentialCheck | None = None
    ) -> None:
        app = server_context.app
        self._registry = StreamRegistry(
            standing or check_with_accounts(server_context.accounts, app.clock),
            lambda tenant: server_context.agents.limits(tenant).streams,
            options.keep_alive,
            lambda streams: find_lost_access(server_context, streams),
        )
        self.hub = StreamHub(app.store, app.bus, app.log_poll, options.merge, app.explain_not_driven)
        self._inbox = InboxFeed(server_context)
        self._server_context = server_context

    @property
    def open(self) -> int:
        """How many streams are open."""
        return len(self._registry.all)

    async def session(self, access: Access, session: str, after: str = "") -> Response:
        """Stream all turns of a session from a cursor; "" is the beginning.

        Raises:
            UnknownSession: there is no such session in the caller's tenant.
            TooMuch: the tenant has reached its limit of streams.
        """
        is_redacted = await access.follow(session)
        subscriber = Subscriber(SessionReader(SessionCursor.parse(after)), redact=redact_event if is_redacted else None)
        return self._join(access, session, subscriber, "session")

    async def turn(self, access: Access, session: str, turn: str, after: str = "") -> Response:
        """Stream one turn from a cursor until it is over.

        Raises:
            UnknownSession, UnknownTurn: there is none in the caller's tenant.
            TooMuch: the tenant has reached its limit of streams.
        """
        is_redacted = await access.follow(session)
        await self._check_turn(session, turn)
        subscriber = Subscriber(TurnReader(turn, Cursor.parse(after)), turn, redact_event if is_redacted else None)
        return self._join(access, session, subscriber, "turn")

    def reserve(self, access: Access) -> StreamSlot:
        """Reserve a stream before a message is sent whose answer is to be streamed.

        Raises:
            TooMuch: the tenant has reached its limit of streams.
        """
        return self._registry.reserve(access.principal)

    async def encoded(
        self,
        access: Access,
        session: str,
        turn: str,
        encoder: Encoder,
        headers: Mapping[str, str] | None = None,
        seat: StreamSlot | None = None,
    ) -> EventStreamResponse:
        """Stream one turn from its beginning in another protocol, until it is over or the encoder is done.

        Raises:
            UnknownSession, UnknownTurn: there is none in the caller's tenant.
            TooMuch: the tenant has reached its limit of streams, and no `seat` was reserved.
        """
        is_redacted = await access.follow(session)
        await self._check_turn(session, turn)
        subscriber = Subscriber(TurnReader(turn), turn, redact_event if is_redacted else None, encoder)

        async def begin(stream: EventStreamResponse) -> None:
            if first := encoder.begin():
                await stream.write(first)
            await self.hub.join(stream, session, access.principal.tenant, subscriber)

        return self._create(
            access, begin, encoder.end, {**HEADERS, **(headers or {})}, seat, kind="protocol", session=session
        )

    async def inbox(self, access: Access) -> Response:
        """Stream the tenant's open gates and changed sessions.

        Raises:
            TooMuch: the tenant has reached its limit of streams.
        """
        self._registry.admit(access.principal)
        first = await access.inbox()

        async def begin(stream: EventStreamResponse) -> None:
            # Before the snapshot is sent, which may take a while: a change that the snapshot already has is harmless.
            self._inbox.attach(stream, access.scope.is_redacted)
            stream.on_leave = lambda: self._inbox.detach(stream)
            await stream.write(encode_message(InboxItem(snapshot=first)))
            async with aclosing(read_inbox_after(access, first)) as more:
                async for item in more:
                    await stream.write(encode_message(item))

        return self._create(access, begin, _inbox_ending, kind="inbox")

    async def _check_turn(self, session: str, turn: str) -> None:
        """Check that a turn belongs to this session."""
        broadcast = self.hub.broadcasts.get(session)
        if broadcast is not None and broadcast.is_open(turn):
            return
        store = self.hub.store
        if not await is_turn_over(store, session, turn) or await store.events(session, 0, turn):
            return
        if not await store.has_turn_command(session, turn):  # otherwise it was cancelled before it began, and is over
            raise UnknownTurn(f"there is no turn {turn[:200]!r} in this session")

    def _join(self, access: Access, session: str, subscriber: Subscriber, kind: str) -> Response:
        async def begin(stream: EventStreamResponse) -> None:
            await self.hub.join(stream, session, access.principal.tenant, subscriber)

        return self._create(access, begin, encode_end, kind=kind, session=session)

    def _create(
        self,
        access: Access,
        begin: Callable[[EventStreamResponse], Awaitable[None]],
        ends: Callable[[EndReason], bytes],
        headers: Mapping[str, str] | None = None,
        seat: StreamSlot | None = None,
        *,
        kind: str,
        session: str = "",
    ) -> EventStreamResponse:
        if seat is None:
            self._registry.admit(access.principal)
        else:
            seat.release()
        registry = self._registry
        return registry.count_stream(
            EventStreamResponse(
                access.principal, begin, ends, registry.register, registry.unregister, headers, kind, session
            )
        )

    def end_erased(self, session: str) -> None:
        """End the streams of a session that was erased on this node; other nodes end theirs when they read the log."""
        self.hub.end(session, "erased")

    async def end_lost_access(self) -> None:
        """End the streams whose readers lost access to their session; other nodes find out at their next check."""
        await self._registry.end_lost_access()

    async def start(self) -> None:
        """Start watching for revoked credentials and changed sessions."""
        self._registry.start()
        self._inbox.start()

    async def aclose(self, grace: float = 0.0) -> None:
        """End every stream, so that its client resumes on another node; a collected response has `grace` seconds."""
        await self._registry.aclose(grace)
        await self._inbox.aclose()
        await self._server_context.presence.aclose()
        await self.hub.aclose()


def _inbox_ending(why: EndReason) -> bytes:
    return encode_message(InboxItem(end=why if why in ("drain", "slow", "revoked") else ""))
