"""Built-in tools of Gemini in turns: recorded, cited, sent back to Google unchanged, and text for any other model."""

from __future__ import annotations

import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st
from tests.models.test_provider_tools import bodies, connect, look, parts_of, provider_parts

from everturn import Chat, TurnError, output_guardrail
from everturn.core.canonical_json import JsonObject
from everturn.core.deltas import CallProgress
from everturn.core.events import StepFinished
from everturn.core.hooks import OUTPUT_BUFFERS, OutputBuffer, RequestContext
from everturn.core.parts import Citation, ProviderToolPart, TextPart
from everturn.models.formats.gemini_server_tools import read_citations
from everturn.models.formats.gemini_stream import GeminiDecoder
from everturn.models.profile import Origin
from everturn.models.vendors import VENDORS
from everturn.testing.provider import Call, Cite, Cut, HostedTool, Provider, Say, Think
from everturn.testing.provider.faults import Refused
from everturn.testing.provider.strict.gemini import check_gemini
from everturn.tools import provider_tool

SEARCH = HostedTool("web_search", '{"query": "turtles"}', "https://example.com/a\nhttps://example.com/b")
FETCH = HostedTool("web_fetch", '{"urls": ["https://example.com/"]}', "a page")
CODE = HostedTool("bash_code_execution", '{"command": "print(4)"}', "4\n")
CITED = Cite("Schildkröten 🐢 leben lange.", "https://example.com/a", "All about turtles")
NAMES = ("web_search", "web_fetch", "code_execution")
TOOLS: list[Any] = [provider_tool(name, approval="auto") for name in NAMES]


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider
        assert not provider.refusals


def sealed(part: ProviderToolPart) -> JsonObject:
    assert part.opaque is not None
    return msgspec.json.decode(part.opaque.data)


def model_parts(body: JsonObject) -> list[JsonObject]:
    return [part for content in body["contents"] if content["role"] == "model" for part in content["parts"]]


async def test_calls_go_back_unchanged_and_the_text_is_cited(provider: Provider) -> None:
    steps = [Think("Hm."), SEARCH, Say("Also ö: "), CITED, CODE, Say(" Vier.")]
    model = connect(provider, "gemini-3-pro", steps, [Say("Bye.")], vendor="gemini")
    async with Chat(model, tools=[look, *TOOLS]) as chat:
        result = await chat.run("Turtles?")
        call, found, code, output = provider_parts(parts_of(result))
        assert (call.name, call.state, call.title) == ("web_search", "called", "turtles")
        assert (found.state, found.id) == ("completed", call.id)
        assert (code.title, output.text, output.id) == ("print(4)", "4\n", code.id)
        texts = [part for part in parts_of(result) if isinstance(part, TextPart)]
        cited = next(part for part in texts if part.citations)
        assert cited.citations == (Citation(8, 8 + len(CITED.text), CITED.url, CITED.title),)
        assert cited.text[8 : 8 + len(CITED.text)] == CITED.text
        assert (result.usage.provider_calls, result.usage.web_searches) == (2, 1)
        await chat.run("And?")
    first, second = bodies(provider)
    assert {"googleSearch": {}} in first["tools"]
    assert {"urlContext": {}} in first["tools"]
    assert first["toolConfig"]["includeServerSideToolInvocations"] is True
    sent = model_parts(second)
    assert [part for part in sent if "text" not in part] == [sealed(part) for part in (call, found, code, output)]
    assert all("thoughtSignature" in part for part in sent if "text" not in part)


async def test_what_only_metadata_says_is_recorded_and_not_sent_back(provider: Provider) -> None:
    model = connect(provider, "gemini-2.5-flash", [SEARCH, FETCH, Say("So: "), CITED], [Say("Bye.")], vendor="gemini")
    async with Chat(model, tools=TOOLS) as chat:
        result = await chat.run("Turtles?")
        search, page = provider_parts(parts_of(result))
        assert (search.name, search.state, search.title) == ("web_search", "completed", "turtles")
        assert search.text.splitlines()[0] == "Result 1 https://example.com/a"
        assert (page.name, page.state, page.title) == ("web_fetch", "completed", "https://example.com/")
        assert sealed(search)["groundingMetadata"]["webSearchQueries"] == ["turtles"]
        assert result.usage.provider_calls == 2
        await chat.run("And?")
    first, second = bodies(provider)
    assert "toolConfig" not in first
    assert model_parts(second) == [{"text": "So: " + CITED.text}]


