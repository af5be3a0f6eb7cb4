"""Calls to a server that does what it is told: results, limits, and what is known when it dies."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, McpServers
from everturn.core.ports import Tool
from everturn.errors import BadArguments, OutcomeUnknown, ToolError, ToolTimeout
from everturn.mcp import ServerSpec
from everturn.testing import ScriptedModel
from tests.helpers.hostile_mcp import House, Person, hostile, house, noted

both = pytest.mark.parametrize("mode", ["plain", "modern"])


@both
async def test_a_call_reaches_the_server_once_and_carries_its_key(ledger: Path, mode: str):
    async with house(hostile(ledger, mode)) as home:
        output = await home.call("echo", text="hello")
    assert (output.text, output.untrusted) == ("hello", True)
    assert noted(ledger) == ["echo"]
    assert noted(ledger, "key") == ["key-c1"]


async def test_a_tool_says_where_it_comes_from_and_what_a_repeat_would_do(ledger: Path):
    spec = hostile(ledger, annotations={"fails": "read_only", "slow": "at_most_once"})
    async with house(spec, hostile(ledger, "modern", "m")) as home:
        echo, slow, die, fails = (home.tool(name).spec for name in ("echo", "slow", "die", "fails"))
        assert (echo.origin, echo.untrusted, echo.egress, echo.approval) == ("mcp:h", True, False, "ask")
        assert [tool.read_only for tool in (echo, slow, die, fails)] == [True, False, False, True]
        assert slow.at_most_once
        assert die.at_most_once
        assert (echo.resumable, home.tool("echo", "m").spec.resumable) == (False, True)


async def test_arguments_are_held_against_the_schema_before_anybody_is_asked(ledger: Path):
    async with house(hostile(ledger)) as home:
        with pytest.raises(BadArguments, match="n: it must be integer"):
            home.tool("echo").validate({"n": "seven"})


async def test_what_a_server_says_of_a_failure_is_the_error(ledger: Path):
    async with house(hostile(ledger)) as home:
        with pytest.raises(ToolError, match="no such thing"):
            await home.call("fails")
        with pytest.raises(ToolError, match="could not do own_error: out of coffee"):
            await home.call("own_error")
        assert home.status().connects == 1


async def test_pictures_and_files_are_attached_and_unknown_pieces_are_named(ledger: Path):
    person = Person()
    async with house(hostile(ledger)) as home:
        output = await home.call("picture", person)
        odd = await home.call("odd")
    assert [(file.media_type, file.size, file.name) for file in output.attachments] == [
        ("image/png", 5, ""),
        ("a/b", 3, "b.bin"),
    ]
    assert list(person.blobs.kept.values()) == [b"hello", b"\0\1\2"]
    assert "no base64" in output.text
    assert "[a: file:///a]" in output.text
    assert "hologram" in odd.text
    assert odd.metadata == {"structured": {"a": 1}}


@both
async def test_progress_is_shown_and_gives_a_call_more_time(ledger: Path, mode: str):
    person = Person()
    async with house(hostile(ledger, mode, timeout=0.6)) as home:
        await home.call("progress", person, seconds=0.2)
    # Only the latest is shown where two arrive at once; a call of a second has outlived its limit of 0.6 s.
    assert len(person.said) >= 2
    assert set(person.said) <= {f"{n} of 5" for n in range(6)}


@both
async def test_a_call_ends_at_its_limit_and_the_server_is_told(ledger: Path, mode: str):
    async with house(hostile(ledger, mode, timeout=0.3)) as home:
        with pytest.raises(ToolTimeout, match=r"did not answer within 0.3 s; it may have been done"):
            await home.call("never")
        await home.until(lambda: bool(noted(ledger, "cancelled")))
        assert (await home.call("echo", text="on")).text == "on"
        assert home.status().connects == 1


@pytest.mark.parametrize(("cancel", "notifications"), [("tell", 1), ("leave", 0)])
async def test_a_server_is_told_of_a_cancelled_call_only_by_policy(ledger: Path, cancel: Any, notifications: int):
    async with house(hostile(ledger, cancel=cancel)) as home:
        call = asyncio.create_task(home.call("slow", seconds=5))
        await home.until(lambda: bool(noted(ledger)))
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await home.call("echo")  # in line behind whatever was sent before
        assert len(noted(ledger, "cancelled")) == notifications


async def test_two_hundred_calls_at_once_each_have_their_own_answer(ledger: Path):
    async with house(hostile(ledger)) as home:
        outputs = await asyncio.gather(*(home.call("slow", text=str(at), seconds=0.05) for at in range(200)))
        assert [output.text for output in outputs] == [str(at) for at in range(200)]
    assert len(noted(ledger)) == 200


async def test_answers_that_come_twice_or_to_nobody_are_ignored(ledger: Path):
    async with house(hostile(ledger)) as home:
        assert (await home.call("twice", text="one")).text == "one"
        assert (await home.call("wrong_id", text="mine")).text == "mine"
        assert (await home.call("echo", text="two")).text == "two"
        assert home.status().connects == 1


# It dies --------------------------------------------------------------------------------------------------------


async def kill(home: House) -> None:
    os.kill(home.status().pid, signal.SIGKILL)


async def test_killed_before_a_call_it_is_started_again_and_the_call_is_done_once(ledger: Path):
    async with house(hostile(ledger)) as home:
        await kill(home)
        await home.until(lambda: home.status().state == "down")
        assert "killed by signal 9" in home.status().reason
        assert (await home.call("echo", text="back")).text == "back"
        assert home.published == 1  # its tools were there all the time
    assert noted(ledger) == ["echo"]


@both
async def test_killed_during_a_call_its_outcome_is_unknown_and_it_is_not_sent_again(ledger: Path, mode: str):
    async with house(hostile(ledger, mode)) as home:
        with pytest.raises(OutcomeUnknown, match="outcome unknown"):
            await home.call("die")
        assert (await home.call("echo", text="back")).text == "back"
    assert noted(ledger) == ["die", "echo"]


async def test_a_call_that_may_be_repeated_is_not_repeated_by_us_either(ledger: Path):
    async with house(hostile(ledger, annotations={"die": "read_only"})) as home:
        with pytest.raises(ToolError, match="it is safe to call it again") as caught:
            await home.call("die")
        assert not isinstance(caught.value, OutcomeUnknown)
        await home.call("echo")
    assert noted(ledger) == ["die", "echo"]


async def test_killed_after_a_call_its_answer_counts(ledger: Path):
    async with house(hostile(ledger)) as home:
        assert (await home.call("die_after", text="done")).text == "done"
        # A call that is written while it dies is one that was sent: only behind that is it sure to be done.
        await home.until(lambda: home.status().connects == 2)
        assert (await home.call("echo", text="back")).text == "back"
    assert noted(ledger) == ["die_after", "echo"]


async def test_a_server_that_stays_away_fails_a_call_within_its_limit(ledger: Path, tmp_path: Path):
    async with house(hostile(ledger, timeout=0.5)) as home:
        echo: Tool = home.tool("echo")
        home.link.spec = hostile(ledger, "dead", timeout=0.5)
        await kill(home)
        await home.until(lambda: "code 3" in home.status().reason)
        with pytest.raises(
            ToolError, match=r"server h is not reachable: it exited with code 3; it said: cannot find my l"
        ):
            await home.call("echo")
        assert home.tool("echo") is echo
        assert home.status().state == "down"


async def test_many_calls_to_a_dying_server_are_sent_once_each_and_one_connection_is_made(ledger: Path):
    async with house(hostile(ledger)) as home:
        calls = [asyncio.create_task(home.call("slow", text=str(at), seconds=0.4)) for at in range(20)]
        await home.until(lambda: len(noted(ledger)) == 20)
        await kill(home)
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert all(isinstance(result, ToolError) for result in results)
        assert (await home.call("echo", text="back")).text == "back"
        assert home.status().connects == 2
    arguments = [row["text"] for row in noted(ledger, "arguments") if "seconds" in row]
    assert sorted(arguments, key=int) == [str(at) for at in range(20)]


async def test_a_server_sees_nothing_of_our_environment(ledger: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVERTURN_SECRET", "s3cret")
    async with house(hostile(ledger, env={"GIVEN": "yes"})) as home:
        seen = json.loads((await home.call("env")).text)
    assert seen["GIVEN"] == "yes"
    assert set(seen) <= {"PATH", "HOME", "LANG", "GIVEN", "LC_CTYPE"}


async def test_a_program_is_warned_of_a_server_without_tools(caplog: pytest.LogCaptureFixture) -> None:
    servers = McpServers([ServerSpec("hotel", command="no-such-program-anywhere")], timeout=60)
    async with Chat(ScriptedModel("Hello."), tools=[servers]) as chat:
        assert (await (await chat.send("Hi"))).text == "Hello."
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "everturn.mcp.servers"]
    assert warning.startswith("MCP server hotel has no tools yet: it is ")
    assert "no-such-program-anywhere" in warning
    assert "McpServers(…, timeout=…) sets how long an app waits" in warning
