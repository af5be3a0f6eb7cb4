"""What the log itself refuses, and what it binds a call to."""

from __future__ import annotations

import pytest

from everturn import Chat, tool
from everturn.app import App
from everturn.core.calls import CallRecord
from everturn.core.events import (
    CallFinished,
    CallStarted,
    GateOpened,
    GateResolved,
    LimitReached,
    PermissionDecided,
    StepFinished,
    TurnStarted,
)
from everturn.core.gates import Gate, GateResolution
from everturn.core.parts import Output, ToolPart
from everturn.core.ports import Tool
from everturn.core.state import TurnState
from everturn.errors import InvalidEvent
from everturn.testing import MemoryStore, MortalStore, ScriptedModel, call, calls, say
from tests.trust.open_gates import Asked


def judged(hash: str = "h", tool: str = "t", allowed: bool = True) -> PermissionDecided:
    return PermissionDecided(turn="1", call="c", tool=tool, identity="i", hash=hash, allowed=allowed, why="")


def started(hash: str = "h", tool: str = "t") -> CallStarted:
    return CallStarted(turn="1", call="c", tool=tool, arguments="{}", hash=hash, read_only=True, key="c")


def opened(kind: str) -> GateOpened:
    output = Output("seen") if kind == "result" else None
    gate = Gate("g", "1", "c", "t", "{}", "h", kind=kind, output=output)  # pyright: ignore[reportArgumentType]
    return GateOpened(turn="1", gate=gate)


def a_call(*events: PermissionDecided | CallStarted | GateOpened | GateResolved | CallFinished) -> CallRecord:
    record = CallRecord("c", 1, 0, "t", "{}")
    for event in events:
        record.advance(event)
    return record


def test_what_starts_is_what_was_allowed() -> None:
    assert a_call(judged(), started()).state == "running"
    for before in ([], [judged(hash="x")], [judged(tool="x")], [judged(allowed=False)]):
        with pytest.raises(InvalidEvent):
            a_call(*before, started())


def test_a_call_is_judged_once() -> None:
    with pytest.raises(InvalidEvent, match="judged already"):
        a_call(judged(), judged())


def test_a_result_is_read_when_there_is_one_and_a_call_asked_about_when_there_is_none() -> None:
    assert a_call(judged(), started(), opened("result")).state == "reviewing"
    for before, kind in (([], "result"), ([judged(), started()], "call"), ([judged(), started()], "loop")):
        with pytest.raises(InvalidEvent):
            a_call(*before, opened(kind))


def test_a_result_is_read_once() -> None:
    answered = GateResolved(turn="1", gate="g", call="c", resolution=GateResolution(True))
    read = a_call(judged(), started(), opened("result"), answered)
    assert (read.state, read.open_gate) == ("reviewing", None)
    for event in (answered, opened("result"), started()):
        with pytest.raises(InvalidEvent):
            read.advance(event)
    read.advance(CallFinished(turn="1", call="c", state="withheld", output=Output("")))
    assert read.is_finished


def test_a_limit_is_reached_once() -> None:
    state = TurnState("1")
    state.apply(TurnStarted(turn="1"))
    limit = LimitReached(turn="1", limit="calls", scope="turn", text="")
    state.apply(limit)
    with pytest.raises(InvalidEvent):
        state.apply(limit)


async def test_no_two_gates_have_the_same_hash() -> None:
    found: set[str] = set()
    for session in ("s1", "s2"):
        for _ in range(2):
            harness = Asked(MemoryStore(), session)
            async with harness.asking():
                found.add(harness.gate.hash)
    assert len(found) == 4


@pytest.mark.parametrize("change", ["its description", "its parameters"])
async def test_a_tool_that_changed_after_it_was_offered_is_not_run(change: str) -> None:
    ran: list[str] = []

    def look(path: str) -> str:
        """Look."""
        ran.append(path)
        return path

    def look_again(path: str, deep: bool = False) -> str:
        """Look."""
        ran.append(path)
        return path

    store, model = MemoryStore(), ScriptedModel(calls(call("look", path="a")), say("Done."))
    before: list[Tool] = [tool(name="look")(look)]
    mortal = MortalStore(store, 5)  # it dies when the model has called, and before anything was judged
    async with Chat(model, app=App(model, tools=before, store=mortal), session="s") as chat:
        turn = await chat.send("please")
        await mortal.died.wait()
    assert isinstance((await store.events("s"))[-1].event, StepFinished)
    look.__doc__ = "Look, and tell everybody." if change == "its description" else look.__doc__
    after: list[Tool] = [tool(name="look")(look if change == "its description" else look_again)]
    async with Chat(model, app=App(model, tools=after, store=store), session="s") as chat:
        result = await chat.turn(turn.id)
    assert result.message is not None
    [part] = [part for part in result.message.parts if isinstance(part, ToolPart)]
    assert part.output is not None
    assert (ran, part.state, part.output.code) == ([], "failed", "tool_changed")
