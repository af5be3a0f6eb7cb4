"""`fetch_url` as a model uses it: through a chat, and by itself."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.helpers.loopback_servers import Listeners, listening, moved, reply

from everturn import Chat, Rule
from everturn.core.parts import Output, ToolPart
from everturn.core.ports import ToolContext
from everturn.egress import EgressPolicy, FetchLimits
from everturn.errors import BadArguments, ConfigError, FetchFailed
from everturn.events import GateOpened
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import rename_tool
from everturn.tools.web import FetchUrl, Redirects, fetch_url

CONTEXT = ToolContext(session="s", turn="t", call="c", key="k", progress=lambda _: None)


def tool_of(listeners: Listeners, redirects: Redirects = "host", hosts: tuple[str, ...] = ("127.0.0.1",)) -> FetchUrl:
    guard = EgressPolicy(allow=[f"{host}:{listeners.port}" for host in hosts])
    return fetch_url(guard, limits=FetchLimits(total=20, idle=10), redirects=redirects)


async def run(tool: FetchUrl, listeners: Listeners, path: str = "/", **arguments: Any) -> Output:
    output = await tool.run({"url": f"http://127.0.0.1:{listeners.port}{path}", **arguments}, CONTEXT)
    assert isinstance(output, Output)
    return output


def test_what_it_is_says_what_rules_and_people_must_know() -> None:
    spec = fetch_url().spec
    assert (spec.name, spec.read_only, spec.approval, spec.egress, spec.untrusted) == (
        "fetch_url",
        True,
        "ask",
        True,
        True,
    )
    assert (spec.subjects, spec.origin, spec.manual) == ({"url": "url"}, "web", False)


async def test_a_page_is_reported_as_markdown_with_its_title_address_and_status() -> None:
    async with listening() as listeners:
        body = b"<title>A page</title><h1>Hello</h1><a href=/x>there</a>"
        listeners.answers["/"] = reply(body, "404 Not Found", Content_Type="text/html; charset=utf-8")
        output = await run(tool_of(listeners), listeners)
        place = f"http://127.0.0.1:{listeners.port}"
        assert output.text == (
            f"Title: A page\nAddress: {place}/ (status 404, text/html)\n\n# Hello\n\n[there]({place}/x)"
        )
        assert output.title == "A page"
        raw = await run(tool_of(listeners), listeners, raw=True)
        assert raw.text.endswith(body.decode())


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/rss+xml", "application/ld+json", ""])
async def test_other_text_is_reported_as_it_is(kind: str) -> None:
    async with listening() as listeners:
        listeners.answers["/"] = reply(b'{"a": "<b>"}', Content_Type=kind)
        assert (await run(tool_of(listeners), listeners)).text.endswith('\n\n{"a": "<b>"}')


@pytest.mark.parametrize("kind", ["image/png", "application/pdf", "application/octet-stream", "video/mp4"])
async def test_what_is_no_text_is_refused_with_its_type_and_size(kind: str) -> None:
    async with listening() as listeners:
        listeners.answers["/"] = reply(b"x" * 1234, Content_Type=kind)
        with pytest.raises(FetchFailed, match=f"'{kind}', of 1,234 bytes"):
            await run(tool_of(listeners), listeners)


async def test_what_only_says_it_is_text_is_refused_too() -> None:
    async with listening() as listeners:
        listeners.answers["/"] = reply(b"\x7fELF\0\0\0", Content_Type="text/html")
        with pytest.raises(FetchFailed, match="is binary, 7 bytes"):
            await run(tool_of(listeners), listeners)


async def test_a_long_page_is_read_piece_by_piece_and_nothing_is_missing() -> None:
    async with listening() as listeners:
        whole = " ".join(str(number) for number in range(2000))
        listeners.answers["/"] = reply(whole.encode())
        read, start = "", 0
        while start < len(whole):
            output = await run(tool_of(listeners), listeners, start=start, max_chars=4000)
            head, _, piece = output.text.partition("\n\n")
            read += piece
            start += len(piece)
            assert f"of {len(whole):,}" in head
            assert (f"read on with start={start}" in head) == (start < len(whole))
        assert read == whole
        assert "nothing at 99,999" in (await run(tool_of(listeners), listeners, start=99_999)).text


async def test_a_redirect_to_another_host_is_reported_and_not_followed() -> None:
    async with listening() as listeners:
        destination = f"http://127.0.0.2:{listeners.port}/x"
        listeners.answers["/"] = moved(destination)
        output = await run(tool_of(listeners, hosts=("127.0.0.1", "127.0.0.2")), listeners)
        assert f"has moved to {destination}" in output.text
        assert listeners.came == {"127.0.0.1": 1}
        followed = await run(tool_of(listeners, "any", ("127.0.0.1", "127.0.0.2")), listeners)
        assert "here is 127.0.0.2" in followed.text
        assert f"Redirected from: http://127.0.0.1:{listeners.port}/" in followed.text


async def test_a_redirect_on_the_same_host_is_followed_unless_none_is() -> None:
    async with listening() as listeners:
        listeners.answers |= {"/": moved("/x"), "/x": reply(b"moved here")}
        assert "moved here" in (await run(tool_of(listeners), listeners)).text
        assert "has moved to" in (await run(tool_of(listeners, "none"), listeners)).text


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"url": 7},
        {"url": ""},
        {"url": "example.com"},
        {"url": "http://127.0.0.1/"},
        {"url": "http://localhost/"},
        {"url": "https://user@example.com/"},
        {"url": "https://example.com/", "start": -1},
        {"url": "https://example.com/", "start": True},
        {"url": "https://example.com/", "start": "0"},
        {"url": "https://example.com/", "max_chars": 0},
        {"url": "https://example.com/", "max_chars": 10**9},
        {"url": "https://example.com/", "raw": "yes"},
        {"url": "https://example.com/", "method": "POST"},
    ],
)
def test_arguments_that_make_no_sense_are_refused_before_anybody_is_asked(arguments: dict[str, Any]) -> None:
    with pytest.raises(BadArguments):
        fetch_url().validate(arguments)


def test_an_address_is_given_to_the_rules_as_it_will_be_fetched() -> None:
    arguments = fetch_url().validate({"url": "HTTPS://Example.COM:443/a/../b#c"})
    assert arguments == {"url": "https://example.com/b", "start": 0, "max_chars": 20_000, "raw": False}


def test_a_way_to_redirect_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError):
        fetch_url(redirects="all")  # type: ignore[arg-type]


async def test_the_loop_goes_on_while_a_hostile_page_is_read() -> None:
    async with listening() as listeners:
        listeners.answers["/"] = reply(b"<ul><li>" * 60_000, Content_Type="text/html")
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.005)
                ticks += 1

        ticking = asyncio.ensure_future(tick())
        await run(tool_of(listeners), listeners)
        ticking.cancel()
        assert ticks >= 3


async def test_a_model_fetches_a_page_once_a_person_has_allowed_it() -> None:
    async with listening() as listeners:
        listeners.answers["/"] = reply(b"<p>Sunny.</p>", Content_Type="text/html")
        url = f"http://127.0.0.1:{listeners.port}/"
        model = ScriptedModel(calls(call("fetch_url", url=url)), say("It is sunny."))
        async with Chat(model, tools=[tool_of(listeners)]) as chat:
            turn = await chat.send("How is the weather?")
            async for event in turn:
                if isinstance(event, GateOpened):
                    assert listeners.total == 0
                    await turn.answer(event.gate, allow="once")
            result = await turn
            assert result.message is not None
            [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
            assert part.output is not None
            assert part.output.text.endswith("Sunny.")
            assert (part.state, part.output.untrusted, listeners.total) == ("completed", True, 1)


async def test_a_model_is_told_why_it_may_not_go_somewhere_and_nobody_is_asked() -> None:
    async with listening() as listeners:
        model = ScriptedModel(calls(call("fetch_url", url=f"http://127.0.0.1:{listeners.port}/")), say("I cannot."))
        async with Chat(model, tools=[fetch_url(EgressPolicy(ports=[listeners.port]))]) as chat:
            turn = await chat.send("What is on my machine?")
            events = [event async for event in turn]
            result = await turn
            assert not any(isinstance(event, GateOpened) for event in events)
            assert result.message is not None
            [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
            assert part.output is not None
            assert "loopback address" in part.output.text
            assert (part.state, listeners.total) == ("failed", 0)


@pytest.mark.parametrize("name", ["fetch_url", "look_up"])
async def test_a_redirect_to_where_a_rule_denies_it_is_reported_and_not_followed(name: str) -> None:
    async with listening() as listeners:
        base = f"http://127.0.0.1:{listeners.port}"
        listeners.answers |= {"/": moved("/next"), "/next": moved("/admin/secret"), "/admin/secret": reply(b"SECRET")}
        rules = [Rule(name, "allow", {"url": f"{base}/**"}), Rule(name, "deny", {"url": f"{base}/admin/**"})]
        model = ScriptedModel(calls(call(name, url=f"{base}/")), say("It moved."))
        async with Chat(model, tools=[rename_tool(tool_of(listeners), name)], rules=rules) as chat:
            result = await (await chat.send("What is there?"))
        assert result.message is not None
        [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
        assert part.output is not None
        assert f"{base}/next has moved to {base}/admin/secret" in part.output.text
        assert "a rule denies it" in part.output.text
        assert [path for _, path, _ in listeners.asked] == ["/", "/next"]
