"""The guides on tools that reach out: the numbers, names and tables they have are those of the code."""

from __future__ import annotations

import asyncio
import re
import textwrap
import tomllib
from inspect import signature
from pathlib import Path
from typing import Any, get_args

import pytest
from docs_src.guides.code_sandboxes import main as run_sandboxes
from docs_src.guides.mcp_hotel import server
from docs_src.guides.mcp_trusted import servers

from everturn import Chat, Rule, ToolContext, files, tool
from everturn.calls.tool_context import MAX_NESTED_CALLS, MAX_QUESTIONS
from everturn.core.gate_rows import MAX_LEASE
from everturn.core.gates import GateKind
from everturn.core.options import ClientTool
from everturn.core.parts import ToolPart
from everturn.core.sandbox import GUARANTEES
from everturn.egress import EgressPolicy, FetchLimits
from everturn.mcp import elicitation
from everturn.mcp.config import ServerSpec, load_servers
from everturn.mcp.connection import FIRST_WAIT, LAST_WAIT, RECONNECT, ServerState
from everturn.mcp.trust import TrustFile
from everturn.sandbox import available_sandboxes, bubblewrap_args, monty
from everturn.sandbox.quickjs_ng import QuickJs
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import virtual_files
from everturn.tools.browser import BROWSER_TOOLS
from everturn.tools.files import PROTECTED
from everturn.tools.files.file_system import MAX_FILE_BYTES
from everturn.tools.files.trees import MAX_TOTAL_BYTES, MOST_FILES
from everturn.tools.web import DEFAULT_PAGE_CHARS

ROOT = Path(__file__).parent.parent.parent
MIB = 2**20


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def flat_page(name: str) -> str:
    """A page as one line."""
    return " ".join(page(name).split())


# Files -------------------------------------------------------------------------------------------------------------


def test_the_numbers_on_the_page_of_files_are_those_in_the_code() -> None:
    assert (MOST_FILES, MAX_TOTAL_BYTES, MAX_FILE_BYTES) == (10_000, 64 * MIB, 8 * MIB)
    assert "can have 10,000 files with 64 MiB in total, and a file 8 MiB" in flat_page("guides/files")


def test_a_folder_for_reading_has_the_first_three_tools(tmp_path: Path) -> None:
    names = re.findall(r"`(\w+)`", flat_page("guides/files").split("the *root*: ")[1].split(". Reading")[0])
    assert [tool.spec.name for tool in virtual_files().tools] == names
    assert [tool.spec.name for tool in files(tmp_path, read_only=True).tools] == names[:3]


def test_what_the_page_calls_protected_is() -> None:
    rows = re.findall(
        r"^\| (?:secrets|startup files)[^|]*\|([^|]*)\| (\w+) \| (\w+) \|$", page("guides/files"), re.MULTILINE
    )
    assert len(rows) == 2
    for examples, read, written in rows:
        for pattern in re.findall(r"`([^`]+)`", examples):
            path = f"some/{pattern.replace('*', 'x')}"
            assert bool(PROTECTED.matching_pattern(path, writing=False)) is (read == "no"), path
            assert bool(PROTECTED.matching_pattern(path, writing=True)) is (written == "no"), path


async def test_a_search_leaves_out_what_rules_deny_to_be_read(tmp_path: Path) -> None:
    for name in ("open.txt", "closed.txt"):
        (tmp_path / name).write_text("the word\n", encoding="utf-8")
    model = ScriptedModel(calls(call("search_files", text="the word")), say("Done."))
    rules = [Rule("read_file", "deny", {"path": "closed.txt"})]
    async with Chat(model, tools=[files(tmp_path).enabled()], rules=rules) as chat:
        result = await (await chat.send("Search"))
    part = result.messages[-1].parts[0]
    assert isinstance(part, ToolPart)
    assert part.output is not None
    assert "open.txt" in part.output.text
    assert "closed.txt" not in part.output.text


# Code --------------------------------------------------------------------------------------------------------------


