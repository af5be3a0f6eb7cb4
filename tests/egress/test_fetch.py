"""Redirects inward, and servers that mean ill: each ends typed, in its time and in its room."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import tracemalloc
import zlib

import pytest
from tests.helpers.loopback_servers import Listeners, Names, listening, moved, recorded, reply

from everturn.egress import EgressPolicy, FetchLimits, fetch
from everturn.egress.fetch import _next, pinned_connector
from everturn.errors import AddressRefused, FetchFailed

SHORT = FetchLimits(total=20, idle=10, connect=10)
MIB = 2**20


def guard_of(listeners: Listeners, **names: list[list[str]]) -> EgressPolicy:
    """Only 127.0.0.1 may be reached, and every port may."""
    return EgressPolicy(
        allow=[f"127.0.0.1:{listeners.port}"],
        ports=(80, 443, listeners.port),
        resolve=Names(**names),
    )


# ---------------------------------------------------------------------------------------------------------- redirects

INWARD = [
    "http://127.0.0.2:{p}/",
    "//127.0.0.2:{p}/",
    "http://[::1]:{p}/",
    "http://[::]:{p}/",
    "http://0.0.0.0:{p}/",
    "http://localhost:{p}/",
    "http://127.2:{p}/",
    "http://0x7f.2:{p}/",
    "http://2130706434:{p}/",
    "http://[::ffff:127.0.0.2]:{p}/",
    "http://[64:ff9b::7f00:2]:{p}/",
    "http://[2002:7f00:2::]:{p}/",
    "http://10.0.0.1:{p}/",
    "http://100.64.0.1:{p}/",
    "http://169.254.169.254/latest/meta-data/",
    "http://[fd00:ec2::254]/",
    "http://[fe80::1%25lo]:{p}/",
    "http://224.0.0.1/",
    "http://inner.example.com:{p}/",
    "http://mixed.example.com:{p}/",
    "http://example.com@127.0.0.2:{p}/",
    "http://127.0.0.1:{p}@127.0.0.2:{p}/",
    "http://127.0.0.1:{p}\\@127.0.0.2:{p}/",
    "http:\t//127.0.0.2:{p}/",
    " http://127.0.0.2:{p}/ x",
    "http://127.0.0.1:22/",
    "file:///etc/passwd",
    "ftp://127.0.0.2:{p}/",
    "http://[",
    "javascript:alert(1)",
]


@pytest.mark.parametrize("hops", [0, 3])
async def test_a_redirect_inward_is_refused_at_whatever_hop(hops: int) -> None:
    async with listening() as listeners:
        port = str(listeners.port)
        for at in range(hops):
            listeners.answers[f"/{at}"] = moved(f"/{at + 1}")
        got_through: list[str] = []
        for to in INWARD:
            listeners.answers[f"/{hops}"] = moved(to.replace("{p}", port))
            guard = guard_of(
                listeners, inner_example_com=[["127.0.0.2"]], mixed_example_com=[["93.184.216.34", "127.0.0.2"]]
            )
            with recorded() as record:
                try:
                    await fetch(guard, f"http://127.0.0.1:{port}/0", limits=SHORT)
                    got_through.append(to)
                except AddressRefused:
                    pass
                except FetchFailed as error:
                    got_through.append(f"{to}: tried, and {error}")
            assert set(record) == {("socket.connect", ("127.0.0.1", listeners.port))}
        assert got_through == []
        assert set(listeners.came) == {"127.0.0.1"}
        assert listeners.total == len(INWARD) * (hops + 1)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Again", "308 For ever"])
async def test_a_redirect_to_where_one_may_go_is_followed_and_told(status: str) -> None:
    async with listening() as listeners:
        listeners.answers |= {"/a/b": moved("../c?d=e#f", status), "/c": reply(b"there")}
        page = await fetch(guard_of(listeners), f"http://127.0.0.1:{listeners.port}/a/b", limits=SHORT)
        assert (page.body, page.url) == (b"there", f"http://127.0.0.1:{listeners.port}/c?d=e")
        assert page.hops == (f"http://127.0.0.1:{listeners.port}/a/b",)


async def test_a_redirect_that_is_not_wanted_is_reported_and_not_followed() -> None:
    async with listening() as listeners:
        listeners.answers["/"] = moved("https://example.com/")
        page = await fetch(
            guard_of(listeners),
            f"http://127.0.0.1:{listeners.port}/",
            limits=SHORT,
            follows=lambda source, target: False,
        )
        assert (page.status, page.redirect, page.body) == (302, "https://example.com/", b"")


async def test_a_name_is_judged_again_at_every_hop() -> None:
    async with listening() as listeners:
        names = Names(site_example_com=[["127.0.0.1"], ["169.254.169.254"]])
        guard = EgressPolicy(allow=[f"site.example.com:{listeners.port}"], resolve=names)
        listeners.answers["/"] = moved("/again")
        with pytest.raises(AddressRefused, match="metadata"):
            await fetch(guard, f"http://site.example.com:{listeners.port}/", limits=SHORT)
        assert (len(names.asked), listeners.total) == (2, 1)


async def test_redirects_without_end_are_given_up() -> None:
    async with listening() as listeners:
        listeners.answers["/"] = moved("/")
        with pytest.raises(FetchFailed, match="redirects more than 5 times") as caught:
            await fetch(guard_of(listeners), f"http://127.0.0.1:{listeners.port}/", limits=SHORT)
        assert (caught.value.kind, listeners.total) == ("redirect", 6)


def test_https_does_not_lead_to_http_and_the_other_way_it_does() -> None:
    guard = EgressPolicy()
    with pytest.raises(AddressRefused, match="from https to http"):
        _next(guard, guard.parse("https://example.com/"), "http://example.com/")
    assert str(_next(guard, guard.parse("http://example.com/"), "https://example.com/")) == "https://example.com/"


async def test_two_places_at_once_and_none_at_all() -> None:
    async with listening() as listeners:
        url = f"http://127.0.0.1:{listeners.port}/"
        listeners.answers["/"] = b"HTTP/1.1 302 F\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"
        with pytest.raises(FetchFailed, match="2 addresses"):
            await fetch(guard_of(listeners), url, limits=SHORT)
        listeners.answers["/"] = reply(b"nowhere", "302 Found")
        assert (await fetch(guard_of(listeners), url, limits=SHORT)).body == b"nowhere"


async def test_headers_are_for_the_first_origin_alone_and_stay_dropped() -> None:
    async with listening() as listeners:
        port = listeners.port
        guard = EgressPolicy(allow=[f"127.0.0.1:{port}", f"127.0.0.2:{port}"])
        listeners.answers |= {"/1": moved("/2"), "/2": moved(f"http://127.0.0.2:{port}/3")}
        listeners.answers |= {"/3": moved(f"http://127.0.0.1:{port}/4"), "/4": reply()}
        await fetch(guard, f"http://127.0.0.1:{port}/1", limits=SHORT, headers={"Authorization": "Bearer key"})
        assert [(host, "authorization" in headers) for host, _, headers in listeners.asked] == [
            ("127.0.0.1", True),
            ("127.0.0.1", True),
            ("127.0.0.2", False),
            ("127.0.0.1", False),
        ]


async def test_cookies_are_not_kept_and_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as listeners:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.2:{listeners.port}")
        monkeypatch.setenv("no_proxy", "")
        listeners.answers |= {"/": reply(b"", "302 Found", Set_Cookie="a=b", Location="/x")}
        page = await fetch(guard_of(listeners), f"http://127.0.0.1:{listeners.port}/", limits=SHORT)
        assert page.body == b"here is 127.0.0.1"
        assert listeners.came == {"127.0.0.1": 2}
        assert all("cookie" not in headers for _, _, headers in listeners.asked)


# ----------------------------------------------------------------------------------------------------- hostile servers


async def failure(listeners: Listeners, path: str, limits: FetchLimits) -> str:
    with pytest.raises(FetchFailed) as caught:
        await fetch(guard_of(listeners), f"http://127.0.0.1:{listeners.port}{path}", limits=limits)
    return caught.value.kind


async def pour(writer: asyncio.StreamWriter, data: bytes) -> None:
    while True:
        writer.write(data)
        await writer.drain()


def drip(head: bytes, piece: bytes):
    async def answer(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        while True:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)

    return answer


def flood(head: bytes, piece: bytes):
    async def answer(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        await pour(writer, piece)

    return answer


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
SLOW = {
    "a drop of the body at a time": drip(OK + b"Content-Length: 100000\r\n\r\n", b"x"),
    "a drop of a chunk at a time": drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "a header at a time": drip(b"HTTP/1.1 200 OK\r\n", b"X"),
    "nothing but 100 Continue": drip(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("name", SLOW)
async def test_a_server_that_takes_for_ever_is_left_when_the_time_is_over(name: str) -> None:
    async with listening() as listeners:
        listeners.answers["/"] = SLOW[name]
        async with asyncio.timeout(6):  # or it was not its own limit that ended it
            assert await failure(listeners, "/", FetchLimits(total=0.4, idle=0.3)) == "timeout"


SILENT = {
    "before the head": b"",
    "in the head": b"HTTP/1.1 200 OK\r\nX",
    "in the body": OK + b"Content-Length: 9\r\n\r\nx",
}


@pytest.mark.parametrize("name", SILENT)
async def test_a_server_that_falls_silent_is_left_before_that(name: str) -> None:
    async def silent(_: str, __: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(SILENT[name])
        await asyncio.Event().wait()

    async with listening() as listeners:
        listeners.answers["/"] = silent
        with pytest.raises(FetchFailed, match="sent nothing for") as caught:
            await fetch(
                guard_of(listeners), f"http://127.0.0.1:{listeners.port}/", limits=FetchLimits(total=30, idle=0.2)
            )
        assert caught.value.kind == "timeout"


def chunks(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


BOMB = gzip.compress(bytes(40 * MIB), 6)
BIG = {
    "a body without end": (flood(OK + b"\r\n", b"x" * 65536), "size"),
    "chunks without end": (flood(OK + b"Transfer-Encoding: chunked\r\n\r\n", chunks(b"x" * 65536)), "size"),
    "a body that is said to be too long": (OK + b"Content-Length: 99999999999\r\n\r\n", "size"),
    "a bomb": (OK + b"Content-Encoding: gzip\r\n\r\n" + BOMB, "size"),
    "a packed body without end": (
        flood(OK + b"Content-Encoding: gzip\r\n\r\n", gzip.compress(b"")[:10] + b"\0" * 65536),
        "protocol",
    ),
    "a bomb in a bomb": (OK + b"Content-Encoding: gzip, gzip\r\n\r\n" + gzip.compress(BOMB), "protocol"),
    "a long header": (flood(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 65536), "protocol"),
    "many headers": (flood(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 5000), "protocol"),
    "a long status": (flood(b"HTTP/1.1 200 ", b"x" * 65536), "protocol"),
    "a long chunk head": (flood(OK + b"Transfer-Encoding: chunked\r\n\r\n1;", b"x" * 65536), None),
    "trailers without end": (flood(OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: y\r\n" * 5000), None),
    "100 Continue without end": (flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000), None),
}


@pytest.mark.parametrize("name", BIG)
async def test_a_server_that_sends_too_much_is_left_and_memory_is_bounded(name: str) -> None:
    answer, kind = BIG[name]
    async with listening() as listeners:
        listeners.answers["/"] = answer
        await fetch(guard_of(listeners), f"http://127.0.0.1:{listeners.port}/warm", limits=SHORT)
        tracemalloc.start()
        try:
            outcome = await failure(listeners, "/", FetchLimits(size=MIB, total=3 if kind else 0.8, idle=2))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert outcome == kind or kind is None
    assert peak < 12 * MIB, f"{peak:,} bytes"


BROKEN = {
    "a body that breaks off": OK + b"Content-Length: 10\r\n\r\nshort",
    "a chunk that breaks off": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nab",
    "a chunk of no size": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab",
    "two lengths": OK + b"Content-Length: 5\r\nContent-Length: 7\r\n\r\nhello",
    "a length below nothing": OK + b"Content-Length: -5\r\n\r\nhello",
    "a length and chunks": OK + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "packed and broken off": OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello" * 100)[:-9],
    "not packed": OK + b"Content-Encoding: gzip\r\n\r\nhello",
    "packed in another way": OK + b"Content-Encoding: br\r\n\r\nhello",
    "nothing": b"",
    "no HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "something else than HTTP": b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
async def test_an_answer_that_is_none_is_reported_as_such(name: str) -> None:
    async with listening() as listeners:
        listeners.answers["/"] = BROKEN[name]
        assert await failure(listeners, "/", SHORT) == "protocol"


async def test_a_packed_body_is_unpacked_and_what_lies_behind_it_is_not_looked_at() -> None:
    async with listening() as listeners:
        url = f"http://127.0.0.1:{listeners.port}/"
        for data, how in itertools.product((gzip.compress(b"hello"), zlib.compress(b"hello")), ("gzip", "deflate")):
            listeners.answers["/"] = reply(data + b"rest" * 10, Content_Encoding=how)
            assert (await fetch(guard_of(listeners), url, limits=SHORT)).body == b"hello"


async def test_a_body_of_exactly_the_limit_is_taken() -> None:
    async with listening() as listeners:
        url, limits = f"http://127.0.0.1:{listeners.port}/", FetchLimits(size=1000, total=4)
        for size, how in itertools.product((1000, 1001), ("plain", "packed")):
            body = bytes(size)
            listeners.answers["/"] = (
                reply(gzip.compress(body), Content_Encoding="gzip") if how == "packed" else reply(body)
            )
            if size == 1000:
                assert (await fetch(guard_of(listeners), url, limits=limits)).body == body
            else:
                assert await failure(listeners, "/", limits) == "size"


async def test_a_type_nobody_wants_is_refused_before_its_body_with_its_type_and_size() -> None:
    async with listening() as listeners:
        listeners.answers["/"] = flood(
            b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 4000000\r\n\r\n", b"x" * 999
        )
        with pytest.raises(FetchFailed, match=r"'image/png', of 4,000,000 bytes") as caught:
            await fetch(
                guard_of(listeners),
                f"http://127.0.0.1:{listeners.port}/",
                limits=SHORT,
                takes=lambda kind: kind.startswith("text/"),
            )
        assert caught.value.kind == "type"


async def test_an_unreachable_server_is_reported() -> None:
    async with listening() as listeners:
        port = listeners.port
    with pytest.raises(FetchFailed, match="no server answers") as caught:
        await fetch(EgressPolicy(allow=[f"127.0.0.1:{port}"]), f"http://127.0.0.1:{port}/", limits=SHORT)
    assert caught.value.kind == "connect"


async def test_whoever_gives_up_leaves_no_connection_behind() -> None:
    gone = asyncio.Event()
    came = asyncio.Event()

    async def wait(_: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(OK + b"Content-Length: 10\r\n\r\nx")
        came.set()
        await reader.read()
        gone.set()

    async with listening() as listeners:
        listeners.answers["/"] = wait
        task = asyncio.ensure_future(fetch(guard_of(listeners), f"http://127.0.0.1:{listeners.port}/"))
        await came.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await gone.wait()


async def test_a_socket_to_any_other_address_is_never_opened() -> None:
    from ipaddress import ip_address

    from everturn.core.rules.urls import Url
    from everturn.egress.policy import ResolvedUrl

    opened = pinned_connector(ResolvedUrl(Url("http", "a.example", "", "/"), 80, (ip_address("127.0.0.1"),)), None)
    factory = opened._socket_factory
    assert factory is not None
    for host, port in (("127.0.0.2", 80), ("127.0.0.1", 81), ("localhost", 80)):
        with pytest.raises(AddressRefused, match="not checked"):
            factory((2, 1, 6, "", (host, port)))
    factory((2, 1, 6, "", ("127.0.0.1", 80))).close()
    await opened.close()
