"""Event streams (SSE) of a server that reconnect and resume at their cursor, on any node."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final, Generic, TypeVar

import msgspec

from everturn import api
from everturn.client.http import FIRST_PAUSE, LONGEST_PAUSE, STREAM_READ_TIMEOUT, NodeClient, build_error
from everturn.errors import DriverLost, EverturnError, NotRecognised, ServerUnavailable, TooMuch, UnknownSession

MAX_MESSAGE_BYTES: Final = 64 * 2**20  # bytes; a step with pictures may be long
RECONNECT_TIMEOUT: Final = 120.0  # seconds without an answer of any node
T = TypeVar("T", api.StreamItem, api.InboxItem)


class SseDecoder:
    """Decodes the bytes of an event stream into messages: id and data."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Add bytes, and yield the messages that they complete. Keep-alive comments yield none.

        Raises:
            ServerUnavailable: a message is too long.
        """
        search_from = max(len(self._rest) - 1, 0)
        self._rest += data
        if self._rest.find(b"\n\n", search_from) < 0:
            if len(self._rest) > MAX_MESSAGE_BYTES:
                raise ServerUnavailable("the server sent a message without an end")
            return
        *messages, rest = bytes(self._rest).split(b"\n\n")
        self._rest = bytearray(rest)
        for message in messages:
            name, payload = "", b""
            for line in message.split(b"\n"):
                if line.startswith(b"id: "):
                    name = line[4:].decode("utf-8", "replace")
                elif line.startswith(b"data: "):
                    payload = line[6:]
            if payload:
                yield name, payload


class ResumingStream(Generic[T]):
    """A stream that reconnects by itself; another stream can continue from its `cursor`."""

    def __init__(self, speaker: NodeClient, path: str, kind: type[T], after: str = "") -> None:
        self._speaker, self._path, self.cursor = speaker, path, after
        self._decode = msgspec.json.Decoder(kind).decode
        self._items = self._read()
        self._alive = 0.0  # when data arrived last
        self.is_broken = False  # there is no connection at the moment

    def __aiter__(self) -> ResumingStream[T]:
        """Iterate over the items."""
        return self

    async def __anext__(self) -> T:
        """The next item."""
        return await anext(self._items)

    async def aclose(self) -> None:
        """Stop reading. The turn continues."""
        await self._items.aclose()

    async def _read(self) -> AsyncGenerator[T, None]:
        loop = asyncio.get_running_loop()
        pause, self._alive = FIRST_PAUSE, loop.time()
        while True:
            before, problem = self._alive, "it ended without a word"
            try:
                async with aclosing(self._connect()) as items:
                    async for item in items:
                        if not item.end:
                            yield item
                        elif item.end == "over":
                            return
                        else:
                            _check_end(item.end)
                            break
            except (ServerUnavailable, TooMuch) as error:
                problem = str(error)
            if self._alive > before:
                pause = FIRST_PAUSE
            elif loop.time() - self._alive > RECONNECT_TIMEOUT:
                raise ServerUnavailable(f"the stream cannot be continued: {problem}")
            self.is_broken = True
            await self._speaker.switch_node()
            await asyncio.sleep(pause * random.uniform(0.1, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _connect(self) -> AsyncGenerator[T, None]:
        """One connection."""
        import aiohttp

        speaker, frames = self._speaker, SseDecoder()
        headers = {**speaker.headers, **({"last-event-id": self.cursor} if self.cursor else {})}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=STREAM_READ_TIMEOUT)
        try:
            request = speaker.http.get(speaker.url(self._path), headers=headers, timeout=timeout, allow_redirects=False)
            async with request as response:
                if response.status != 200:
                    error = build_error(response.status, await response.read(), 1.0)
                    has_moved = response.status == 401 and speaker.relocate is not None
                    raise ServerUnavailable(str(error)) if has_moved or response.status in (502, 503, 504) else error
                self.is_broken = False
                async for data in response.content.iter_any():
                    self._alive = asyncio.get_running_loop().time()
                    for name, payload in frames.feed(data):
                        item = self._decode(payload)
                        if name:
                            self.cursor = name
                        yield item
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ServerUnavailable(str(error) or type(error).__name__) from error


class RemoteEventStream(ResumingStream[api.StreamItem]):
    """The events of one session, or of one turn."""

    def __init__(self, speaker: NodeClient, path: str, after: str = "") -> None:
        super().__init__(speaker, path, api.StreamItem, after)


class InboxStream(ResumingStream[api.InboxItem]):
    """The open gates and active sessions of a tenant; every connection starts with a new snapshot."""

    def __init__(self, speaker: NodeClient) -> None:
        super().__init__(speaker, "/api/events", api.InboxItem)


def _check_end(end: str) -> None:
    """Raise if the stream cannot be resumed.

    Raises:
        NotRecognised: the token was revoked.
        UnknownSession: the session was erased, or is no longer shared with the caller.
        DriverLost: the server no longer drives the session.
    """
    ends: dict[str, EverturnError] = {
        "revoked": NotRecognised("the server ended the stream: the token was revoked"),
        "unshared": UnknownSession("the session is no longer shared with you"),
        "erased": UnknownSession("the session was erased"),
        "lost": DriverLost("the server no longer drives the session; its log is intact"),
    }
    if end in ends:
        raise ends[end]
