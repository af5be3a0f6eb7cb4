"""`web_search` against scripted search services."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.loopback_servers import Listeners, listening, moved, reply

from everturn import Chat
from everturn.config.folder.agent import FolderTools, make_folder_tools
from everturn.config.folder.project import Project
from everturn.config.load import load_config
from everturn.config.schema import AssistantTable
from everturn.core.parts import Output
from everturn.core.ports import ToolContext
from everturn.errors import BadArguments, ConfigError, FetchFailed
from everturn.events import GateOpened
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools.web.search import SearchService, WebSearch, web_search

CONTEXT = ToolContext(session="s", turn="t", call="c", key="k", progress=lambda _: None)
PAGE = {"title": "The <b>Docs</b> &amp; more", "url": "https://example.org/a", "content": "An\x1b extract\u202e."}
FOUND = "1. The Docs & more\n   https://example.org/a\n   An extract ."


@asynccontextmanager
async def service(
    kind: SearchService, answer: Any, path: str, **head: str
) -> AsyncGenerator[tuple[WebSearch, Listeners]]:
    """A tool, and the scripted service that it asks."""
    async with listening() as listeners:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        listeners.answers[path.partition("?")[0]] = reply(body, Content_Type="application/json", **head)
        base = f"http://127.0.0.1:{listeners.port}"
        yield web_search(kind, url=base if kind == "searxng" else f"{base}/s", key="secret-key"), listeners


async def search(tool: WebSearch, **arguments: Any) -> Output:
    output = await tool.run({"query": "how  to", **arguments}, CONTEXT)
    assert isinstance(output, Output)
    return output


def test_what_it_is_says_what_rules_and_people_must_know() -> None:
    spec = web_search("brave", key="k").spec
    assert (spec.name, spec.read_only, spec.approval, spec.egress, spec.untrusted) == (
        "web_search",
        True,
        "ask",
        True,
        True,
    )


@pytest.mark.parametrize(
    ("kind", "answer", "path"),
    [
        ("searxng", {"results": [PAGE]}, "/search?q=how+to&format=json"),
        (
            "brave",
            {"web": {"results": [{**PAGE, "description": PAGE["content"], "content": None}]}},
            "/s?q=how+to&count=8",
        ),
        ("tavily", {"results": [PAGE]}, "/s"),
    ],
)
async def test_each_service_is_asked_in_its_own_way(kind: SearchService, answer: Any, path: str) -> None:
    async with service(kind, answer, path) as (tool, listeners):
        output = await search(tool)
        assert output.text == FOUND
        (_, requested_path, headers) = listeners.asked[0]
        assert requested_path == path
        sent = {"brave": headers.get("x-subscription-token"), "tavily": headers.get("authorization")}.get(kind, "")
        assert (sent or "").removeprefix("Bearer ") == ("" if kind == "searxng" else "secret-key")
        assert output.metadata is not None
        assert output.metadata["results"] == ["https://example.org/a"]
        assert "secret-key" not in repr(output)


@pytest.mark.parametrize(
    "answer",
    [
        {"results": "x"},
        {
            "results": [
                1,
                None,
                {"title": "t"},
                {"url": "javascript:alert(1)"},
                {"url": "file:///etc/passwd"},
                {"url": 3},
            ]
        },
        {"web": {"results": {}}},
        [],
        {},
    ],
)
async def test_what_is_not_a_page_is_left_out(answer: Any) -> None:
    async with service("searxng", answer, "/search?q=how+to&format=json") as (tool, _):
        assert (await search(tool)).text == "Nothing was found."


async def test_long_and_many_results_are_cut() -> None:
    rows = [{"title": "t" * 5000, "url": f"https://example.org/{at}", "content": "c" * 20_000} for at in range(40)]
    async with service("searxng", {"results": rows}, "/search?q=how+to&format=json") as (tool, _):
        output = await search(tool, count=3)
        assert output.text.count("https://example.org/") == 3
        assert len(output.text) < 5_000


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (reply(b"<html>", Content_Type="text/html"), "did not answer with JSON; does its settings.yml allow"),
        (reply(b"", "403 Forbidden"), "status 403; does its settings.yml allow"),
        (reply(b"", "429 Too Many Requests"), "status 429; its limit is reached"),
        (reply(b"[" * 200_000, Content_Type="application/json"), "did not answer with JSON"),
        (moved("http://169.254.169.254/latest"), "status 302"),
        (reply(b"x" * 3_000_000), "could not be asked"),
    ],
)
async def test_a_service_that_fails_says_what_to_do(answer: Any, words: str) -> None:
    async with listening() as listeners:
        listeners.answers["/search"] = answer
        tool = web_search("searxng", url=f"http://127.0.0.1:{listeners.port}/")
        with pytest.raises(FetchFailed, match=words):
            await search(tool)


@pytest.mark.parametrize(
    "arguments", [{"query": ""}, {"query": 3}, {"query": "x" * 401}, {"count": 0}, {"count": True}, {"engine": "x"}]
)
def test_arguments_are_checked(arguments: dict[str, Any]) -> None:
    with pytest.raises(BadArguments):
        web_search("brave", key="k").validate({"query": "x", **arguments})


@pytest.mark.parametrize(
    ("kind", "options", "words"),
    [
        ("searxng", {}, "needs the address"),
        ("brave", {}, "BRAVE_API_KEY"),
        ("tavily", {}, "TAVILY_API_KEY"),
        ("google", {}, "there is: searxng, brave, tavily"),
        ("searxng", {"url": "file:///etc/passwd"}, "not an address"),
    ],
)
def test_a_service_that_lacks_something_says_what(kind: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        web_search(kind, **options)


async def test_a_search_asks_before_anything_is_sent() -> None:
    async with service("searxng", {"results": [PAGE]}, "/search?q=how+to&format=json") as (tool, listeners):
        model = ScriptedModel([calls(call("web_search", query="how to")), say("done")])
        async with Chat(model, tools=[tool]) as chat:
            turn = await chat.send("search")
            async for event in turn:
                if isinstance(event, GateOpened):
                    assert listeners.asked == []
                    await turn.answer(event.gate, allow="once")
            assert len(listeners.asked) == 1


def folder_tools(tmp_path: Path, environ: dict[str, str], **settings: Any) -> FolderTools:
    table = AssistantTable(shell=False, **settings)
    known = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), **environ}
    return make_folder_tools(Project(tmp_path, tmp_path), table, load_config(None), known)


def test_a_folder_has_it_only_if_it_is_configured(tmp_path: Path) -> None:
    def names(tools: FolderTools) -> list[str]:
        return [tool.spec.name for tool in tools.tools if isinstance(tool, WebSearch)]

    assert names(folder_tools(tmp_path, {})) == []
    assert names(folder_tools(tmp_path, {"BRAVE_API_KEY": "k"}, search="brave")) == ["web_search"]
    missing = folder_tools(tmp_path, {}, search="brave")
    assert names(missing) == []
    assert any("BRAVE_API_KEY" in note for note in missing.notes)
