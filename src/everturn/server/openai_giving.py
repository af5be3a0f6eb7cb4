"""A turn → an answer to OpenAI's clients: collected as a whole, or as a stream that is looked after on its way out."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Protocol

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from everturn.access.veiling import veil_event
from everturn.core.deltas import Reader, Shown
from everturn.core.events import Event
from everturn.errors import EverturnError, NotRecognised, UnknownTurn
from everturn.protocols import Encoder
from everturn.server.bodies import Gone
from everturn.server.live import SlowReader
from everturn.server.lives import Seat
from everturn.server.openai_turns import Place, log_of
from everturn.server.problems import Refusal
from everturn.server.routing import Asked

log = logging.getLogger("everturn.server")


class Patient(Encoder, Protocol):
    """An encoder that may have to wait for a person, who is asked elsewhere."""

    is_waiting: bool

    def give_up(self) -> bytes:
        """End although nobody has answered."""
        ...


# As a whole ------------------------------------------------------------------------------------------------------------


async def collect(asked: Asked, place: Place, encoder: Patient, patience: float, seat: Seat | None) -> None:
    """Feed an encoder with a turn until it is done, or until a person has not answered for so long.

    This is a stream that nobody sees: it counts as one, and ends when its credential does or when the node leaves.

    Raises:
        Gone: whoever asked has hung up.
        NotRecognised, UnknownTurn, Refusal: it was ended before there was an answer.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as limit:

            def heard() -> None:
                with suppress(RuntimeError):  # it has ended just now
                    if not encoder.is_waiting:
                        limit.reschedule(None)
                    elif limit.when() is None:
                        limit.reschedule(loop.time() + patience)

            told = _Heard(encoder, heard)
            live = await asked.streams.encoded(asked.access, place.session, place.turn, told, seat=seat)
            live.finishing = lambda: not encoder.is_waiting
            await live(asked.request.scope, asked.request.receive, _unseen)
    except TimeoutError:
        return
    except SlowReader:  # it was cut while nobody had any time
        raise Refusal("busy", headers=_again(asked)) from None
    _see_why(asked, live.why, encoder.is_waiting)


def _see_why(asked: Asked, why: str, is_waiting: bool) -> None:
    if why == "over" or (why == "drain" and is_waiting):  # then it is as if nobody had answered in time
        return
    if why == "gone":
        raise Gone
    if why == "revoked":
        raise NotRecognised("what was shown holds no more")
    if why == "erased":
        raise UnknownTurn("there is no such turn")
    raise Refusal("leaving" if why == "drain" else "busy", headers=_again(asked))


def _again(asked: Asked) -> dict[str, str]:
    """Their client sends it all again by itself, and without a key that would be another message."""
    return {"x-should-retry": "true" if asked.key else "false"}


async def _unseen(message: Message) -> None:
    """Nobody reads what is collected."""


class _Heard:
    """An encoder, and somebody who is told whenever it has heard something."""

    def __init__(self, inner: Patient, heard: Callable[[], None]) -> None:
        self._inner, self._heard = inner, heard
        self.is_done = inner.is_done

    def begin(self) -> bytes:
        return self._inner.begin()

    def feed(self, shown: Shown) -> bytes:
        self._inner.feed(shown)
        self.is_done = self._inner.is_done
        self._heard()
        return b""

    def end(self, why: str) -> bytes:
        if why == "over":  # of everything else whoever collects is told
            self._inner.end(why)
        return b""


async def feed_log(asked: Asked, place: Place, encoder: Encoder) -> None:
    """Feed what the log has by now."""
    is_veiled, reader = await asked.access.follow(place.session), Reader(place.turn)
    for entry in await log_of(asked, place):
        for shown in reader.entry(entry):
            encoder.feed(_shown(shown, is_veiled))


async def feed_rest(asked: Asked, place: Place, encoder: Encoder, seconds: float) -> None:
    """Feed all of a turn that is about to end, for so long at most."""
    is_veiled = await asked.access.follow(place.session)
    with suppress(TimeoutError):
        async with (
            asyncio.timeout(seconds),
            aclosing(asked.house.runtime.follow(place.session, Reader(place.turn))) as reading,
        ):
            async for shown in reading:
                encoder.feed(_shown(shown, is_veiled))
            encoder.end("over")


def _shown(shown: Shown, is_veiled: bool) -> Shown:
    return veil_event(shown) if is_veiled and isinstance(shown, Event) else shown


# As a stream -----------------------------------------------------------------------------------------------------------


class _GivenUp(Exception):
    """The person did not answer in time."""


class Carried(Response):
    """A stream that is looked after on its way out: what must be kept before its last bytes, and how long it waits.

    A client that has the last bytes may come back at once, so what it is known again by is kept before they go.
    """

    def __init__(self, inner: Response, encoder: Patient, keep: Callable[[], Awaitable[None]], patience: float) -> None:
        self._inner, self._encoder, self._keep, self._patience = inner, encoder, keep, patience
        self.status_code, self.raw_headers = inner.status_code, inner.raw_headers
        self.background, self.body = None, b""
        self._since = 0.0
        self._is_kept = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Be the response."""

        async def sent(message: Message) -> None:
            if self._encoder.is_done:
                await self._kept()
            elif message["type"] == "http.response.body" and self._is_late():
                last = self._encoder.give_up()
                await self._kept()
                await send({"type": "http.response.body", "body": last, "more_body": False})
                raise _GivenUp
            await send(message)

        try:
            await self._inner(scope, receive, sent)
        except _GivenUp:
            pass
        finally:
            await self._kept()  # of one who has hung up: what they have seen is what they come back with

    def _is_late(self) -> bool:
        """Whether a person was waited for long enough; looked at with every sign of life."""
        if not self._encoder.is_waiting:
            self._since = 0.0
            return False
        self._since = self._since or time.monotonic()
        return time.monotonic() - self._since >= self._patience

    async def _kept(self) -> None:
        if not self._is_kept:
            self._is_kept = True
            try:
                await self._keep()
            except EverturnError:
                log.warning("an answer was given, and cannot be known again by what was said", exc_info=True)
