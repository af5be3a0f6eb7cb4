"""Tools that Azure OpenAI and Vertex AI run: the same `provider_tool`, with the tools, types and limits of the cloud."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace
from tests.models.test_azure import CLASSIC, client_request
from tests.models.test_azure import ENVIRON as AZURE
from tests.models.test_gemini_tools import CITED, CODE, SEARCH, sealed
from tests.models.test_provider_tools import (
    FILES,
    REASONS,
    REMOTE,
    SHELL,
    bodies,
    hosted,
    look,
    parts_of,
    provider_parts,
)
from tests.models.test_vertex import REFUSAL, camel, google_request

from everturn import Chat
from everturn.core.canonical_json import JsonObject
from everturn.core.chunks import ProviderToolChunk, UsageChunk
from everturn.core.events import StepFinished
from everturn.core.parts import Citation, TextPart
from everturn.core.ports import Model
from everturn.core.requests import ModelRequest, RequestMessage, ToolSpec
from everturn.errors import ModelError
from everturn.models.formats.gemini_stream import GeminiDecoder
from everturn.models.formats.responses_server_tools import read_item
from everturn.models.profile import Origin
from everturn.models.registry import get_model
from everturn.models.retry import RetryPolicy
from everturn.models.vendors import VENDORS
from everturn.testing.provider import HostedTool, Provider, Say, Step, Think
from everturn.testing.provider.faults import Refused
from everturn.testing.provider.strict.request import check
from everturn.tools import provider_tool
from everturn.transport.replay import ReplayTransport

PLACE = {"GOOGLE_CLOUD_PROJECT": "acme", "GOOGLE_CLOUD_LOCATION": "europe-west4"}
STORE = {"vertexAiSearch": {"datastore": "projects/acme/locations/eu/collections/c/dataStores/d"}}
RETRIEVED = HostedTool("file_search", '{"query": "turtles"}', "gs://acme/turtles.txt")


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[Provider]:
    async with Provider() as provider:
        yield provider
        assert not provider.refusals


def connect(provider: Provider, name: str, *steps: Step) -> Model:
    """A model of a cloud, under `vendor:name`, or of a vendor's own API."""
    vendor, _, model = name.partition(":")
    provider.script(model, steps, sequence=True)
    base = {"openai": "/v1", "gemini": "/v1beta"}.get(vendor, "")
    profile = replace(VENDORS[vendor], base_url=provider.url + base, prices="")
    return get_model(name, profile=profile, key="k", retry=RetryPolicy(attempts=1), environ=PLACE)


def google_tools(*names: str) -> list[Any]:
    options: dict[str, Any] = {"file_search": STORE}
    return [provider_tool(name, approval="auto", google=options.get(name)) for name in names]


async def warnings_of(chat: Chat, text: str = "Turtles?") -> str:
    turn = await chat.send(text)
    return "; ".join([event.warning async for event in turn.events() if isinstance(event, StepFinished)])


# Azure OpenAI -----------------------------------------------------------------------------------------------------------


async def test_azure_runs_the_tools_of_openai_except_images(provider: Provider) -> None:
    steps = [Think("Hm."), SEARCH, FILES, SHELL, REMOTE, Say("I found: "), CITED]
    model = connect(provider, "azure:deployed", steps, [Say("Bye.")])
    async with Chat(model, tools=hosted()) as chat:
        turn = await chat.send("Turtles?", params=REASONS)
        warnings = [event.warning async for event in turn.events() if isinstance(event, StepFinished)]
        parts = provider_parts(parts_of(await turn.result()))
        assert [part.name for part in parts] == ["web_search", "file_search", "code_execution", "mcp"]
        assert warnings == ["image_generation is not offered: azure:deployed has no such tool that its provider runs"]
        await chat.run("And?", params=REASONS)
    first, second = bodies(provider)
    assert [tool["type"] for tool in first["tools"][1:]] == ["web_search", "file_search", "code_interpreter", "mcp"]
    assert [item["type"] for item in second["input"] if item.get("type", "message") != "message"] == [
        "reasoning", "web_search_call", "file_search_call", "code_interpreter_call", "mcp_call",
    ]  # fmt: skip


