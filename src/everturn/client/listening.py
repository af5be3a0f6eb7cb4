"""A stream of events that goes on: broken off anywhere, it is taken up where it was, on any node."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Final, Generic, TypeVar

import msgspec

from everturn import api
from everturn.client.speaking import FIRST_PAUSE, LONGEST_PAUSE, SILENCE, Speaker, error_of
from everturn.errors import DriverLost, EverturnError, NotRecognised, ServerUnavailable, TooMuch, UnknownSession

LONGEST_MESSAGE: Final = 64 * 2**20  # bytes; a step with pictures in it may be long
PATIENCE: Final = 120.0  # seconds without any node that answers
T = TypeVar("T", api.Item, api.InboxItem)


class Frames:
    """Bytes → messages of an event stream: the id of each, and its data."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Take bytes in, and give the messages that they complete. What is only a sign of life gives none.

        Raises:
            ServerUnavailable: a message has no end.
        """
        at = max(len(self._rest) - 1, 0)
        self._rest += data
        if self._rest.find(b"\n\n", at) < 0:
            if len(self._rest) > LONGEST_MESSAGE:
                raise ServerUnavailable("the server sent a message without an end")
            return
        *messages, rest = bytes(self._rest).split(b"\n\n")
        self._rest = bytearray(rest)
        for message in messages:
            name, found = "", b""
            for line in message.split(b"\n"):
                if line.startswith(b"id: "):
                    name = line[4:].decode("utf-8", "replace")
                elif line.startswith(b"data: "):
                    found = line[6:]
            if found:
                yield name, found


class Stream(Generic[T]):
    """A stream that goes on by itself; `cursor` is where it is, and where another one can go on."""

    def __init__(self, speaker: Speaker, path: str, kind: type[T], after: str = "") -> None:
        self._speaker, self._path, self.cursor = speaker, path, after
        self._decode = msgspec.json.Decoder(kind).decode
        self._items = self._listen()
        self._alive = 0.0  # when there was last a sign of life
        self.is_broken = False  # nobody is heard at the moment

    def __aiter__(self) -> Stream[T]:
        """Listen."""
        return self

    async def __anext__(self) -> T:
        """What comes next."""
        return await anext(self._items)

    async def aclose(self) -> None:
        """Stop listening. The turn does not mind."""
        await self._items.aclose()

    async def _listen(self) -> AsyncGenerator[T, None]:
        loop = asyncio.get_running_loop()
        pause, self._alive = FIRST_PAUSE, loop.time()
        while True:
            before, problem = self._alive, "it ended without a word"
            try:
                async with aclosing(self._once()) as items:
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
            elif loop.time() - self._alive > PATIENCE:
                raise ServerUnavailable(f"the stream cannot be gone on with: {problem}")
            self.is_broken = True
            await self._speaker.turn_away()
            await asyncio.sleep(pause * random.uniform(0.1, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _once(self) -> AsyncGenerator[T, None]:
        """One connection."""
        import aiohttp

        speaker, frames = self._speaker, Frames()
        headers = {**speaker.headers, **({"last-event-id": self.cursor} if self.cursor else {})}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=SILENCE)
        try:
            asked = speaker.http.get(speaker.url(self._path), headers=headers, timeout=timeout, allow_redirects=False)
            async with asked as answer:
                if answer.status != 200:
                    error = error_of(answer.status, await answer.read(), 1.0)
                    has_moved = answer.status == 401 and speaker.relocate is not None
                    raise ServerUnavailable(str(error)) if has_moved or answer.status in (502, 503, 504) else error
                self.is_broken = False
                async for data in answer.content.iter_any():
                    self._alive = asyncio.get_running_loop().time()
                    for name, found in frames.feed(data):
                        item = self._decode(found)
                        if name:
                            self.cursor = name
                        yield item
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ServerUnavailable(str(error) or type(error).__name__) from error


class Listening(Stream[api.Item]):
    """The events of one session, or of one turn."""

    def __init__(self, speaker: Speaker, path: str, after: str = "") -> None:
        super().__init__(speaker, path, api.Item, after)


class Inbox(Stream[api.InboxItem]):
    """What waits for somebody, and what moves; with every connection a new snapshot comes."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__(speaker, "/api/events", api.InboxItem)


def _check_end(end: str) -> None:
    """Whether there is anything to go on with.

    Raises:
        NotRecognised: the token was revoked; UnknownSession: the session was erased.
    """
    ends: dict[str, EverturnError] = {
        "revoked": NotRecognised("the server ended the stream: this token holds no more"),
        "erased": UnknownSession("the session was erased while it was followed"),
        "lost": DriverLost("nobody drives this session there any more; its log is intact"),
    }
    if end in ends:
        raise ends[end]
