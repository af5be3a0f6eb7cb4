"""A server that means harm, or means well and fails: every call ends, and everything else goes on."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from everturn.errors import OutcomeUnknown, ToolError, ToolTimeout
from everturn.mcp import connection, session
from everturn.mcp.config import ServerSpec
from everturn.mcp.servers import QUICK_START_TIMEOUT, McpServers
from tests.helpers.hostile_mcp import hostile, house, noted


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_one_that_never_answers_is_given_up_and_tried_again(ledger: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "PROBE", 0.1)
    monkeypatch.setattr(session, "INITIALIZE", 0.1)
    async with house(hostile(ledger, "mute"), ready=False) as home:
        await home.until(lambda: home.status().connects > 1)
        assert "did not answer" in home.status().reason
        assert home.tools == {}


async def test_one_that_exits_at_once_says_why(ledger: Path):
    async with house(hostile(ledger, "dead"), ready=False) as home:
        await home.until(lambda: home.status().state == "down")
        assert home.status().reason == "it exited with code 3; it said: cannot find my licence"
        assert home.status().stderr == "cannot find my licence\n"


async def test_a_program_that_is_not_there_fails_until_somebody_mends_it(ledger: Path):
    async with house(ServerSpec("h", command="no-such-program"), ready=False) as home:
        await home.until(lambda: home.status().state == "failed")
        assert "install it" in home.status().reason
        home.link.spec = hostile(ledger)
        home.servers.reconnect("h")
        await home.until(lambda: home.status().state == "ready")


async def test_one_that_hangs_is_noticed_and_replaced(ledger: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "INITIALIZE", 0.3)
    async with house(hostile(ledger, timeout=0.3)) as home:
        before = home.status().pid
        os.kill(before, 19)  # SIGSTOP
        with pytest.raises(ToolTimeout):
            await home.call("echo")
        await home.until(lambda: home.status().state == "ready" and home.status().pid != before)
        assert (await home.call("echo", text="on")).text == "on"
        assert not is_alive(before)


async def test_one_that_hangs_while_nobody_calls_is_noticed_too(ledger: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "INITIALIZE", 0.3)
    monkeypatch.setattr(connection, "WATCH", 0.2)
    async with house(hostile(ledger)) as home:
        before = home.status().pid
        os.kill(before, 19)  # SIGSTOP
        await home.until(lambda: home.status().state == "ready" and home.status().pid != before)


async def test_one_that_closes_its_output_is_lost(ledger: Path):
    async with house(hostile(ledger)) as home:
        with pytest.raises(OutcomeUnknown):
            await home.call("closes")
        assert (await home.call("echo", text="on")).text == "on"
    assert noted(ledger) == ["closes", "echo"]


async def test_garbage_and_bytes_that_are_no_text_harm_nothing(ledger: Path):
    async with house(hostile(ledger)) as home:
        assert (await home.call("garbled")).text == "caf�"
        assert home.status().connects == 1


async def test_a_flood_on_the_error_output_is_read_away_and_its_end_is_kept(ledger: Path):
    async with house(hostile(ledger, "stderr_flood")) as home:
        await home.until(lambda: home.status().stderr.endswith("the end\n"))
        assert len(home.status().stderr) <= 4096
        assert (await home.call("echo", text="on")).text == "on"


async def test_a_flood_of_changes_is_one_change(ledger: Path):
    async with house(hostile(ledger)) as home:
        await home.call("notify_flood")
        assert (await home.call("echo", text="on")).text == "on"
        await asyncio.sleep(0.3)
        assert home.published == 1


async def test_bad_tools_are_left_out_and_said_to_be(ledger: Path):
    async with house(hostile(ledger, "bad_tools")) as home:
        names = set(home.tools["mcp:h"])
        long = next(name for name in names if "xxx" in name)
        assert names - {long} == {
            "h_echo",
            "h_get_user",
            next(name for name in names if name.startswith("h_get_user_")),
        }
        assert len(long) == 64
        problems = "\n".join(home.status().problems)
        for name in ("no_schema", "wrong_type", "lost", "7", "bell", "number 7", "echo"):
            assert name in problems
        assert (await home.call("echo", text="on")).text == "on"


async def test_one_that_comes_back_as_somebody_else_says_so_and_its_tools_stay(ledger: Path):
    async with house(hostile(ledger, "identity")) as home:
        before = home.status().title
        os.kill(home.status().pid, 9)
        await home.until(lambda: home.status().state == "ready" and home.status().connects == 2)
        assert before != home.status().title
        assert f"before, it was {before!r}" in home.status().problems[-1]
        assert home.published == 1


async def test_a_tool_that_changed_stays_and_says_so_until_it_is_trusted_again(ledger: Path):
    async with house(hostile(ledger)) as home:
        await home.call("change")
        await home.until(lambda: home.status().changed == ("h_echo",))
        assert "It does" not in home.tool("echo").spec.description
        with pytest.raises(ToolError, match="trusts it again"):
            await home.call("echo")
        assert noted(ledger) == ["change"]
        await home.servers.trust("h")
        await home.until(lambda: not home.status().changed)
        assert "more" in home.tool("echo").spec.schema["properties"]
        assert (await home.call("echo", text="on")).text == "on"


class Nobody:
    """Trusts nothing until told."""

    def __init__(self) -> None:
        self.is_trusted = False

    def launch(self, spec: ServerSpec) -> bool:
        return self.is_trusted

    def tools(self, server: str, hashes: object) -> set[str]:
        return {"echo"}

    def trust(self, spec: ServerSpec, hashes: object, facts: object = ()) -> None:
        self.is_trusted = True

    def forget(self, name: str) -> None:
        self.is_trusted = False


async def test_what_is_not_trusted_is_not_started(ledger: Path):
    async with house(hostile(ledger), trust=Nobody(), ready=False) as home:
        await home.until(lambda: home.status().state == "untrusted")
        assert noted(ledger, "start") == []
        await home.servers.trust("h")
        await home.until(lambda: home.status().state == "ready")
        assert "h_echo" not in home.status().changed
        assert "h_slow" in home.status().changed


@pytest.mark.parametrize("mode", ["stubborn", "family"])
async def test_a_process_and_what_it_started_end_with_us(ledger: Path, mode: str):
    async with house(hostile(ledger, mode)) as home:
        pids = [home.status().pid, *noted(ledger, "child")]
        assert all(is_alive(pid) for pid in pids)
    await home.until(lambda: not any(is_alive(pid) for pid in pids))


async def test_a_process_ends_when_we_are_killed(ledger: Path):
    code = f"""
