"""Durable tools, stopped after and before every event: an effect in `ctx.step` before a wait happens once."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from everturn import Chat, ToolContext
from everturn.base_app import BaseApp
from everturn.core.events import CallFinished, ToolStepFinished
from everturn.events import TurnSuspended
from everturn.testing import FakeClock, call, calls, say
from tests.helpers.crash_harness import Story, World, check, entries_in, plain, tell
from tests.helpers.crash_scenarios import model
from tests.helpers.repeated_tools import repeated_tool

HOURS = 3


class Outside:
    """The world outside, which no crash reaches: effects that are counted, and a carrier that answers its callbacks."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.tokens: list[str] = []

    def charge(self) -> int:
        self.counts["charge"] += 1
        return self.counts["charge"]

    async def request(self, token: str) -> None:
        self.counts["request"] += 1
        self.tokens.append(token)

    async def deliver(self, app: BaseApp) -> None:
        for token in self.tokens:
            await app.complete(token, "parcel")  # and again, if the process died after the first time

    def tools(self, declared: dict[str, Any]) -> list[Any]:
        @repeated_tool(**declared)
        async def sleeper(ctx: ToolContext) -> str:
            receipt = await ctx.step("charge", self.charge)
            await ctx.sleep(hours=HOURS)
            return f"receipt {receipt}"

        @repeated_tool(**declared)
        async def external(ctx: ToolContext) -> str:
            receipt = await ctx.step("charge", self.charge)
            return f"receipt {receipt} {await ctx.external(self.request, timeout=3600 * HOURS)}"

        @repeated_tool(**declared)
        async def token(ctx: ToolContext) -> str:
            receipt = await ctx.step("charge", self.charge)
            parcel = await ctx.external(timeout=3600 * HOURS)
            await ctx.step("request", self.request, parcel.token)
            return f"receipt {receipt} {await parcel.result()}"

        return [sleeper, external, token]


def story(name: str, declared: dict[str, Any], outside: Outside) -> Story:
    """A person who waits for a tool that waits for a time, or for a carrier."""

    async def play(chat: Chat, world: World) -> None:
        clock = chat.app.clock
        assert isinstance(clock, FakeClock)
        if world.processes == 1:
            outside.__init__()
        async for event in await chat.send("please", key="first"):
            if isinstance(event, TurnSuspended):
                for _ in range(20):  # the timer is set after this event was written
                    await asyncio.sleep(0)
                if name == "sleeper":
                    clock.advance(3600 * HOURS)
                else:
                    await outside.deliver(chat.app)

    return Story(name, model(calls(call(name)), say("Done.")), play, tools=lambda _: outside.tools(declared))


@pytest.mark.parametrize("before_next", [False, True], ids=["after", "before"])
@pytest.mark.parametrize("declared", [{"resumable": True}, {"idempotent": True, "resumable": True}], ids=str)
@pytest.mark.parametrize("name", ["sleeper", "external", "token"])
async def test_stopped_at_any_event_the_effect_before_the_wait_happens_once(
    name: str, declared: dict[str, Any], before_next: bool
) -> None:
    outside = Outside()
    scenario = story(name, declared, outside)
    whole = await tell(scenario)
    await check(whole)
    assert outside.counts["charge"] == 1
    outcomes: Counter[str] = Counter()
    for stop in range(len(await entries_in(whole))):
        world = await tell(scenario, lives=stop, before_next=before_next)
        await check(world)
        entries = await entries_in(world)
        [finished] = [entry.event for entry in entries if isinstance(entry.event, CallFinished)]
        outcomes[finished.state] += 1
        assert outside.counts["charge"] <= 1, f"stopped at {stop}"
        assert outside.counts["request"] <= 1, f"stopped at {stop}"
        if finished.state == "completed":
            assert outside.counts["charge"] == 1, f"stopped at {stop}"
            assert finished.output.text in ("receipt 1", "receipt 1 parcel")
        else:  # it was stopped while the tool ran, and nobody knows how far it got
            assert finished.state == "outcome_unknown"
    assert outcomes["completed"] > len(await entries_in(whole)) // 2
    assert outcomes["outcome_unknown"] >= 1


@pytest.mark.parametrize("name", ["sleeper", "external", "token"])
async def test_stopped_once_it_waits_it_ends_as_if_it_had_not_been(name: str) -> None:
    scenario = story(name, {"resumable": True}, Outside())
    whole = await entries_in(await tell(scenario))
    waits = next(entry.seq for entry in whole if isinstance(entry.event, TurnSuspended))
    resumed = next(entry.seq for entry in whole if type(entry.event).__name__ == "CallResumed")
    for stop in range(waits, resumed):
        world = await tell(scenario, lives=stop)
        assert plain(await entries_in(world)) == plain(whole), f"stopped after {stop}"


@pytest.mark.parametrize("name", ["sleeper", "external", "token"])
async def test_a_tool_that_did_not_declare_it_is_refused_at_its_first_step_wherever_it_is_stopped(name: str) -> None:
    outside = Outside()
    scenario = story(name, {}, outside)
    whole = await entries_in(await tell(scenario))
    for stop in range(len(whole)):
        world = await tell(scenario, lives=stop)
        await check(world)
        entries = await entries_in(world)
        assert not [entry for entry in entries if isinstance(entry.event, ToolStepFinished)]
        [finished] = [entry.event for entry in entries if isinstance(entry.event, CallFinished)]
        assert finished.output.code in ("not_resumable", "outcome_unknown")
        assert outside.counts == Counter()


async def run_process(folder: Path, name: str, lives: int) -> tuple[int, str]:
    command = [sys.executable, "-m", "tests.turn.killed_tool_process", str(folder), name, str(lives)]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode is not None
    return process.returncode, out.decode().strip()


@pytest.mark.parametrize("name", ["sleeper", "external"])
async def test_killed_after_any_append_of_its_call_to_a_database_the_effect_before_the_wait_happens_once(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / "whole").mkdir()
    code, output = await run_process(tmp_path / "whole", name, 0)
    first, last, state, text = output.split(maxsplit=3)
    assert (code, state, text) == (0, "completed", "receipt" if name == "sleeper" else "receipt parcel")
    outcomes: Counter[str] = Counter()
    for lives in range(int(first), int(last)):  # before and after that no tool is involved
        folder = tmp_path / str(lives)
        folder.mkdir()
        assert (await run_process(folder, name, lives))[0] == -signal.SIGKILL
        code, output = await run_process(folder, name, 0)
        _, _, state, output = output.split(maxsplit=3)
        charged = (folder / "charged").read_text() if (folder / "charged").exists() else ""
        outcomes[state] += 1
        assert code == 0
        assert len(charged) == 1 if state == "completed" else len(charged) <= 1
        assert output == text if state == "completed" else state == "outcome_unknown"
    assert min(outcomes["completed"], outcomes["outcome_unknown"]) >= 3  # while it waited, and while it ran
