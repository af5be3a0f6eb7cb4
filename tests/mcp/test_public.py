"""Two servers that others wrote and many use; `scripts/mcp-servers` installs them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from everturn.core.gates import GateResolution
from everturn.errors import ToolError
from everturn.mcp.config import ServerSpec
from tests.helpers.hostile_mcp import Person, house

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "everturn" / "mcp-servers" / "node_modules"
SCOPE = CACHE / "@modelcontextprotocol"
pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not SCOPE.exists(), reason="the servers are not installed: run scripts/mcp-servers"),
    pytest.mark.skipif(shutil.which("node") is None, reason="there is no node here"),
]


def public(name: str, *args: str) -> ServerSpec:
    return ServerSpec("h", command="node", args=(str(SCOPE / name / "dist" / "index.js"), *args))


async def test_the_everything_server_echoes_adds_and_draws():
    person = Person()
    async with house(public("server-everything")) as home:
        assert "hello" in (await home.call("echo", message="hello")).text
        assert "5" in (await home.call("get-sum", a=2, b=3)).text
        image = await home.call("get-tiny-image", person)
        assert [file.media_type for file in image.attachments] == ["image/png"]
        assert home.status().problems == ()


async def test_the_everything_server_tells_of_its_progress():
    person = Person()
    async with house(public("server-everything")) as home:
        await home.call("trigger-long-running-operation", person, duration=1, steps=4)
    assert any("of 4" in text for text in person.said)


async def test_the_everything_server_asks_a_person_and_a_model():
    person = Person(lambda question: GateResolution(False, reason="no"))
    async with house(public("server-everything")) as home:
        assert "declin" in (await home.call("trigger-elicitation-request", person)).text.lower()
        assert len(person.questions) == 1
        allowed = Person(lambda question: GateResolution(True))
        assert "hi" in (await home.call("trigger-sampling-request", allowed, prompt="say hi", maxTokens=10)).text
        assert len(allowed.turns) == 1


async def test_the_filesystem_server_reads_and_writes_inside_its_folder(tmp_path: Path):
    root = tmp_path
    async with house(public("server-filesystem", str(root))) as home:
        await home.call("write_file", path=str(root / "a.txt"), content="hello")
        assert "hello" in (await home.call("read_text_file", path=str(root / "a.txt"))).text
        assert home.tool("read_text_file").spec.read_only
        with pytest.raises(ToolError):
            await home.call("read_text_file", path="/etc/passwd")