async def test_items_of_azure_are_text_for_openai_and_the_other_way_round(provider: Provider) -> None:
    azure = connect(provider, "azure:deployed", [SEARCH, CITED], [Say("x")])
    openai = connect(provider, "openai:gpt", [SHELL, Say("x")])
    async with Chat(azure, tools=hosted()) as chat:
        await chat.run("Turtles?")
        await chat.run("And?", model=openai)
        await chat.run("And again?")
    _, second, third = (json.dumps(body["input"]) for body in bodies(provider))
    assert "[web_search turtles: completed]" in second
    assert "web_search_call" not in second
    assert "web_search_call" in third
    assert "[code_execution echo 4: completed]" in third
    assert "code_interpreter_call" not in third


@pytest.mark.parametrize("version", ["", CLASSIC], ids=["v1", "classic"])
async def test_a_request_with_tools_is_that_of_the_openai_package(version: str) -> None:
    environ = {**AZURE, **({"OPENAI_API_VERSION": version} if version else {})}
    specs = [tool.spec for tool in hosted() if tool is not look]
    transport = ReplayTransport([REFUSAL])
    request = ModelRequest("m", "", [RequestMessage("user", (TextPart("Hi."),))], [], {}, provider_tools=specs)
    with pytest.raises(ModelError):
        async for _ in get_model("azure:gpt-5.2", transport=transport, environ=environ).stream(request):
            pass
    ours = transport.posts[0]
    body = json.loads(ours.body)
    theirs = client_request(body, "/responses", environ)
    assert (ours.url, body) == (str(theirs.url), json.loads(theirs.content))
    assert [tool["type"] for tool in body["tools"]] == ["web_search", "file_search", "code_interpreter", "mcp"]


def test_a_search_of_azure_says_neither_what_was_asked_nor_what_was_found() -> None:
    action: JsonObject = {"type": "search", "query": None, "sources": None}
    item: JsonObject = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": action}
    part = read_item(item, "azure:deployed")
    assert (part.name, part.state, part.title, part.text) == ("web_search", "completed", "", "")


# Vertex AI --------------------------------------------------------------------------------------------------------------


async def test_gemini_3_on_vertex_has_them_beside_functions_and_only_metadata_tells(provider: Provider) -> None:
    model = connect(provider, "vertex:gemini-3-pro", [SEARCH, CODE, RETRIEVED, Say("So: "), CITED], [Say("Bye.")])
    names = ("web_search", "web_fetch", "code_execution", "file_search", "image_generation")
    async with Chat(model, tools=[look, *google_tools(*names)]) as chat:
        turn = await chat.send("Turtles?")
        warnings = [event.warning async for event in turn.events() if isinstance(event, StepFinished)]
        result = await turn.result()
        code, output, search, files = provider_parts(parts_of(result))
        assert warnings == [
            "image_generation is not offered: vertex:gemini-3-pro has no such tool that its provider runs"
        ]
        assert (code.state, output.text, output.id) == ("called", "4\n", code.id)
        assert (search.name, search.state, search.title) == ("web_search", "completed", "turtles")
        assert "gs://" not in search.text
        assert (files.name, files.title, files.text) == ("file_search", "turtles", "a.txt gs://acme/turtles.txt")
        cited = next(part for part in parts_of(result) if isinstance(part, TextPart) and part.citations)
        assert cited.citations == (Citation(4, 4 + len(CITED.text), CITED.url, CITED.title),)
        assert result.usage.provider_calls == 3
        await chat.run("And?")
    first, second = bodies(provider)
    assert [*map(list, first["tools"])] == [
        ["functionDeclarations"], ["googleSearch"], ["urlContext"], ["codeExecution"], ["retrieval"],
    ]  # fmt: skip
    assert first["tools"][-1] == {"retrieval": STORE}
    assert "toolConfig" not in first
    sent = [part for content in second["contents"] if content["role"] == "model" for part in content["parts"]]
    assert [part for part in sent if "text" not in part] == [sealed(code), sealed(output)]


