"""Prompts and resources of an MCP server that was made with the SDK."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from everturn.errors import ConfigError, ToolError
from everturn.mcp.config import ServerSpec
from everturn.mcp.offers import (
    LONGEST_URI,
    MAX_CONTENT,
    MAX_FILE,
    MOST_PROMPTS,
    MOST_RESOURCES,
    convert_prompt,
    convert_resource,
    is_uri,
    read_prompts,
    read_resources,
)
from everturn.mcp.servers import McpServers
from everturn.mcp.trust import TrustFile
from tests.helpers.hostile_mcp import hostile, house
from tests.helpers.offering_mcp_server import offering_server


async def test_prompts_and_resources_of_a_server_are_listed_and_read(tmp_path: Path):
    async with offering_server() as url:
        async with house(ServerSpec("notes", url=url)) as home:
            await _check_lists(home.servers)
            await _check_hostile_content(home.servers)
            await _check_refusals(home.servers)
        # A server that is not trusted offers nothing.
        untrusted = TrustFile(tmp_path / "trust.json")
        async with house(ServerSpec("notes", url=url), trust=untrusted, ready=False) as home:
            await home.until(lambda: home.status("notes").state == "untrusted")
            assert await home.servers.offers() == {}
            with pytest.raises(ToolError, match="not connected"):
                await home.servers.read_resource("notes", "notes://today")
            with pytest.raises(ToolError, match="not connected"):
                await home.servers.get_prompt("notes", "plain", {})


async def _check_lists(servers: McpServers) -> None:
    offers = (await servers.offers())["notes"]
    review = next(prompt for prompt in offers.prompts if prompt.name == "review")
    assert [(argument.name, argument.required) for argument in review.arguments] == [("path", True), ("focus", False)]
    assert review.description == "Review code with care"
    assert {resource.uri for resource in offers.resources} >= {"notes://today", "notes://picture"}
    assert (await servers.get_prompt("notes", "review", {"path": "a.py"})).text == "Review a.py for bugs."
    assert (await servers.read_resource("notes", "notes://today")).text == "Buy milk."
    picture = await servers.read_resource("notes", "notes://picture")
    assert [(file.data[:4], file.media_type) for file in picture.files] == [(b"\x89PNG", "image/png")]


async def _check_hostile_content(servers: McpServers) -> None:
    prompt = (await servers.get_prompt("notes", "hostile", {})).text
    assert prompt.startswith("safe gnihtemos esle[2J")
    assert "it is longer than" in prompt[-80:]
    assert len(prompt) < MAX_CONTENT + 100
    assert (await servers.read_resource("notes", "notes://hostile")).text == "safe gnihtemos esle"
    assert len((await servers.read_resource("notes", "notes://large")).text) < MAX_CONTENT + 100
    # A URI that looks like a path is a name at the server; no file of this machine is opened.
    assert (await servers.read_resource("notes", "file:///etc/passwd")).text == "not the file of this machine"


async def _check_refusals(servers: McpServers) -> None:
    with pytest.raises(ConfigError, match="needs: path"):
        await servers.get_prompt("notes", "review", {"focus": "style"})
    with pytest.raises(ConfigError, match="no argument 'depth'"):
        await servers.get_prompt("notes", "review", {"path": "a", "depth": "1"})
    with pytest.raises(ConfigError, match="at most"):
        await servers.get_prompt("notes", "review", {"path": "a" * 20_000})
    with pytest.raises(ConfigError, match="no prompt of this name"):
        await servers.get_prompt("notes", "other", {})
    with pytest.raises(ToolError, match="server notes"):
        await servers.read_resource("notes", "notes://nowhere")
    with pytest.raises(ConfigError, match="not the URI"):
        await servers.read_resource("notes", "../../etc/passwd")


@pytest.mark.parametrize(
    "uri", ["", "/etc/passwd", "../../etc/passwd", "notes:", "a b:c", "notes://\u202ex", "x:" + "y" * LONGEST_URI, 7]
)
def test_what_is_no_uri_is_not_sent(uri: Any):
    assert not is_uri(uri)


async def test_a_server_without_prompts_and_resources_has_none(ledger: Path):
    async with house(hostile(ledger)) as home:
        offers = (await home.servers.offers())["h"]
        assert (offers.prompts, offers.resources, offers.problems) == ((), (), ())


@pytest.mark.parametrize(
    "row",
    [
        "nothing", {}, {"name": 7}, {"name": ""}, {"name": "a b"}, {"name": "a\u202eb"}, {"name": "x" * 129}, {"name": "\x07"},
        {"name": "a", "arguments": "b"}, {"name": "a", "arguments": [{"name": "b=c"}]}, {"name": "a", "arguments": ["b"]},
        {"name": "a", "arguments": [{"name": "b"}, {"name": "b"}]}, {"name": "a", "arguments": [{"name": str(n)} for n in range(21)]},
    ],
)  # fmt: skip
def test_an_invalid_prompt_is_left_out_and_the_others_stay(row: Any):
    prompts, problems = read_prompts([row, {"name": "good", "title": "Good"}])
    assert [(prompt.name, prompt.description) for prompt in prompts] == [("good", "Good")]
    assert len(problems) == 1


def test_lists_are_limited():
    assert read_prompts("none") == ([], ["its list of prompts is no list"])
    many = read_prompts([{"name": f"p{n}"} for n in range(MOST_PROMPTS + 5)])
    assert (len(many[0]), len(many[1])) == (MOST_PROMPTS, 1)
    rows = [{"uri": f"a:{n}", "description": "\u202e" + "x" * 9_000} for n in range(MOST_RESOURCES + 1)]
    resources, problems = read_resources(rows)
    assert (len(resources), len(problems), len(resources[0].description)) == (MOST_RESOURCES, 1, 500)
    assert read_resources([{"uri": "a:b"}, {"uri": "a:b"}, {"uri": "/etc/shadow"}])[1] == [
        "resource 'a:b': it is listed twice; the first is used",
        "resource number 3: its URI is invalid: a scheme and at most 1000 visible characters without blanks",
    ]


def test_contents_that_cannot_be_used_are_named():
    blocks = [
        {"role": "user", "content": {"type": "image", "data": "x"}},
        {"role": "assistant", "content": {"type": "text", "text": "Yes."}},
        {"role": "user", "content": {"type": "resource", "resource": {"uri": "a:b", "text": "in it"}}},
        "nothing",
    ]
    assert convert_prompt({"messages": blocks}).text.split("\n\n") == [
        "[content of the kind 'image' is left out]",
        "[assistant]\nYes.",
        "[a:b]\nin it",
        "[content of the kind 'None' is left out]",
    ]
    read = convert_resource(
        {"contents": [{"blob": "!!"}, {"blob": "A" * (2 * MAX_FILE)}, {}, {"blob": "aGk=", "uri": "a:/b/c.txt"}]}
    )
    assert (read.text.count("[content is left out"), [file.name for file in read.files]) == (3, ["c.txt"])
    assert convert_resource({}).text == convert_prompt({}).text == ""
