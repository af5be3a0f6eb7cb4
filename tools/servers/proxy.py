"""PostgreSQL proxy: cuts a connection at a chosen moment, before a COMMIT arrives, or before its answer does.

It parses as much of the protocol as that needs: where messages begin, which of them carry or execute a COMMIT, and
which `ReadyForQuery` answers which request. Everything else passes unchanged. TLS is declined, so that the traffic is
readable.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

When = Literal["before_commit", "after_commit"]

COMMIT = r"(?is)(?:^|;)\s*(?:commit|end)(?:\s+(?:work|transaction))?\s*;?\s*$"
_SECRECY = (80877103, 80877104)  # the codes of first messages that request TLS or GSS


class PlannedCut:
    """A planned cut: `await cut.done()` returns once it was made."""

    def __init__(self, when: When, nth: int, matching: str) -> None:
        self.when, self._left, self._matching = when, nth, re.compile(matching)
        self._made = asyncio.Event()

    @property
    def is_made(self) -> bool:
        """Whether it was made."""
        return self._made.is_set()

    async def wait(self) -> None:
        """Wait until it was made."""
        await self._made.wait()

    def matches(self, statement: str) -> bool:
        """Whether a statement is one that is counted."""
        return self._matching.search(statement) is not None

    def count(self) -> bool:
        """Count a statement; True for the one at which to cut."""
        self._left -= 1
        return self._left == 0

    def mark_made(self) -> None:
        """Mark it as made."""
        self._made.set()


class Proxy:
    """A proxy in front of a server; clients connect to `url`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "127.0.0.1", parts.port or 5432
        self._parts = parts
        self._server: asyncio.Server | None = None
        self._links: set[_Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._cuts: list[PlannedCut] = []
        self.flows = asyncio.Event()
        self.flows.set()

    @property
    def url(self) -> str:
        """Where clients connect."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user = f"{self._parts.username}@" if self._parts.username else ""
        return urlunsplit(self._parts._replace(netloc=f"{user}127.0.0.1:{port}"))

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._links)

    def cut(self, when: When, nth: int = 1, matching: str = COMMIT) -> PlannedCut:
        """Cut the connection that sends the nth COMMIT from now on, before or after the server has executed it.

        With `matching` other statements are counted: one that commits by itself is an `INSERT` outside a transaction.
        """
        cut = PlannedCut(when, nth, matching)
        self._cuts.append(cut)
        return cut

    def clear_cuts(self) -> None:
        """Forget every planned cut that was not made."""
        self._cuts.clear()

    def cut_now(self) -> int:
        """Cut every connection, and return how many there were."""
        links = list(self._links)
        for link in links:
            link.abort()
        return len(links)

    def stall(self) -> None:
        """Let nothing pass, in either direction, and close nothing: a lost network."""
        self.flows.clear()

    def resume(self) -> None:
        """Let traffic pass again."""
        self.flows.set()

    def planned(self, statement: str) -> list[PlannedCut]:
        """The cuts for which this statement counts."""
        return [cut for cut in self._cuts if cut.matches(statement)]

    def due(self, planned: list[PlannedCut]) -> PlannedCut | None:
        """The cut that is due for a statement that is about to be executed, if any."""
        due = [cut for cut in planned if cut in self._cuts and cut.count()]
        for cut in due:
            self._cuts.remove(cut)
        return due[0] if due else None

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)

    async def close(self) -> None:
        """Cut everything and stop listening."""
        assert self._server is not None
        self._server.close()
        self.cut_now()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            upstream = await asyncio.open_connection(self._host, self._port)
        except OSError:  # the server is down, so the proxy is
            writer.transport.abort()
            return
        finally:
            self._tasks.discard(task)
        link = _Link(self, (reader, writer), upstream)
        self._links.add(link)
        self._tasks.add(task)
        try:
            await link.carry()
        except asyncio.CancelledError:
            pass  # the proxy closes; the streams' own callback would report it as an error
        finally:
            link.abort()
            self._links.discard(link)
            self._tasks.discard(task)


class _Link:
    """One client, one connection to the server, and the protocol state between them."""

    def __init__(
        self,
        proxy: Proxy,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._proxy = proxy
        self._from_client, self._to_client = client
        self._from_server, self._to_server = server
        self._statements: dict[bytes, str] = {}  # name -> text
        self._portals: dict[bytes, str] = {}
        self._asked, self._answered = 1, 0  # the start of a session is answered as a query is
        self._after: tuple[int, PlannedCut] | None = (
            None  # hold back the answer of this number, and cut once it arrives
        )

    def abort(self) -> None:
        """Cut both ends, at once."""
        self._to_client.transport.abort()
        self._to_server.transport.abort()

    async def carry(self) -> None:
        """Forward messages until one end is closed."""
        both = [asyncio.ensure_future(self._client_side()), asyncio.ensure_future(self._server_side())]
        try:
            await asyncio.wait(both, return_when="FIRST_COMPLETED")
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    async def _client_side(self) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            await self._greet()
            while True:
                kind, message = await _read(self._from_client)
                cut = self._look_at(kind, message)
                await self._proxy.flows.wait()
                if cut is not None and cut.when == "before_commit":
                    self.abort()
                    cut.mark_made()
                    return
                if cut is not None:
                    # A simple query is answered by itself; what is executed in steps, by the Sync
                    # that follows.
                    self._after = (self._asked + (kind != b"Q"), cut)
                self._to_server.write(message)
                await self._to_server.drain()

    async def _greet(self) -> None:
        """The first message has no type; and a request for encryption is declined here."""
        while True:
            head = await self._from_client.readexactly(8)
            code = int.from_bytes(head[4:], "big")
            message = head + await self._from_client.readexactly(int.from_bytes(head[:4], "big") - 8)
            if code not in _SECRECY:
                break
            self._to_client.write(b"N")
        await self._proxy.flows.wait()
        self._to_server.write(message)
        await self._to_server.drain()

    def _look_at(self, kind: bytes, message: bytes) -> PlannedCut | None:
        """Track the client's messages; the cut to make at this message, if any."""
        if kind == b"P":  # Parse: statement, text
            name, text = message[5:].split(b"\0", 2)[:2]
            self._statements[name] = text.decode(errors="replace")
        elif kind == b"B":  # Bind: portal, statement
            portal, name = message[5:].split(b"\0", 2)[:2]
            self._portals[portal] = self._statements.get(name, "")
        elif kind in (b"Q", b"E"):  # Query: text; Execute: portal
            word = message[5:].split(b"\0", 1)[0]
            if kind == b"Q":
                self._asked += 1
            text = word.decode(errors="replace") if kind == b"Q" else self._portals.get(word, "")
            return self._proxy.due(self._proxy.planned(text))
        elif kind in (b"S", b"F"):  # Sync, FunctionCall: a ReadyForQuery answers each, as it does a query
            self._asked += 1
        return None

    async def _server_side(self) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                kind, message = await _read(self._from_server)
                is_held = self._after is not None and self._answered >= self._after[0] - 1
                if kind == b"Z":
                    self._answered += 1
                await self._proxy.flows.wait()
                if not is_held:
                    self._to_client.write(message)
                    await self._to_client.drain()
                elif self._after is not None and self._answered == self._after[0]:
                    self.abort()
                    self._after[1].mark_made()
                    return


async def _read(stream: asyncio.StreamReader) -> tuple[bytes, bytes]:
    """The next message: its type, and all of it."""
    head = await stream.readexactly(5)
    size = int.from_bytes(head[1:], "big")
    return head[:1], head + await stream.readexactly(size - 4)


@asynccontextmanager
async def cutting_proxy(url: str) -> AsyncGenerator[Proxy]:
    """A proxy in front of the server at `url`, on a port of its own."""
    proxy = Proxy(url)
    await proxy.open()
    try:
        yield proxy
    finally:
        await proxy.close()