async def test_gemini_2_on_vertex_has_them_without_other_tools_and_code_only_alone(provider: Provider) -> None:
    model = connect(provider, "vertex:gemini-2.5-flash", [SEARCH, CITED], [CODE, Say("4")], [Say("x")])
    async with Chat(model, tools=google_tools("web_search", "code_execution", "web_fetch")) as chat:
        assert await warnings_of(chat) == (
            "code_execution is not offered: vertex:gemini-2.5-flash takes it only in a request without other tools that "
            "its provider runs"
        )
    async with Chat(model, tools=google_tools("code_execution")) as chat:
        assert not await warnings_of(chat)
    async with Chat(model, tools=[look, *google_tools("web_search")]) as chat:
        assert "only in a request without other tools" in await warnings_of(chat)
    first, second, third = (body.get("tools") for body in bodies(provider))
    assert first == [{"googleSearch": {}}, {"urlContext": {}}]
    assert second == [{"codeExecution": {}}]
    assert [*map(list, third or [])] == [["functionDeclarations"]]


async def test_claude_on_vertex_has_the_web_search(provider: Provider) -> None:
    model = connect(provider, "vertex:claude-opus-4-5@20251101", [SEARCH, CITED], [Say("Bye.")])
    names = ("web_search", "web_fetch", "code_execution")
    tools = [provider_tool(name, approval="auto") for name in names]
    async with Chat(model, tools=tools) as chat:
        warnings = await warnings_of(chat)
        await chat.run("And?")
    assert [sentence.split(" ")[0] for sentence in warnings.split("; ")] == ["web_fetch", "code_execution"]
    first, second = bodies(provider)
    assert [(tool["type"], tool["name"]) for tool in first["tools"]] == [("web_search_20250305", "web_search")]
    kinds = [block["type"] for block in second["messages"][1]["content"]]
    assert kinds[:2] == ["server_tool_use", "web_search_tool_result"]


async def test_parts_of_vertex_are_text_for_the_gemini_api_and_the_other_way_round(provider: Provider) -> None:
    vertex = connect(provider, "vertex:gemini-3-pro", [CODE, Say("x")], [Say("y")])
    gemini = connect(provider, "gemini:gemini-3-flash", [SEARCH, CITED])
    async with Chat(vertex, tools=google_tools("web_search", "code_execution")) as chat:
        await chat.run("Turtles?")
        await chat.run("And?", model=gemini)
        await chat.run("And again?")
    _, second, third = (json.dumps(body["contents"]) for body in bodies(provider))
    assert "executableCode" not in second
    assert "[code_execution" in second
    assert "executableCode" in third
    assert "toolCall" not in third
    assert "[web_search turtles: called]" in third