async def test_an_older_model_has_them_only_without_other_tools(provider: Provider) -> None:
    model = connect(provider, "gemini-2.5-flash", [Call("look", '{"path": "a"}')], [Say("x")], vendor="gemini")
    async with Chat(model, tools=[look, *TOOLS]) as chat:
        turn = await chat.send("Turtles?")
        warnings = [event.warning async for event in turn.events() if isinstance(event, StepFinished)]
    assert "only in a request without other tools" in warnings[0]
    assert all("googleSearch" not in tool for body in bodies(provider) for tool in body["tools"])


@pytest.mark.parametrize("vendor", ["anthropic", "openai", "openai-chat", "ollama", "gemini"])
@pytest.mark.parametrize("name", ["gemini-3-pro", "gemini-2.5-flash"])
async def test_another_model_reads_them_as_text(provider: Provider, name: str, vendor: str) -> None:
    model = connect(provider, name, [SEARCH, CODE, CITED], [Say("So.")], vendor="gemini")
    other = connect(provider, "other", [Say("Bye.")], vendor=vendor)
    async with Chat(model, tools=TOOLS) as chat:
        await chat.run("Turtles?")
        await chat.run("And?", model=other)
        await chat.run("And again?")
    body = next(msgspec.json.encode(seen.body).decode() for seen in provider.seen if "other" in seen.model)
    assert "[web_search turtles" in body
    assert "print(4)" in body
    assert "toolCall" not in body
    assert "executableCode" not in body
    assert "thoughtSignature" not in body


async def test_a_call_that_broke_off_is_text(provider: Provider) -> None:
    steps: Any = [[Say("I look. "), HostedTool("web_search", "{}", part="call"), Cut()], [Say("x")]]
    model = connect(provider, "gemini-3-pro", *steps, vendor="gemini")
    async with Chat(model, tools=TOOLS) as chat:
        with pytest.raises(TurnError):
            await chat.run("Turtles?")
        await chat.run("And?")
    body = msgspec.json.encode(bodies(provider)[-1]).decode()
    assert "toolCall" not in body
    assert "[web_search: called]" in body


class Withdraw:
    """Offers the tools of the provider only in the first request."""

    name = "withdraw"

    def on_before_request(self, ctx: RequestContext) -> None:
        if len(ctx.body.messages) > 1:
            ctx.body.provider_tools = []


async def test_a_tool_that_is_no_longer_offered_is_text(provider: Provider) -> None:
    model = connect(provider, "gemini-3-pro", [SEARCH, CITED], [Say("x")], vendor="gemini")
    async with Chat(model, tools=TOOLS, plugins=[Withdraw()]) as chat:
        await chat.run("Turtles?")
        await chat.run("And?")
    assert "[web_search turtles: called]" in msgspec.json.encode(bodies(provider)[1]).decode()


@pytest.mark.parametrize(("vendor", "name"), [("gemini", "gemini-3-pro"), ("anthropic", "claude")])
async def test_a_running_call_is_shown_in_the_status_of_the_turn(provider: Provider, vendor: str, name: str) -> None:
    model = connect(provider, name, [SEARCH, Say("So.")], vendor=vendor)
    async with Chat(model, tools=TOOLS) as chat:
        turn = await chat.send("Turtles?")
        shown = [item.text async for item in turn if isinstance(item, CallProgress)]
    assert shown == ["web_search turtles", ""]


# Citations ------------------------------------------------------------------------------------------------------------


def grounded(*segments: JsonObject) -> JsonObject:
    supports = [{"segment": segment, "groundingChunkIndices": [0, 7]} for segment in segments]
    return {"groundingChunks": [{"web": {"uri": "u", "title": "t"}}], "groundingSupports": supports}


@given(st.text(max_size=40), st.text(min_size=1, max_size=20), st.text(max_size=10))
def test_bytes_become_characters(before: str, cited: str, after: str) -> None:
    start = len(before.encode())
    segment = {"startIndex": start, "endIndex": start + len(cited.encode()), "text": cited}
    text = before + cited + after
    (found,) = read_citations(grounded(segment), text, [0])
    assert text[found.start : found.end] == cited
    del segment["text"]
    assert list(read_citations(grounded(segment), text, [0])) == [found]


