"""Bodies: how much is read of whom, how fast it has to come, and that nobody's long ones keep others from talking."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from starlette.responses import Response

from everturn.config.server_options import ServerOptions
from everturn.server import body_limits
from everturn.server.app import SEND_CHUNK
from everturn.server.body_limits import (
    ANONYMOUS_BODY_LIMIT,
    MEMORY_LIMIT,
    TENANT_MEMORY_LIMIT,
    UNCOUNTED_BYTES,
    BodyReader,
)
from everturn.server.errors import RequestError
from everturn.server.route import Route
from everturn.server.streams.response import SlowReader
from tests.helpers.server_app import HOST, PORT, ask, make, make_house, word

MB = 1024 * 1024


def wire(pieces: Sequence[bytes], then: asyncio.Event | None = None) -> Any:
    """Somebody who sends these pieces; with `then`, not the last one before that is set."""
    left = list(pieces)

    async def receive() -> dict[str, Any]:
        if then is not None and len(left) == 1:
            await then.wait()
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    return receive


async def test_of_an_unknown_client_hardly_anything_is_read() -> None:
    app = make(await make_house())
    form = {"content-type": "application/x-www-form-urlencoded"}
    answer = await ask(app, "POST", "/login", body=b"token=" + b"x" * ANONYMOUS_BODY_LIMIT, headers=form)
    assert (answer.status, answer.code) == (413, "too_large")
    pieces = [b"token=", *[b"x" * 1024] * 9]
    answer = await ask(app, "POST", "/login", pieces=pieces, headers=form)
    assert (answer.status, answer.code) == (413, "too_large")
    answer = await ask(app, "POST", "/login", body=b"token=x", headers=form)
    assert answer.status == 401


async def test_however_full_the_node_is_somebody_who_says_little_is_heard() -> None:
    body_reader, then = BodyReader(ServerOptions()), asyncio.Event()
    long = [b"x" * MB] * (TENANT_MEMORY_LIMIT // MB) + [b""]
    readings = [
        asyncio.create_task(body_reader.read(wire(long, then), None, TENANT_MEMORY_LIMIT, tenant))
        for tenant in ("a", "b", "c", "d", "e")
    ]
    while not any(reading.done() for reading in readings):  # noqa: ASYNC110 - it has no bell
        await asyncio.sleep(0)
    assert sum(reading.done() for reading in readings) == 1, "all of them together have what there is"
    with pytest.raises(RequestError) as refused:
        await body_reader.read(wire([b"x" * MB, b"x" * MB]), None, TENANT_MEMORY_LIMIT, "f")
    assert refused.value.code == "busy"
    for tenant in ("", "a", "f"):
        assert await body_reader.read(wire([b"hello"]), None, MB, tenant) == b"hello"
        body_reader.release(b"hello", tenant)
    then.set()
    for tenant, reading in zip("abcde", readings, strict=True):
        try:
            body_reader.release(await reading, tenant)
        except RequestError as error:
            assert error.code == "busy"  # noqa: PT017 - one of them, whichever
    assert body_reader.memory.held == 0


async def test_a_tenant_has_its_share_and_no_more_unless_a_single_body_may_be_longer() -> None:
    body_reader, then = BodyReader(ServerOptions()), asyncio.Event()
    pieces = [b"x" * MB] * (TENANT_MEMORY_LIMIT // MB - 1) + [b""]
    first = asyncio.create_task(body_reader.read(wire(pieces, then), None, TENANT_MEMORY_LIMIT, "ours"))
    while body_reader.memory.held < TENANT_MEMORY_LIMIT - MB - UNCOUNTED_BYTES:  # noqa: ASYNC110 - it has no bell
        await asyncio.sleep(0)
    with pytest.raises(RequestError) as refused:
        await body_reader.read(wire([b"x" * MB] * 3), None, TENANT_MEMORY_LIMIT, "ours")
    assert refused.value.code == "busy"
    assert len(await body_reader.read(wire([b"x" * MB] * 3), None, TENANT_MEMORY_LIMIT, "theirs")) == 3 * MB
    then.set()
    body_reader.release(await first, "ours")
    long = [b"x" * MB] * (TENANT_MEMORY_LIMIT // MB + 2)
    assert len(await body_reader.read(wire(long), None, MEMORY_LIMIT, "ours")) == len(long) * MB


async def test_a_body_that_goes_on_and_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limits, "BODY_TIMEOUT", 0.3)
    body_reader = BodyReader(ServerOptions(header_time=0.1))

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.02)  # at 50 MB a second, which is fast enough
        return {"type": "http.request", "body": b"x" * MB, "more_body": True}

    async with asyncio.timeout(10):
        with pytest.raises(RequestError) as refused:
            await body_reader.read(receive, None, MEMORY_LIMIT, "ours")
    assert refused.value.code == "too_slow"
    assert body_reader.memory.held == 0


async def test_a_body_that_brings_a_kilobyte_a_second_is_too_slow() -> None:
    body_reader = BodyReader(ServerOptions(header_time=0.1))
    pieces = iter([b"x" * 4096] * 1000)

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(0.1)  # 40 kB a second
        return {"type": "http.request", "body": next(pieces), "more_body": True}

    async with asyncio.timeout(10):
        with pytest.raises(RequestError) as refused:
            await body_reader.read(receive, None, MB, "ours")
    assert refused.value.code == "too_slow"


async def test_what_was_read_is_given_back_when_it_was_answered() -> None:
    app = make(await make_house())
    body_reader = app._bodies
    body = b'{"text": "%s"}' % (b"x" * (2 * UNCOUNTED_BYTES))
    answer = await ask(
        app, "POST", "/api/sessions", word("member"), body=body, headers={"content-type": "application/json"}
    )
    assert answer.status == 201
    assert body_reader.memory.held == 0
    assert not body_reader.memory._per_tenant


async def test_answers_that_nobody_reads_are_counted_and_one_too_many_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(body_limits, "TENANT_MEMORY_LIMIT", 5 * UNCOUNTED_BYTES)
    data = b"x" * (4 * UNCOUNTED_BYTES)

    async def give(request: Any) -> Response:
        return Response(data, media_type="application/octet-stream")

    route = Route(
        method="GET",
        path="/api/long",
        name="long",
        needs="viewer",
        about="",
        handler=give,
        gives="bytes",
        media=("*/*",),
    )
    app, stop, quarantined = make(await make_house(), extra=[route]), asyncio.Event(), asyncio.Event()

    async def hold(message: Any) -> None:
        quarantined.set()
        await stop.wait()

    scope = {
        "type": "http", "method": "GET", "path": "/api/long", "raw_path": b"/api/long", "query_string": b"",
        "headers": [(b"host", HOST.encode()), (b"authorization", f"Bearer {word('viewer')}".encode())],
        "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 5), "scheme": "http", "http_version": "1.1",
    }  # fmt: skip
    first = asyncio.create_task(app(scope, wire([b""]), hold))
    await quarantined.wait()
    assert (await ask(app, "GET", "/api/long", word("viewer"))).code == "busy"
    assert (await ask(app, "GET", "/api/long", word("viewer", "theirs"))).body == data
    assert (await ask(app, "GET", "/api/me", word("viewer"))).status == 200
    stop.set()
    await first
    assert (await ask(app, "GET", "/api/long", word("viewer"))).body == data


async def test_a_long_answer_goes_out_in_pieces_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def give(request: Any) -> Response:
        return Response(b"x" * (5 * SEND_CHUNK + 1), media_type="application/octet-stream")

    route = Route(
        method="GET",
        path="/api/long",
        name="long",
        needs="viewer",
        about="",
        handler=give,
        gives="bytes",
        media=("*/*",),
    )
    app, sizes = make(await make_house(), extra=[route], options=ServerOptions(body_time=0.2)), list[int]()
    scope: dict[str, Any] = {
        "type": "http", "method": "GET", "path": "/api/long", "raw_path": b"/api/long", "query_string": b"",
        "headers": [(b"host", HOST.encode()), (b"authorization", f"Bearer {word('viewer')}".encode())],
        "server": ("127.0.0.1", PORT), "client": ("127.0.0.1", 5), "scheme": "http", "http_version": "1.1",
    }  # fmt: skip

    async def send(message: Any) -> None:
        sizes.append(len(message.get("body", b"")))

    await app(dict(scope), wire([b""]), send)
    assert sizes == [0, *[SEND_CHUNK] * 5, 1], "a body that is handed over whole is held twice until it is read"

    monkeypatch.setattr("everturn.server.app.MIN_BYTES_PER_SECOND", SEND_CHUNK * 1000)

    async def slowly(message: Any) -> None:
        await asyncio.sleep(0.15)  # each piece in time, and all of them not

    with pytest.raises(SlowReader):
        await app(dict(scope), wire([b""]), slowly)