@pytest.mark.parametrize("with_functions", [False, True])
async def test_a_request_with_tools_is_that_of_google_genai(with_functions: bool) -> None:
    searches = provider_tool("web_search", google={"type": "enterpriseWebSearch", "excludeDomains": ["example.com"]})
    specs = [tool.spec for tool in (searches, *google_tools("web_fetch", "code_execution", "file_search"))]
    own = ToolSpec(
        "look", "Look.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    )
    request = ModelRequest(
        "m",
        "Be brief.",
        [RequestMessage("user", (TextPart("Hi."),))],
        [own] if with_functions else [],
        {"max_tokens": 64, "tool_choice": "look"} if with_functions else {"max_tokens": 64},
        provider_tools=specs,
    )
    transport = ReplayTransport([REFUSAL])
    with pytest.raises(ModelError):
        async for _ in get_model("vertex:gemini-3-pro", transport=transport, environ=PLACE, key="k").stream(request):
            pass
    body = json.loads(transport.posts[0].body)
    theirs = camel(json.loads(google_request("gemini-3-pro", {"toolConfig": {}, **body}, "europe-west4").content))
    # google-genai moves the functions to the end.
    ours, theirs = (
        [tool for tool in tools if "functionDeclarations" not in tool] for tools in (body["tools"], theirs["tools"])
    )
    assert ours == theirs
    assert ours[0] == {"enterpriseWebSearch": {"excludeDomains": ["example.com"]}}
    assert ours[-1] == {"retrieval": STORE}


def test_a_data_store_is_reported_also_without_its_queries() -> None:
    chunk = {"retrievedContext": {"uri": "gs://a", "title": "a.txt"}}
    event = {"candidates": [{"finishReason": "STOP", "groundingMetadata": {"groundingChunks": [chunk]}}]}
    decoder = GeminiDecoder(VENDORS["vertex"], Origin("vertex", "gemini-3-pro"), {})
    out: list[Any] = []
    decoder.feed(json.dumps({**event, "usageMetadata": {"promptTokenCount": 1}}).encode(), out)
    decoder.end(out)
    (part,) = (chunk.part for chunk in out if isinstance(chunk, ProviderToolChunk))
    assert (part.name, part.title, part.text) == ("file_search", "", "a.txt gs://a")
    assert next(chunk.usage.provider_calls for chunk in out if isinstance(chunk, UsageChunk)) == 1


# What the strict provider refuses ---------------------------------------------------------------------------------------

HI: JsonObject = {"contents": [{"role": "user", "parts": [{"text": "Hi."}]}]}
FUNCTIONS: JsonObject = {"functionDeclarations": [{"name": "look", "description": "Look."}]}
FLAG: JsonObject = {"includeServerSideToolInvocations": True}


@pytest.mark.parametrize(
    ("cloud", "model", "fields", "why"),
    [
        ("vertex", "gemini-3-pro", {"tools": [FUNCTIONS, {"googleSearch": {}}]}, ""),
        ("vertex", "gemini-3-pro", {"tools": [{"retrieval": STORE}]}, ""),
        ("vertex", "gemini-2.5-flash", {"tools": [{"googleSearch": {}}, {"urlContext": {}}]}, ""),
        ("vertex", "gemini-3-pro", {"tools": [{"googleSearch": {}}], "toolConfig": FLAG}, "includeServerSide"),
        ("vertex", "gemini-2.5-flash", {"tools": [FUNCTIONS, {"googleSearch": {}}]}, "all search tools"),
        ("vertex", "gemini-2.5-flash", {"tools": [{"codeExecution": {}}, {"googleSearch": {}}]}, "all search tools"),
        ("vertex", "gemini-3-pro", {"tools": [{"fileSearch": {}}]}, 'Unknown name "fileSearch"'),
        ("", "gemini-3-pro", {"tools": [{"retrieval": STORE}]}, 'Unknown name "retrieval"'),
        ("", "gemini-3-pro", {"tools": [{"enterpriseWebSearch": {}}]}, 'Unknown name "enterpriseWebSearch"'),
    ],
)
def test_vertex_and_the_gemini_api_refuse_what_only_the_other_has(
    cloud: Any, model: str, fields: JsonObject, why: str
) -> None:
    body = {**HI, **fields, "model": model}
    if not why:
        check("gemini", body, {}, cloud)
        return
    with pytest.raises(Refused, match=why):
        check("gemini", body, {}, cloud)


def test_azure_refuses_images_in_a_stream_and_vertex_other_tools_of_claude() -> None:
    body: JsonObject = {"model": "m", "stream": True, "input": "Hi.", "tools": [{"type": "image_generation"}]}
    check("responses", body, {})
    with pytest.raises(Refused, match="not supported in streaming mode"):
        check("responses", body, {}, "azure")
    tool = {"type": "code_execution_20250825", "name": "code_execution"}
    claude: JsonObject = {
        "model": "claude", "max_tokens": 9, "stream": True, "tools": [tool],
        "messages": [{"role": "user", "content": "Hi."}],
    }  # fmt: skip
    check("messages", claude, {"anthropic-version": "2023-06-01"})
    with pytest.raises(Refused, match="not available on Vertex AI"):
        check("messages", claude, {}, "vertex")
