"""The client over a bad line: what breaks off goes on, nothing is sent twice, and a node that is away is passed over."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from everturn.app import App
from everturn.client import Server
from everturn.config.server_options import ServerOptions
from everturn.core.deltas import TextDelta
from everturn.core.events import Event
from everturn.errors import ServerUnavailable
from everturn.models.scripted import ScriptedModel
from everturn.server.serve import serve
from everturn.stores.memory import MemoryStore
from everturn.testing import say
from tests.helpers.server_app import PlainDoor, make_house, word

WORDS = [f"word{number} " for number in range(40)]


class Line:
    """A line to a server, which breaks after so many bytes of an answer: once for each number in `breaks`."""

    def __init__(self, port: int) -> None:
        self._port, self.breaks = port, list[int]()
        self._tasks: set[asyncio.Task[None]] = set()

    def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._carry(reader, writer))
        task.add_done_callback(lambda _: writer.close())  # also of one that never began
        self._tasks.add(task)

    async def aclose(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, back = await asyncio.open_connection("127.0.0.1", self._port)
        asking = asyncio.create_task(self._ask(reader, back))
        limit = self.breaks.pop(0) if self.breaks else None
        try:
            while data := await upstream.read(4096):
                if limit is not None and len(data) >= limit:
                    writer.write(data[:limit])
                    await writer.drain()
                    break
                limit = None if limit is None else limit - len(data)
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            asking.cancel()
            back.transport.abort()
            back.close()
            writer.close()

    async def _ask(self, reader: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(4096):
                back.write(data)
                await back.drain()


@contextlib.asynccontextmanager
async def a_line() -> AsyncGenerator[tuple[Line, str, Server]]:
    """A line, its address, and a client that uses it."""
    app = App(ScriptedModel([say(word) for word in WORDS], pace=0.005), store=MemoryStore())
    house, door, leave = await make_house(app), PlainDoor(), asyncio.Event()
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    options = ServerOptions(port=0, hosts=("127.0.0.1",), merge=0.01, drain=1.0)
    entrance: Any = door
    entrance.active_credentials = nobody_is_gone
    serving = asyncio.create_task(serve(house, entrance, options, address.set_result, leave=leave))
    line = Line(int((await address).rpartition(":")[2]))
    relay = await asyncio.start_server(line.connect, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{relay.sockets[0].getsockname()[1]}"
    try:
        async with Server(url, word("owner")) as server:
            yield line, url, server
    finally:
        relay.close()
        await line.aclose()
        leave.set()
        await serving
        await app.aclose()


async def nobody_is_gone(principals: Any) -> set[str]:
    return set()


async def test_a_turn_over_a_line_that_breaks_again_and_again_is_shown_once() -> None:
    async with a_line() as (line, _, server):
        turn = await server.start_session("go")
        await server.aclose()  # the next request has a connection of its own
        line.breaks = [1100, 1500, 1800]
        shown = [item async for item in turn]
        assert not line.breaks
        log = [item async for item in turn]

    assert [item for item in shown if isinstance(item, Event)] == [item for item in log if isinstance(item, Event)]
    text = ""
    for item in shown:
        if isinstance(item, TextDelta):
            assert item.offset == len(text)
            text += item.text
    assert text == "".join(WORDS)


async def test_a_message_whose_answer_is_lost_is_sent_again_and_is_one() -> None:
    async with a_line() as (line, _, server):
        line.breaks = [0, 20]
        await (await server.start_session("go"))
        assert not line.breaks
        page = await server.sessions()

    assert len(page.sessions) == 1


async def test_what_would_be_done_twice_is_not_sent_again() -> None:
    async with a_line() as (line, _, server):
        turn = await server.start_session("go")
        await turn
        file = await server.session(turn.session).export()
        await server.aclose()
        line.breaks = [0]
        with pytest.raises(ServerUnavailable, match="it is not known whether the request took effect"):
            await server.import_session(file)
        page = await server.sessions()

    assert len(page.sessions) == 2


async def test_a_node_that_is_away_is_passed_over() -> None:
    with socket.socket() as away:
        away.bind(("127.0.0.1", 0))  # and does not listen
        async with a_line() as (_, url, _):
            async with Server([f"http://127.0.0.1:{away.getsockname()[1]}", url], word("owner")) as server:
                me = await server.me()

    assert me.user == "owner"
