"""A laptop, a file, and processes that end as they like: what was begun there goes on with the next one."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, tool
from everturn.errors import ConfigError, StoreBusy
from everturn.events import TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say

# A program as somebody would write it: it begins a turn, or goes on with what is there.
PROGRAM = """
import asyncio, os, sys
from everturn import Chat, tool
from everturn.testing import ScriptedModel, call, calls, say

def note(text):
    fd = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (text + "\\n").encode())

@tool(read_only=True)
async def look(n: int) -> str:
    note(f"look {n}")
    if n == int(sys.argv[3]):
        print("in the middle", flush=True)
        await asyncio.sleep(float(sys.argv[4]))
    return f"seen {n}"

@tool()
async def pay(n: int) -> str:
    note(f"pay {n}")
    return f"paid {n}"

script = [calls(call("look", n=1), call("pay", n=1)), calls(call("look", n=2)), say("All done.")]

async def main():
    chat = Chat(ScriptedModel(*script), tools=[look, pay], store=sys.argv[1], session="talk")
    if len(sys.argv) > 5:
        await chat.send("go", key="the one")
        await chat.app.serve_until_signal()
    else:
        async with chat:
            print((await (await chat.send("go", key="the one"))).text)

asyncio.run(main())
"""


class Programs:
    """Runs the program on one file, and reads what its tools did."""

    def __init__(self, folder: Path) -> None:
        self.store, self._notes = folder / "talks.db", folder / "notes"
        self._program = folder / "program.py"
        self._program.write_text(PROGRAM, encoding="utf-8")

    def start(self, stop_at: int = 0, seconds: float = 0.0, work: bool = False) -> subprocess.Popen[str]:
        line = [sys.executable, self._program, self.store, self._notes, str(stop_at), str(seconds), *["work"] * work]
        return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)

    def until_the_middle(self, seconds: float = 60.0, work: bool = False) -> subprocess.Popen[str]:
        program = self.start(2, seconds, work)
        assert program.stdout is not None
        assert program.stdout.readline() == "in the middle\n"
        return program

    @property
    def done(self) -> list[str]:
        return self._notes.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def test_a_turn_that_was_killed_goes_on_in_the_next_process_and_pays_once(programs: Programs) -> None:
    killed = programs.until_the_middle()
    killed.kill()
    killed.communicate()

    out, _ = programs.start().communicate(timeout=30)

    assert out == "All done.\n"
    assert programs.done == ["look 1", "pay 1", "look 2", "look 2"]


def test_two_processes_do_not_drive_one_file(programs: Programs) -> None:
    first = programs.until_the_middle()
    try:
        chat = Chat(ScriptedModel(say("hi")), store=str(programs.store))
        with pytest.raises(StoreBusy, match=str(first.pid)):
            _run(chat.send("hello"))
        _run(chat.aclose())
    finally:
        first.kill()
        first.communicate()


def test_sigterm_lets_the_step_end_and_leaves_the_rest_to_the_next_process(programs: Programs) -> None:
    first = programs.until_the_middle(seconds=0.5, work=True)
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=30)
    assert first.returncode == 0

    out, _ = programs.start().communicate(timeout=30)

    assert out == "All done.\n"
    assert programs.done == ["look 1", "pay 1", "look 2"]  # the tool that ran was waited for, and not run again


async def test_a_name_that_is_no_store_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'nonsense' is not a store; there are: a file such as talks\.db"):
        Chat(ScriptedModel(say("hi")), store="nonsense")


async def test_a_chat_on_a_file_is_there_again_with_its_tree_and_its_gates(tmp_path: Path) -> None:
    @tool(approval="always")
    async def pay(n: int) -> str:
        return f"paid {n}"

    file = str(tmp_path / "talks.db")
    script = [calls(call("pay", n=1)), say("Paid."), say("You are welcome.")]
    async with Chat(ScriptedModel(*script), tools=[pay], store=file, session="talk") as chat:
        async for event in await chat.send("pay!"):
            if isinstance(event, TurnSuspended):
                break

    async with Chat(ScriptedModel(*script), tools=[pay], store=file, session="talk") as chat:
        (gate,) = await chat.gates()
        await chat.answer(gate, allow="once")
        assert (await (await chat.send("thanks"))).text == "You are welcome."
        assert [message.text for message in await chat.messages()][:3] == ["pay!", "Paid.", "thanks"]


def _run(work: Coroutine[Any, Any, Any]) -> None:
    asyncio.run(work)
