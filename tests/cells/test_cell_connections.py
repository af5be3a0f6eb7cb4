"""Requests of the router to a cell: what is written, and what happens when a connection fails."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientError, ClientTimeout, TCPConnector
from multidict import CIMultiDict

from everturn.cells.cell_connections import CellConnections

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class RawCell(asyncio.Protocol):
    """A server that answers each request on a connection with the next of some bytes; without any left, it hangs up."""

    def __init__(self, answers: list[list[bytes]], seen: list[bytes]) -> None:
        self._answers = answers.pop(0) if answers else []
        self._seen = seen

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._seen.append(data)
        if self._answers:
            self._transport.write(self._answers.pop(0))
        else:
            self._transport.close()


@asynccontextmanager
async def raw_cell(*answers: list[bytes]) -> AsyncGenerator[tuple[CellConnections, list[bytes]]]:
    """A cell whose connections give these answers, one list for each connection."""
    left, seen = list(answers), list[bytes]()
    server = await asyncio.get_running_loop().create_server(lambda: RawCell(left, seen), "127.0.0.1")
    host, port = server.sockets[0].getsockname()
    connector = TCPConnector(limit=0)
    try:
        yield CellConnections(connector, f"http://{host}:{port}/base/", ClientTimeout(total=None, sock_connect=5)), seen
    finally:
        await connector.close()
        server.close()
        await server.wait_closed()


async def test_a_request_is_sent_with_its_path_headers_and_length() -> None:
    async with raw_cell([OK, OK]) as (cell, seen):
        headers = CIMultiDict([("Host", "acme.example.com"), ("X-Twice", "1"), ("X-Twice", "\udce9")])
        response = await cell.request("POST", "/api/x?q=%2F", headers, b"{}")
        assert (response.status, response.reason, await response.read()) == (200, "OK", b"ok")
        await (await cell.request("POST", "/", CIMultiDict(), b"")).read()
    assert seen == [
        b"POST /base/api/x?q=%2F HTTP/1.1\r\nHost: acme.example.com\r\nX-Twice: 1\r\nX-Twice: \xe9\r\n"
        b"Content-Length: 2\r\n\r\n{}",
        b"POST /base/ HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
    ]


async def test_an_idle_connection_that_the_cell_has_closed_is_replaced_for_what_may_be_repeated() -> None:
    async with raw_cell([OK], [OK], [OK]) as (cell, seen):
        await (await cell.request("GET", "/", CIMultiDict(), b"")).read()
        assert await (await cell.request("GET", "/", CIMultiDict(), b"")).read() == b"ok"
        with pytest.raises(ClientError):
            await cell.request("POST", "/", CIMultiDict(), b"{}")
    assert [data.split()[0] for data in seen] == [b"GET", b"GET", b"GET", b"POST"]


async def test_an_answer_that_was_not_read_to_its_end_closes_its_connection() -> None:
    long = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart"
    async with raw_cell([long, OK], [OK]) as (cell, _):
        response = await cell.request("GET", "/", CIMultiDict(), b"")
        response.release()
        assert await (await cell.request("GET", "/", CIMultiDict(), b"")).read() == b"ok"


async def test_who_reads_an_answer_that_is_closed_gets_an_error() -> None:
    async with raw_cell([b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n"]) as (cell, _):
        response = await cell.request("GET", "/", CIMultiDict(), b"")
        assert await response.content.readany() == b"a"
        reading = asyncio.create_task(response.content.readany())
        await asyncio.sleep(0)
        response.close()
        with pytest.raises(ClientError):
            await reading


async def test_interim_answers_are_skipped_and_what_is_not_http_is_an_error() -> None:
    early = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n"
    async with raw_cell([early + OK, b"SSH-2.0-OpenSSH\r\n"]) as (cell, _):
        assert (await (await cell.request("GET", "/", CIMultiDict(), b"")).read()) == b"ok"
        with pytest.raises(ClientError, match="not HTTP"):
            await cell.request("POST", "/", CIMultiDict(), b"")


@pytest.mark.parametrize(("path", "value"), [("/a b", "1"), ("/", "1\r\nX-Other: 2"), ("/", "1\n2"), ("/\r", "1")])
async def test_a_request_with_a_line_break_is_not_sent(path: str, value: str) -> None:
    async with raw_cell() as (cell, seen):
        with pytest.raises(ValueError, match="line break"):
            await cell.request("GET", path, CIMultiDict(X=value), b"")
    assert not seen
