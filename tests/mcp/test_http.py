"""Servers over HTTP: sessions that are lost, servers that go away, answers of every size."""

from __future__ import annotations

import asyncio
import importlib
import logging

import pytest

from everturn.errors import OutcomeUnknown, ToolError, ToolTimeout
from everturn.mcp.config import ServerSpec
from tests.helpers.hostile_mcp import Person, house
from tests.mcp.hostile_http import serving


def at(url: str, **more: object) -> ServerSpec:
    return ServerSpec("h", url=url, **more)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("is_streaming", [False, True])
async def test_a_call_goes_there_and_back(is_streaming: bool):
    async with serving() as server:
        server.is_streaming = is_streaming
        async with house(at(server.url, headers={"x-key": "k"})) as home:
            person = Person()
            assert (await home.call("echo", person, text="hello")).text == "hello"
            assert home.tool("echo").spec.egress
            assert server.calls == ["echo"]
            assert all(headers["x-key"] == "k" for headers in server.headers)
            assert person.said == (["1 of 2"] if is_streaming else [])


async def test_a_session_that_the_server_forgot_is_made_again_and_the_call_is_done_once():
    async with serving() as server, house(at(server.url)) as home:
        server.sessions.clear()
        assert (await home.call("echo", text="on")).text == "on"
        assert (server.calls, server.began, home.status().connects) == (["echo"], 2, 2)


async def test_a_server_that_goes_away_is_not_reachable_and_comes_back():
    async with serving() as server, house(at(server.url, timeout=0.5)) as home:
        await server.stop()
        with pytest.raises(ToolError, match=r"not reachable: it cannot be reached|was not run"):
            await home.call("echo")
        assert home.status().state == "down"
        assert "h_echo" in home.status().tools
        server.sessions.clear()
        await server.start()
        await home.until(lambda: home.status().state == "ready")
        assert (await home.call("echo", text="on")).text == "on"
        assert server.calls == ["echo"]


async def test_a_connection_that_breaks_in_a_call_leaves_its_outcome_unknown():
    async with serving() as server, house(at(server.url)) as home:
        with pytest.raises(OutcomeUnknown):
            await home.call("cut")
        assert (await home.call("echo", text="on")).text == "on"
        assert server.calls == ["cut", "echo"]


async def test_a_call_ends_at_its_limit_and_others_go_on():
    async with serving() as server, house(at(server.url, timeout=0.4)) as home:
        with pytest.raises(ToolTimeout):
            await home.call("never")
        assert (await home.call("echo", text="on")).text == "on"
        await home.until(lambda: server.cancelled == 1)
        assert server.began == 1


async def test_a_server_that_wants_a_login_says_so():
    async with serving() as server:
        server.status = 401
        async with house(at(server.url), ready=False) as home:
            await home.until(lambda: home.status().state == "needs_login")
            assert "401" in home.status().reason
            server.status = 0
            home.servers.reconnect("h")
            await home.until(lambda: home.status().state == "ready")


async def test_packed_and_unfit_answers_fail_their_call_alone():
    async with serving() as server, house(at(server.url)) as home:
        for name, why in (("packed", "it compresses its responses"), ("junk", "content type")):
            with pytest.raises(ToolError, match=why):
                await home.call(name)
        assert (await home.call("echo", text="on")).text == "on"
        assert server.calls == ["packed", "junk", "echo"]


@pytest.mark.parametrize("is_streaming", [False, True])
async def test_large_answers_are_cut_and_larger_ones_refused(is_streaming: bool):
    async with serving() as server, house(at(server.url)) as home:
        server.is_streaming = is_streaming
        assert (await home.call("big", n=10)).text.endswith("[cut here: the result was longer than 8388608 characters]")
        with pytest.raises(ToolError):
            await home.call("big", n=20)
        assert (await home.call("echo", text="on")).text == "on"
        assert server.calls == ["big", "big", "echo"]


async def test_two_hundred_calls_at_once_over_http():
    async with serving() as server, house(at(server.url)) as home:
        outputs = await asyncio.gather(*(home.call("slow", text=str(n), seconds=0.05) for n in range(200)))
        assert [output.text for output in outputs] == [str(n) for n in range(200)]
        assert len(server.calls) == 200


async def test_nobody_is_at_the_address():
    async with house(at("http://127.0.0.1:9/mcp"), ready=False) as home:
        await home.until(lambda: home.status().state == "down")
        assert "cannot be reached" in home.status().reason


@pytest.mark.parametrize("is_streaming", [False, True])
async def test_half_a_character_costs_no_more_than_itself(is_streaming: bool):
    async with serving() as server, house(at(server.url, timeout=5)) as home:
        server.is_streaming = is_streaming
        assert (await home.call("echo", text="a CUT b")).text == "a \ufffd b"


@pytest.mark.parametrize(
    ("status", "headers", "why"),
    [
        (500, {}, "it answers HTTP 500"),
        (404, {}, "it answers HTTP 404"),
        (200, {"Content-Type": "text/html"}, "content type 'text/html'"),
        (307, {"Location": "https://other.example/mcp"}, "Redirect to https://other.example/mcp not followed"),
    ],
)
async def test_an_address_that_is_no_server_says_what_it_is(status: int, headers: dict[str, str], why: str):
    async with serving() as server:
        server.status, server.more = status, headers
        async with house(at(server.url), ready=False) as home:
            await home.until(lambda: home.status().state == "down")
            assert why in home.status().reason


def test_what_the_libraries_log_of_a_server_does_nothing_to_a_terminal(caplog: pytest.LogCaptureFixture):
    importlib.import_module("everturn.mcp.session")  # which is where the libraries come from
    names = ("mcp.client.streamable_http", "mcp.shared.jsonrpc_dispatcher", "httpx2")
    for name in names:
        try:
            raise ValueError("\x1b[2Jall is well")
        except ValueError:
            logging.getLogger(name).exception("Unexpected: %s", "\x1b]0;title\x07\nnext")
    assert len(caplog.records) == len(names)
    for record in caplog.records:
        shown = logging.Formatter("%(message)s").format(record)
        assert shown == r"Unexpected: \x1b]0;title\x07\x0anext: ValueError"
