"""Limits at the socket: whoever is too slow, too large or too many is sent away, and everybody else is served on."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from starlette.responses import Response, StreamingResponse

from everturn.config.server_options import ServerOptions
from everturn.server.body_limits import MIN_BYTES_PER_SECOND
from everturn.server.route import HttpRequestContext, Route
from everturn.server.serve import serve
from tests.helpers.server_app import NoStreams, PlainDoor, make_house, word

FAST: dict[str, Any] = {"header_time": 0.4, "body_time": 0.6, "idle": 1.0, "drain": 3.0, "port": 0}
SOON = 5.0
"""Seconds in which something must have happened whose limit is less than one."""


async def big(request: HttpRequestContext) -> Response:
    return Response(b"x" * 40_000_000)


async def count(request: HttpRequestContext) -> Response:
    return Response(str(len(request.body)))


async def tick(request: HttpRequestContext) -> Response:
    async def beats() -> AsyncIterator[bytes]:
        while True:
            yield b": beat\n\n"
            await asyncio.sleep(0.05)

    return StreamingResponse(beats(), media_type="text/event-stream")


EXTRA = [
    Route(method="GET", path="/big", name="big", needs=None, about="", handler=big, gives="bytes"),
    Route(
        method="POST",
        path="/count",
        name="count",
        needs="viewer",
        about="",
        handler=count,
        takes="bytes",
        gives="bytes",
        media=("*/*",),
    ),
    Route(method="GET", path="/tick", name="tick", needs=None, about="", handler=tick, gives="bytes"),
]


class Node:
    """A server that listens, and its address."""

    def __init__(self, address: str, leave: asyncio.Event, serving: asyncio.Task[None], streams: NoStreams) -> None:
        self.host, _, port = address.removeprefix("http://").partition(":")
        self.port, self.leave, self.serving, self.streams = int(port), leave, serving, streams
        self.head = f"Host: {self.host}:{self.port}\r\nAuthorization: Bearer {word('operator')}\r\n".encode()

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.host, self.port)

    async def get(self, path: str) -> bytes:
        reader, writer = await self.open()
        writer.write(b"GET " + path.encode() + b" HTTP/1.1\r\n" + self.head + b"Connection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer


@contextlib.asynccontextmanager
async def running(**options: Any) -> AsyncGenerator[Node]:
    """A server of this process, with real sockets."""
    house, streams = await make_house(), NoStreams()
    addresses: asyncio.Queue[str] = asyncio.Queue()
    leave = asyncio.Event()
    parts: Any = PlainDoor()
    endpoints: Any = streams
    serving = asyncio.create_task(
        serve(
            house,
            parts,
            ServerOptions(**{**FAST, **options}),
            addresses.put_nowait,
            EXTRA,
            streams=endpoints,
            leave=leave,
        )
    )
    try:
        yield Node(await addresses.get(), leave, serving, streams)
    finally:
        leave.set()
        await serving
        await house.app.aclose()


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    """All that comes until the server hangs up, which it must do soon."""
    found = bytearray()
    async with asyncio.timeout(SOON):
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(65536):
                found += piece
    return bytes(found)


async def drip(writer: asyncio.StreamWriter, data: bytes, pause: float = 0.05) -> None:
    """Send a byte at a time, until nobody listens."""
    with contextlib.suppress(ConnectionError):
        for at in range(len(data)):
            writer.write(data[at : at + 1])
            await writer.drain()
            await asyncio.sleep(pause)


Attack = Callable[[Node, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[bytes]]


async def silent(node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    return await until_closed(reader)


async def half_a_header(node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: ")
    return await until_closed(reader)


async def a_slow_header(node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    dripping = asyncio.create_task(drip(writer, b"GET /healthz HTTP/1.1\r\nX: " + b"x" * 1000))
    try:
        return await until_closed(reader)
    finally:
        dripping.cancel()


async def empty_lines(node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    dripping = asyncio.create_task(drip(writer, b"\r\n" * 1000))
    try:
        return await until_closed(reader)
    finally:
        dripping.cancel()


async def a_second_request_that_is_slow(
    node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes:
    writer.write(b"GET /healthz HTTP/1.1\r\n" + node.head + b"\r\n" + b"GET /healthz HT")
    assert (await reader.readuntil(b"ok\n")).startswith(b"HTTP/1.1 200")
    dripping = asyncio.create_task(drip(writer, b"x" * 1000))
    try:
        return await until_closed(reader)
    finally:
        dripping.cancel()


async def a_second_request_that_stops(node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET /healthz HTTP/1.1\r\n" + node.head + b"\r\n" + b"GET /healthz HT")
    return await until_closed(reader)


async def a_slow_body(node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"POST /count HTTP/1.1\r\n" + node.head + b"Content-Type: a/b\r\nContent-Length: 5000\r\n\r\n")
    dripping = asyncio.create_task(drip(writer, b"x" * 1000))
    try:
        return await until_closed(reader)
    finally:
        dripping.cancel()


async def a_slow_body_that_nobody_wants(
    node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes:
    writer.write(b"POST /api/nothing HTTP/1.1\r\n" + node.head + b"Content-Length: 5000\r\n\r\n")
    dripping = asyncio.create_task(drip(writer, b"x" * 1000))
    try:
        return await until_closed(reader)
    finally:
        dripping.cancel()


async def a_body_that_stops(node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"POST /count HTTP/1.1\r\n" + node.head + b"Content-Type: a/b\r\nContent-Length: 5000000\r\n\r\n")
    writer.write(b"x" * MIN_BYTES_PER_SECOND * 30)  # so that its pace is not what is wrong with it
    return await until_closed(reader)


async def a_rest(node: Node, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    writer.write(b"GET /healthz HTTP/1.1\r\n" + node.head + b"\r\n")
    return await until_closed(reader)


@pytest.mark.parametrize(
    ("attack", "expected"),
    [
        (silent, b""),
        (half_a_header, b" 408 "),
        (a_slow_header, b" 408 "),
        (empty_lines, b""),
        (a_second_request_that_is_slow, b" 408 "),
        (a_second_request_that_stops, b" 408 "),
        (a_slow_body, b" 408 "),
        (a_slow_body_that_nobody_wants, b" 404 "),
        (a_body_that_stops, b" 408 "),
        (a_rest, b" 200 "),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
async def test_whoever_takes_their_time_is_sent_away(attack: Attack, expected: bytes) -> None:
    async with running() as node:
        reader, writer = await node.open()
        answer = await attack(node, reader, writer)
        writer.close()
        assert expected in answer
        assert b" 200 " in await node.get("/healthz")


async def test_a_header_of_64_megabytes_costs_nothing() -> None:
    async with running() as node:
        reader, writer = await node.open()
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        began = time.monotonic()

        async def send() -> None:
            with contextlib.suppress(ConnectionError):
                writer.write(b"GET /healthz HTTP/1.1\r\nX: ")
                for _ in range(1024):
                    writer.write(b"x" * 65536)
                    await writer.drain()

        sending = asyncio.create_task(send())
        answer = await until_closed(reader)
        sending.cancel()
        writer.close()
        assert b" 400 " in answer or answer == b""  # it may be cut before it has read why
        assert time.monotonic() - began < SOON
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kB
        assert b" 200 " in await node.get("/healthz")


async def test_a_long_header_that_comes_at_once_is_refused_as_well() -> None:
    async with running(headers=16_384) as node:
        reader, writer = await node.open()
        writer.write(b"GET /healthz HTTP/1.1\r\n" + node.head + b"X: " + b"x" * 20_000 + b"\r\n\r\n")
        answer = await until_closed(reader)
        writer.close()
        assert b" 431 " in answer or b" 400 " in answer


async def test_a_chunked_body_without_an_end_is_cut_at_the_limit() -> None:
    async with running(body=200_000) as node:
        reader, writer = await node.open()
        writer.write(
            b"POST /count HTTP/1.1\r\n" + node.head + b"Content-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        sent = 0

        async def send() -> None:
            nonlocal sent
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                    await writer.drain()
                    sent += 4096
                    await asyncio.sleep(0)

        sending = asyncio.create_task(send())
        answer = await until_closed(reader)
        sending.cancel()
        writer.close()
        assert b" 413 " in answer or answer == b""
        assert sent < 20_000_000
        assert b" 200 " in await node.get("/healthz")


async def test_a_body_at_a_fair_pace_is_taken() -> None:
    async with running(header_time=0.2, body_time=5) as node:
        reader, writer = await node.open()
        writer.write(b"POST /count HTTP/1.1\r\n" + node.head + b"Content-Type: a/b\r\nContent-Length: 120000\r\n\r\n")
        for _ in range(10):
            writer.write(b"x" * 12_000)
            await writer.drain()
            await asyncio.sleep(0.05)
        assert (await reader.readuntil(b"120000")).startswith(b"HTTP/1.1 200")
        writer.close()


async def test_two_hundred_requests_at_once_are_answered_in_order() -> None:
    async with running() as node:
        reader, writer = await node.open()
        request = b"GET /healthz HTTP/1.1\r\n" + node.head + b"\r\n"
        writer.write(request * 199 + request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        answer = await until_closed(reader)
        writer.close()
        assert answer.count(b"HTTP/1.1 200") == 200


async def test_one_connection_too_many_is_told_so_and_the_others_live() -> None:
    async with running(connections=10, header_time=5) as node:
        reader, writer = await node.open()
        writer.write(b"GET /tick HTTP/1.1\r\n" + node.head + b"\r\n")
        await reader.readuntil(b": beat")
        crowd = [await node.open() for _ in range(40)]
        answers = await asyncio.gather(*(until_closed(stream_reader) for stream_reader, _ in crowd[9:]))
        assert all(b" 503 " in answer for answer in answers)
        await reader.readuntil(b": beat")
        for _, stream_writer in [*crowd, (reader, writer)]:
            stream_writer.close()
        async with asyncio.timeout(SOON):
            while b" 200 " not in await node.get("/healthz"):  # noqa: ASYNC110
                await asyncio.sleep(0.05)


async def test_whoever_does_not_read_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("everturn.server.serve.SWEEP", 0.3)
    async with running() as node:
        reader, writer = await node.open()
        transport: Any = writer.transport
        transport.pause_reading()
        writer.write(b"GET /big HTTP/1.1\r\n" + node.head + b"\r\n")
        await asyncio.sleep(2)
        transport.resume_reading()
        found = await until_closed(reader)
        writer.close()
        assert len(found) < 40_000_000
        assert len(await node.get("/big")) > 40_000_000


async def test_a_slow_reader_of_something_long_is_waited_for() -> None:
    async with running(body_time=2.0) as node:
        reader, writer = await node.open()
        writer.write(b"GET /big HTTP/1.1\r\n" + node.head + b"Connection: close\r\n\r\n")
        size = 0
        while piece := await reader.read(1_000_000):
            size += len(piece)
            await asyncio.sleep(0.01)
        writer.close()
        assert size > 40_000_000


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b"GET\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"POST /count HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /count HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    ],
)
async def test_garbage_ends_its_connection_and_nothing_else(garbage: bytes) -> None:
    async with running() as node:
        reader, writer = await node.open()
        writer.write(garbage)
        answer = await until_closed(reader)
        writer.close()
        assert b" 200 " not in answer
        assert b" 500 " not in answer
        assert b" 200 " in await node.get("/healthz")


async def test_told_to_leave_it_finishes_what_it_began_and_takes_nothing_new() -> None:
    async with running() as node:
        reader, writer = await node.open()
        writer.write(b"POST /count HTTP/1.1\r\n" + node.head + b"Content-Type: a/b\r\nContent-Length: 3\r\n\r\nab")
        await asyncio.sleep(0.1)
        node.leave.set()
        await asyncio.sleep(0.15)
        writer.write(b"c")
        answer = await until_closed(reader)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200")
        assert node.streams.is_over
        async with asyncio.timeout(SOON):
            await asyncio.wait({node.serving})
        with pytest.raises(ConnectionError):
            await node.open()


async def test_told_to_leave_it_does_not_wait_for_ever() -> None:
    async with running(drain=1.0) as node:
        reader, writer = await node.open()
        writer.write(b"GET /tick HTTP/1.1\r\n" + node.head + b"\r\n")
        await reader.readuntil(b": beat")
        node.leave.set()
        async with asyncio.timeout(SOON):
            await asyncio.wait({node.serving})
        writer.close()
