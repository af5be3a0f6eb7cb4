"""Responses to OpenAI clients: a turn collected into one response, or a stream that is monitored while it is sent."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Protocol

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from everturn.access.context.role_redaction import redact_event
from everturn.core.deltas import TurnItem, TurnReader
from everturn.core.events import Event
from everturn.errors import EverturnError, NotRecognised, UnknownTurn
from everturn.protocols import Encoder
from everturn.server.body_limits import ClientDisconnected
from everturn.server.errors import RequestError
from everturn.server.protocols.openai.turns import ResponseId, read_turn_log
from everturn.server.route import HttpRequestContext
from everturn.server.streams.registry import StreamSlot
from everturn.server.streams.response import SlowReader

log = logging.getLogger("everturn.server")


class WaitingEncoder(Encoder, Protocol):
    """An encoder that may have to wait for a person to answer a gate in another client."""

    is_waiting: bool

    def give_up(self) -> bytes:
        """End although the gate was not answered."""
        ...


# Collected -----------------------------------------------------------------------------------------------------------


async def collect(
    context: HttpRequestContext,
    response_id: ResponseId,
    encoder: WaitingEncoder,
    gate_timeout: float,
    seat: StreamSlot | None,
) -> None:
    """Feed an encoder with a turn until it is done, or until a gate was not answered for `gate_timeout` seconds.

    This is a stream without a client: it counts as one, and ends when its credential is revoked or the node shuts down.

    Raises:
        ClientDisconnected: the client closed the connection.
        NotRecognised, UnknownTurn, RequestError: the stream was ended before there was an answer.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as limit:

            def update_timeout() -> None:
                with suppress(RuntimeError):  # the timeout has just ended
                    if not encoder.is_waiting:
                        limit.reschedule(None)
                    elif limit.when() is None:
                        limit.reschedule(loop.time() + gate_timeout)

            observed = _ObservedEncoder(encoder, update_timeout)
            stream = await context.streams.encoded(
                context.access, response_id.session, response_id.turn, observed, seat=seat
            )
            stream.finishing = lambda: not encoder.is_waiting
            await stream(context.request.scope, context.request.receive, _discard)
    except TimeoutError:
        return
    except SlowReader:  # it was cut because the event loop was too busy
        raise RequestError("busy", headers=_retry_header(context)) from None
    _raise_for_end(context, stream.end_reason, encoder.is_waiting)


def _raise_for_end(context: HttpRequestContext, why: str, is_waiting: bool) -> None:
    if why == "over" or (why == "drain" and is_waiting):  # then it is as if the gate was not answered in time
        return
    if why == "gone":
        raise ClientDisconnected
    if why == "revoked":
        raise NotRecognised("the approval that was shown is no longer valid")
    if why in ("erased", "unshared"):
        raise UnknownTurn("there is no such turn")
    raise RequestError("leaving" if why == "drain" else "busy", headers=_retry_header(context))


def _retry_header(context: HttpRequestContext) -> dict[str, str]:
    """OpenAI's client retries by itself; without an idempotency key that would send another message."""
    return {"x-should-retry": "true" if context.key else "false"}


async def _discard(message: Message) -> None:
    """Discard the bytes of a collected stream."""


class _ObservedEncoder:
    """An encoder that calls back after each item."""

    def __init__(self, inner: WaitingEncoder, on_item: Callable[[], None]) -> None:
        self._inner, self._on_item = inner, on_item
        self.is_done = inner.is_done

    def begin(self) -> bytes:
        return self._inner.begin()

    def feed(self, shown: TurnItem) -> bytes:
        self._inner.feed(shown)
        self.is_done = self._inner.is_done
        self._on_item()
        return b""

    def end(self, why: str) -> bytes:
        if why == "over":  # `collect` handles the other reasons
            self._inner.end(why)
        return b""


async def feed_log(context: HttpRequestContext, response_id: ResponseId, encoder: Encoder) -> None:
    """Feed an encoder with what the log has by now."""
    is_redacted, reader = await context.access.follow(response_id.session), TurnReader(response_id.turn)
    for entry in await read_turn_log(context, response_id):
        for shown in reader.entry(entry):
            encoder.feed(_redacted(shown, is_redacted))


async def feed_rest(context: HttpRequestContext, response_id: ResponseId, encoder: Encoder, seconds: float) -> None:
    """Feed an encoder with the rest of a turn that is about to end, for `seconds` at most."""
    is_redacted = await context.access.follow(response_id.session)
    with suppress(TimeoutError):
        async with (
            asyncio.timeout(seconds),
            aclosing(context.server_context.app.follow(response_id.session, TurnReader(response_id.turn))) as reading,
        ):
            async for shown in reading:
                encoder.feed(_redacted(shown, is_redacted))
            encoder.end("over")


def _redacted(shown: TurnItem, is_redacted: bool) -> TurnItem:
    return redact_event(shown) if is_redacted and isinstance(shown, Event) else shown


# Streamed ------------------------------------------------------------------------------------------------------------


class _WaitTimedOut(Exception):
    """The gate was not answered in time."""


class MonitoredStream(Response):
    """A stream with a callback before its last bytes, and a limit on the time it waits for a gate.

    A client that has the last bytes may send its next request at once, so its fingerprints are stored before them.
    """

    def __init__(
        self, inner: Response, encoder: WaitingEncoder, before_end: Callable[[], Awaitable[None]], timeout: float
    ) -> None:
        self._inner, self._encoder, self._before_end, self._timeout = inner, encoder, before_end, timeout
        self.status_code, self.raw_headers = inner.status_code, inner.raw_headers
        self.background, self.body = None, b""
        self._since = 0.0
        self._has_run = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the stream (ASGI)."""

        async def monitored_send(message: Message) -> None:
            if self._encoder.is_done:
                await self._run_before_end()
            elif message["type"] == "http.response.body" and self._is_late():
                last = self._encoder.give_up()
                await self._run_before_end()
                await send({"type": "http.response.body", "body": last, "more_body": False})
                raise _WaitTimedOut
            await send(message)

        try:
            await self._inner(scope, receive, monitored_send)
        except _WaitTimedOut:
            pass
        finally:
            await self._run_before_end()  # after a disconnect too: the client may send back what it has received

    def _is_late(self) -> bool:
        """Whether the gate was waited for long enough; checked at every keep-alive."""
        if not self._encoder.is_waiting:
            self._since = 0.0
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since >= self._timeout

    async def _run_before_end(self) -> None:
        if not self._has_run:
            self._has_run = True
            try:
                await self._before_end()
            except EverturnError:
                log.warning(
                    "the history of this answer could not be indexed, so a client that sends it back starts a "
                    "new conversation",
                    exc_info=True,
                )
