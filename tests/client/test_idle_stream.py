"""A stream in which nothing happens for long is no broken one."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from everturn.client import Server, event_stream
from everturn.errors import ServerUnavailable, UnknownTurn
from tests.client.test_client_mutants import a_line

TOKEN = "evk_0123456789abcdef"


async def serve(handler: object) -> tuple[web.AppRunner, str]:
    app = web.Application()
    app.router.add_get("/api/sessions/s/events", handler)  # pyright: ignore[reportArgumentType]
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}"


async def test_what_was_quiet_for_longer_than_patience_is_taken_up_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "RECONNECT_TIMEOUT", 0.3)
    event_ids: list[str] = []

    async def events(request: web.Request) -> web.StreamResponse:
        event_ids.append(request.headers.get("last-event-id", ""))
        answer = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await answer.prepare(request)
        if len(event_ids) == 1:
            await answer.write(b'id: 7\ndata: {"seq":7,"event":{"type":"LeafSelected","message":null}}\n\n')
            for _ in range(8):
                await asyncio.sleep(0.1)
                await answer.write(b": keep-alive\n\n")
            assert request.transport is not None
            request.transport.abort()
            return answer
        await answer.write(b'id: 8\ndata: {"seq":8,"event":{"type":"LeafSelected","message":null}}\n\n')
        return answer

    runner, url = await serve(events)
    async with Server(url, TOKEN) as server:
        stream = server.session("s").events()
        assert [(await anext(stream)).seq, (await anext(stream)).seq] == [7, 8]
        assert event_ids == ["", "7"]
        await stream.aclose()
    await runner.cleanup()


async def test_a_server_that_says_nothing_at_all_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "RECONNECT_TIMEOUT", 0.5)
    requests: list[int] = []

    async def events(request: web.Request) -> web.Response:
        requests.append(1)
        return web.Response(text="", content_type="text/event-stream")

    runner, url = await serve(events)
    async with Server(url, TOKEN) as server:
        with pytest.raises(ServerUnavailable, match="without a word"):
            await anext(server.session("s").events())
    assert len(requests) < 20  # not in a hurry
    await runner.cleanup()


async def test_a_turn_that_was_cancelled_before_it_began_is_a_cancelled_one() -> None:
    async with a_line() as (_, _, server):
        first = await server.start_session("go")
        second = await server.session(first.session).send("and then")
        await second.cancel()
        await first
        assert (await second.state()).phase == "cancelled"
        ended = await second
        assert (ended.phase, ended.messages) == ("cancelled", ())
        with pytest.raises(UnknownTurn):
            await server.session(first.session).turn("turn_that_never_was")