def test_the_guarantees_on_the_page_are_those_there_are() -> None:
    section = page("guides/sandboxes").split("## Sandbox guarantees")[1].split("## Limits")[0]
    assert tuple(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == GUARANTEES


def test_the_limits_on_the_page_of_code_are_those_in_the_code() -> None:
    shell, python = bubblewrap_args.ShellLimits(), monty.MontyLimits()
    assert (python.memory, python.calls, python.keep) == (64 * MIB, 100, 50_000)
    assert (shell.memory, shell.processes, shell.keep) == (512 * MIB, 64, 200_000)
    assert (QuickJs.__init__.__kwdefaults__ or {}) == {"memory": 64 * MIB, "keep": 200_000}
    rows = dict(
        re.findall(r"^\| `(run_\w+)` \|(.* s.*)\|$", page("guides/sandboxes").split("## Limits")[1], re.MULTILINE)
    )
    assert rows == {
        "run_python": " 10 s of computing; waiting for tools does not count | 64 MiB | 50,000 characters; 100 calls ",
        "run_javascript": " 5 s, up to 30 if the model asks | 64 MiB | 200,000 bytes ",
        "run_shell": " 30 s, up to 300 if the model asks | 512 MiB in all, 64 processes | 200,000 bytes of each stream ",
    }


@pytest.mark.live
async def test_the_sandboxes_print_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    lacking = [report.backend for report in available_sandboxes() if report.explain_missing(GUARANTEES, ())]
    if lacking:
        pytest.skip(f"something does not hold here: {', '.join(lacking)}; everturn doctor says why")
    await run_sandboxes()
    (shown,) = re.findall(r"```text\n(run_shell needs approval\n.*?)```", page("guides/sandboxes"), re.DOTALL)
    assert capsys.readouterr().out == shown


# Asking and clients ------------------------------------------------------------------------------------------------


def test_the_numbers_on_the_page_of_asking_are_those_in_the_code() -> None:
    assert (MAX_QUESTIONS, MAX_NESTED_CALLS) == (32, 1_000)
    assert "A call may ask 32 questions" in page("guides/elicitation")
    assert "A call may make 1,000 calls of its own" in page("guides/elicitation")


async def test_a_tool_that_does_not_ask_is_begun_once_and_does_not_find_itself() -> None:
    saved_states: list[str] = []

    @tool(idempotent=True)
    async def note(ctx: ToolContext) -> str:
        ctx.save_state("seen")
        saved_states.append(ctx.saved_state)
        assert "note" not in ctx.tools()
        return "noted"

    async with Chat(ScriptedModel(calls(call("note")), say("Done.")), tools=[note]) as chat:
        await (await chat.send("Go"))
    assert saved_states == [""]


def test_every_kind_of_gate_is_in_the_table() -> None:
    section = page("guides/human-in-the-loop").split("## When approval is requested")[1].split("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(get_args(GateKind))


def test_what_the_page_says_of_clients_is_so() -> None:
    assert MAX_LEASE == 3600
    assert "at most an hour" in page("guides/client-tools")
    assert not (ClientTool("a", "", {}).read_only)
    assert not (ClientTool("a", "", {}).idempotent)
    assert "any other tool (the default)" in page("guides/client-tools")
    for declared in BROWSER_TOOLS:
        assert f"`{declared.name}`" in page("guides/client-tools")


# MCP ---------------------------------------------------------------------------------------------------------------


def test_the_file_of_servers_on_the_page_can_be_read(tmp_path: Path) -> None:
    hotel, block, *_ = re.findall(r"```toml\n(.*?)```", page("guides/mcp"), re.DOTALL)
    (tmp_path / "hotel.toml").write_text(textwrap.dedent(hotel), encoding="utf-8")
    assert [(spec.command, list(spec.args)) for spec in load_servers(tmp_path / "hotel.toml", {})] == [
        ("python", ["mcp_hotel.py"])
    ]
    assert sorted(tomllib.loads(block)["mcp"]) == ["files", "wiki"]
    (tmp_path / "servers.toml").write_text(block, encoding="utf-8")
    local, wiki = load_servers(tmp_path / "servers.toml", {"WIKI_TOKEN": "s3cret"})
    assert (local.command, wiki.cancel, wiki.annotations) == ("npx", "leave", {"search": "read_only"})
    assert "s3cret" not in wiki.line + repr(wiki)
    assert (ServerSpec("a", command="x").timeout, ServerSpec("a", command="x").cancel) == (60, "tell")


def is_there(path: Path) -> bool:
    return path.exists()


async def test_a_server_that_nobody_trusted_is_not_started_until_somebody_does(tmp_path: Path) -> None:
    seen, file, trusted = tmp_path / "seen", tmp_path / "servers.toml", tmp_path / "trust.json"
    file.write_text(f'[mcp.a]\ncommand = "touch"\nargs = ["{seen}"]\n', encoding="utf-8")
    for is_trusted in (False, True):
        mcp_servers = servers(file, trusted)
        if is_trusted:
            TrustFile(trusted).trust(mcp_servers.specs[0], {})
        await mcp_servers.open(lambda origin, tools: None)
        while (status := mcp_servers.status()[0]).state == "connecting":  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)
        await mcp_servers.aclose()
        assert (status.state == "untrusted", is_there(seen)) == (not is_trusted, is_trusted)


def test_the_states_of_a_server_on_the_page_are_those_there_are() -> None:
    section = page("guides/mcp").split("## Health and reconnects")[1].split("## Elicitation and sampling")[0]
    rows = "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE))
    assert set(re.findall(r"`(\w+)`", rows)) - {"state"} == set(get_args(ServerState))


def test_the_numbers_on_the_page_of_servers_are_those_in_the_code() -> None:
    assert (FIRST_WAIT, LAST_WAIT, RECONNECT) == (0.2, 30, 10)
    assert (elicitation.MOST_QUESTIONS, elicitation.MOST_ROUNDS) == (8, 10)
    for text in (
        "after 0.2 to 30 seconds",
        "waits up to ten seconds",
        "A call may ask eight questions in at most ten rounds",
    ):
        assert text in flat_page("guides/mcp")


async def test_the_server_of_the_example_has_its_two_tools() -> None:
    listed: Any = await server.list_tools()
    assert [listed_tool.name for listed_tool in listed] == ["free_rooms", "book_room"]


# The web -----------------------------------------------------------------------------------------------------------


def test_the_limits_on_the_page_of_the_web_are_those_in_the_code() -> None:
    limits = FetchLimits()
    assert (limits.size, limits.total, limits.hops, limits.headers) == (5 * MIB, 30, 5, 100)
    assert DEFAULT_PAGE_CHARS == 20_000
    assert "5 MiB, packed or not, 30 seconds, five redirects and 100 headers" in flat_page("guides/web-access")
    assert "pieces of 20,000 characters" in flat_page("guides/web-access")
    assert signature(EgressPolicy).parameters["ports"].default == (80, 443)
