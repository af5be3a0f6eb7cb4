"""Command lines of strangers are read in bounded time, and never for long on the event loop."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress

import pytest
from tests.helpers.server_app import ask, make, make_house, word
from tests.permissions.slow_commands import LIMIT, STARTS, UNITS, build_line, loop_seconds

from everturn.app import App
from everturn.core.rules.policy import Rule
from everturn.models.scripted import ScriptedModel
from everturn.permissions.shell import awk_sed, bounded_reader
from everturn.permissions.shell.bounded_reader import SHORT, read_commands, read_short
from everturn.permissions.shell.command_line import read_command
from everturn.permissions.shell.parser import MAX_BYTES, UnreadableCommand
from everturn.stores.memory import MemoryStore
from everturn.tools.function import tool

PARSER_IS_SLOW = "x=" + ")" * (MAX_BYTES - 2)


@pytest.mark.parametrize("start", STARTS)
async def test_repeated_tokens_never_hold_the_loop_for_50_ms(start: str) -> None:
    for unit in UNITS:
        for size in (64, SHORT):
            assert await loop_seconds(build_line(start, unit, size)) < LIMIT, (start, unit, size)


async def test_random_tokens_never_hold_the_loop_for_50_ms() -> None:
    dice = random.Random(18)
    for _ in range(200):
        unit = "".join(dice.choice(UNITS) for _ in range(dice.randint(2, 4)))
        line = build_line(dice.choice(STARTS), unit, dice.choice((100, 300, SHORT)))
        assert await loop_seconds(line) < LIMIT, line


@pytest.mark.parametrize("unit", [")", "a|", "<<<", "sed 's/[]a]"])
async def test_a_long_line_of_tokens_is_read_elsewhere_or_denied(unit: str) -> None:
    assert await loop_seconds(build_line("x=", unit, MAX_BYTES)) < LIMIT


async def test_a_line_that_takes_too_long_is_denied_and_the_next_one_is_read() -> None:
    with pytest.raises(UnreadableCommand, match="takes too long to judge"):
        await read_commands([PARSER_IS_SLOW] * 3)  # the limit is for all lines of a call
    line = "git log " + "x " * SHORT
    assert [list(found) for found in await read_commands([line])] == [read_command(line)]


async def test_what_is_read_elsewhere_is_what_would_be_read_here() -> None:
    lines = ["git log | head -3 > 'a b'", "sudo sed -i s/a/b/ f", "cat <<E\n" + "text\n" * 200 + "E\n"]
    assert [list(found) for found in await read_commands(lines)] == [read_command(line) for line in lines]
    with pytest.raises(UnreadableCommand, match="known only when"):
        await read_commands(["$X " + "x" * SHORT])


async def test_many_short_lines_in_one_call_are_not_read_on_the_loop() -> None:
    lines = [f"git{at:02}" + "|abcdef" * 60 for at in range(60)]
    assert len(lines[0]) < SHORT
    began = time.thread_time()
    with suppress(UnreadableCommand):  # it is too much for the worker, too, on a slow machine
        await read_commands(lines)
    assert time.thread_time() - began < LIMIT


async def test_a_crowd_of_slow_lines_is_turned_away() -> None:
    lines = [f"git log {at} " + "x " * SHORT for at in range(bounded_reader.MOST_WAITING + 8)]
    found = await asyncio.gather(*(read_commands([line]) for line in lines), return_exceptions=True)
    assert [str(error) for error in found if isinstance(error, UnreadableCommand)] == [bounded_reader.BUSY] * 8
    assert await read_commands(lines[:1])


async def test_whoever_does_not_wait_is_not_in_the_way() -> None:
    waiting = asyncio.create_task(read_commands(["git log " + "x " * SHORT]))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await read_commands(["git log " + "y " * SHORT])


@pytest.mark.parametrize("line", ["a" * (MAX_BYTES + 1), "é" * MAX_BYTES, "\ud800" + "a" * SHORT])
async def test_what_is_too_long_or_no_text_is_denied_at_once(line: str) -> None:
    with pytest.raises(UnreadableCommand):
        await read_commands([line])
    with pytest.raises(UnreadableCommand):
        read_short(line)


@pytest.mark.parametrize(
    "unit", ["[]a]", "s/a/b/;", "[", "[:", "[[:a:]", "\\", "\\/", "y/a/b/;", "b a;", "{", "1", "a\n"]
)
def test_scripts_of_sed_are_read_in_time_that_grows_with_them_and_no_faster(unit: str) -> None:
    for start in ("", "s/", "/", "y/", "s/[", "s,x,"):
        few, many = (_cpu(start + unit * (size // len(unit))) for size in (10_000, 100_000))
        assert many < max(0.5, 40 * few), (start, unit)


def _cpu(script: str) -> float:
    began = time.process_time()
    awk_sed.has_sed_capability(script)
    awk_sed.has_awk_capability(script)
    return time.process_time() - began


@tool(approval="ask", subjects={"command": "command"})
def run(command: str) -> str:
    """Run a command."""
    return command


async def test_the_loop_turns_while_hostile_calls_and_explains_pour_in() -> None:
    hostile = [
        PARSER_IS_SLOW,
        "sed 's/" + "[]a]" * 60 + "' f",
        "echo ${x:-" + "$aa" * 100 + "<}",
        build_line("", "a|", MAX_BYTES),
    ]
    runtime = App(
        ScriptedModel("Hello."), tools=[run], store=MemoryStore(), rules=[Rule("run", "allow", {"command": "git *"})]
    )
    app = make(await make_house(runtime))
    longest = 0.0
    is_over = False

    async def watch() -> None:
        nonlocal longest
        while not is_over:
            began = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - began)

    async def explain(line: str) -> str:
        body = {"tool": "run", "arguments": {"command": line}}
        return (await ask(app, "POST", "/api/explain", word("member"), json=body)).json["action"]

    await explain("git log")  # what is loaded once is loaded
    watching = asyncio.create_task(watch())
    actions = await asyncio.gather(*(explain(line) for line in hostile))
    is_over = True
    await watching
    assert actions == ["deny", "ask", "deny", "deny"]
    assert longest < LIMIT