@pytest.mark.parametrize("buffer", OUTPUT_BUFFERS)
@pytest.mark.parametrize("word", ["nothing", "Also"])
async def test_a_citation_stays_with_its_text_or_goes(provider: Provider, buffer: OutputBuffer, word: str) -> None:
    guardrail = output_guardrail(buffer=buffer, name="words")(lambda ctx, text: text.replace(word, "…"))
    model = connect(provider, "gemini-3-pro", [Say("Also. "), CODE, CITED], vendor="gemini")
    async with Chat(model, tools=TOOLS, plugins=[guardrail]) as chat:
        result = await chat.run("Turtles?")
    texts = [part for part in parts_of(result) if isinstance(part, TextPart)]
    cited = [part.text[citation.start : citation.end] for part in texts for citation in part.citations]
    assert set(cited) <= {CITED.text}
    assert cited or word == "Also"


def test_a_segment_can_count_from_a_later_run_of_text() -> None:
    text, segment = "Grüße. Zwei.", {"endIndex": 5, "partIndex": 2, "text": "Zwei."}
    assert list(read_citations(grounded(segment), text, [0, 7])) == [Citation(7, 12, "u", "t")]


@pytest.mark.parametrize(
    "segment",
    [
        {},
        {"endIndex": 99},
        {"startIndex": 3, "endIndex": 2},
        {"startIndex": -1, "endIndex": 2, "text": "ab"},
        {"endIndex": "2"},
        {"endIndex": 2, "text": "nowhere"},
        {"startIndex": 50, "endIndex": 51, "text": "a"},  # it is there twice
    ],
)
def test_a_segment_that_is_nowhere_is_left_out(segment: JsonObject) -> None:
    assert list(read_citations(grounded(segment), "ab ab", [0])) == []


# What the strict provider refuses ---------------------------------------------------------------------------------------


def _without(kind: str) -> Any:
    return lambda parts: [part for part in parts if kind not in part]


def _changed(kind: str, **fields: Any) -> Any:
    return lambda parts: [{**part, kind: {**part[kind], **fields}} if kind in part else part for part in parts]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (_without("toolCall"), "there is no call"),
        (_without("toolResponse"), "has no response"),
        (_changed("toolCall", args={"query": "snakes"}), "was changed"),
        (_changed("executableCode", code="print(5)"), "was changed"),
        (_changed("codeExecutionResult", outcome="FINE"), "Invalid value"),
        (lambda parts: [{k: v for k, v in part.items() if k != "thoughtSignature"} for part in parts], "not valid"),
        (lambda parts: parts, ""),
    ],
)
async def test_the_provider_refuses_what_was_changed(change: Any, why: str) -> None:
    async with Provider() as provider:
        model = connect(provider, "gemini-3-pro", [SEARCH, CODE, CITED], [Say("x")], vendor="gemini")
        async with Chat(model, tools=[look, *TOOLS]) as chat:
            await chat.run("Turtles?")
            await chat.run("And?")
        body: JsonObject = {**provider.seen[1].body, "model": "gemini-3-pro"}
    answer = next(content for content in body["contents"] if content["role"] == "model")
    answer["parts"] = change(answer["parts"])
    if not why:
        check_gemini(body, {})
        with pytest.raises(Refused, match="include_server_side"):
            check_gemini({**body, "toolConfig": {}}, {})
        with pytest.raises(Refused, match="cannot be combined"):
            check_gemini({**body, "model": "gemini-2.5-flash", "contents": body["contents"][:1]}, {})
        return
    with pytest.raises(Refused, match=why):
        check_gemini(body, {})


def test_a_text_in_tiny_pieces_is_kept_as_one() -> None:
    decoder = GeminiDecoder(VENDORS["gemini"], Origin("gemini", "m"), {})
    piece = b'{"candidates": [{"content": {"parts": [{"text": "x"}]}}]}'
    decoder.feed(piece, [])
    tracemalloc.start()
    try:
        for _ in range(20_000):
            decoder.feed(piece, [])
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept <= 100_000  # bytes; a list of the pieces has more than a million