import asyncio
from pathlib import Path
from tests.helpers.hostile_mcp import hostile, house
async def main():
    async with house(hostile(Path({str(ledger)!r}), "stubborn")) as home:
        print(home.status().pid, flush=True)
        await asyncio.sleep(60)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=subprocess.PIPE)
    assert process.stdout is not None
    pid = int(await process.stdout.readline())
    process.kill()
    await process.wait()
    async with asyncio.timeout(10):
        while is_alive(pid):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


SIZES = """
import asyncio, resource, sys
from pathlib import Path
from everturn.errors import ToolError
from tests.helpers.hostile_mcp import hostile, house

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

async def main():
    async with house(hostile(Path(sys.argv[1]))) as home:
        await home.call("big", n=1)
        before = peak()
        try:
            await home.call("big", n=100)
        except ToolError as error:
            print(error)
        print(peak() - before)
        output = await home.call("big", n=12)
        print(len(output.text), output.text[-57:].strip())
        print(peak() - before)
        output = await home.call("many_numbers", n=12)
        print(len(output.text), output.text[:5])
        print(peak() - before, home.status().connects)

asyncio.run(main())
"""


async def test_a_result_of_100_megabytes_costs_little_and_is_reported(ledger: Path):
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SIZES, str(ledger), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]
    )
    out, _ = await process.communicate()
    message, huge, cut, large, numbers, last = out.decode().splitlines()
    assert (
        message
        == "server h could not do big: its answer was larger than 16 MiB and was dropped; ask it for less at a time"
    )
    assert float(huge) < 16 + 64
    assert cut.endswith("[cut here: the result was longer than 8388608 characters]")
    assert float(large) < 16 + 64
    assert numbers.endswith('{"a":')
    assert float(last.split()[0]) < 16 + 64
    assert last.split()[1] == "1"


async def test_five_servers_of_which_one_is_dead_and_one_hangs_do_not_keep_anybody_waiting(ledger: Path):
    names = {"a": "plain", "b": "modern", "c": "plain", "dead": "dead", "mute": "mute"}
    servers = McpServers([hostile(ledger, mode, name) for name, mode in names.items()], timeout=QUICK_START_TIMEOUT)
    began = time.monotonic()
    await servers.open(lambda origin, tools: None)
    took = time.monotonic() - began
    await servers.aclose()
    assert took < 10.0, took  # it waits 0.7 s for its servers, and the mute one would answer after 60


async def test_half_a_character_in_an_answer_is_an_answer(ledger: Path):
    async with house(hostile(ledger)) as home:
        assert (await home.call("cut_in_two")).text == "\ufffd"


async def test_one_that_asks_for_ever_and_reads_no_answer_is_not_read_for_ever(ledger: Path):
    async with house(hostile(ledger, timeout=1.0)) as home:
        before = len(asyncio.all_tasks())
        with pytest.raises(ToolTimeout):
            await home.call("ask_flood")
        assert len(asyncio.all_tasks()) < before + 100
