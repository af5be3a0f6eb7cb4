"""What is written together, and what must not be: nothing is done with anything that is not in the log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from everturn import Agent, Chat, tool
from everturn.app import App
from everturn.core.events import CallFinished, Event, StepFinished, TurnStarted
from everturn.events import Phase
from everturn.testing import MemoryStore, ScriptedModel, call, calls, say


class Counting(MemoryStore):
    """A store that remembers what was written together."""

    def __init__(self) -> None:
        super().__init__()
        self.appends: list[list[str]] = []
        self.kinds: set[type[Event]] = set()

    async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
        head = await super().append(session, after, events, epoch)
        self.appends.append([type(event).__name__ for event in events])
        self.kinds.update(type(event) for event in events)
        return head


@tool(read_only=True, repeatable=True)
async def look() -> str:
    return "seen"


def script() -> ScriptedModel:
    return ScriptedModel(calls(call("look"), call("look")), calls(call("look")), say("Done."))


async def test_a_round_of_calls_is_two_appends_and_the_end_of_a_turn_is_one() -> None:
    store = Counting()
    async with Chat(script(), tools=[look], store=store) as chat:
        assert (await (await chat.send("go"))).phase is Phase.COMPLETED
    assert store.appends == [
        ["TurnStarted", "TitleSet", "AnswerStarted", "StepStarted"],
        ["StepFinished", "PermissionDecided", "CallStarted", "PermissionDecided", "CallStarted"],
        ["CallFinished", "CallFinished", "HookFinished", "StepStarted"],
        ["StepFinished", "PermissionDecided", "CallStarted"],
        ["CallFinished", "HookFinished", "StepStarted"],
        ["StepFinished", "HookFinished", "TurnFinishing", "TurnCompleted"],
    ]


async def test_a_plugin_is_shown_nothing_that_is_not_written() -> None:
    store, missing = Counting(), list[str]()

    def expect(hook: str, kind: type[Event]) -> None:
        if kind not in store.kinds:
            missing.append(hook)

    class Watching:
        name = "watching"

        def on_input(self, ctx: Any, parts: Any) -> None:
            expect("on_input", TurnStarted)

        def on_call_start(self, ctx: Any) -> None:
            expect("on_call_start", StepFinished)

        def on_after_request(self, ctx: Any) -> None:
            expect("on_after_request", StepFinished)

        def on_turn_end(self, ctx: Any) -> None:
            expect("on_turn_end", CallFinished)
            assert store.appends[-1][-1] != "TurnCompleted"

    async with Chat(script(), tools=[look], plugins=[Watching()], store=store) as chat:
        result = await (await chat.send("go"))
        assert (result.phase, missing) == (Phase.COMPLETED, [])
    assert store.appends[-1] == ["TurnCompleted"]


@pytest.mark.parametrize("where", ["on_turn_start", "on_message_append", "instructions", "step instructions", "deps"])
async def test_code_of_the_application_runs_in_a_turn_that_is_written(where: str) -> None:
    store, seen = Counting(), list[bool]()

    def watch(*_: object) -> None:
        seen.append(TurnStarted in store.kinds)

    def instruct() -> str:
        watch()
        return "Be brief."

    class Starting:
        def on_turn_start(self, ctx: Any) -> None:
            watch()

    class Appending:
        def on_message_append(self, ctx: Any) -> None:
            watch()

    plugins = {"on_turn_start": [Starting()], "on_message_append": [Appending()]}.get(where, [])
    agent = Agent(ScriptedModel(say("Done.")), name="helper", deps=watch if where == "deps" else None)
    if where.endswith("instructions"):
        agent.instructions(instruct, each_step=where == "step instructions")
    async with App(agents=[agent], store=store, plugins=plugins) as app:
        assert (await agent.run("go", app=app)).output == "Done."
    assert seen
    assert all(seen)


async def test_a_lone_plugin_of_ones_own_is_called_when_its_step_is_written() -> None:
    store, seen = Counting(), list[bool]()

    class Alone:
        name = "alone"

        def on_after_request(self, ctx: Any) -> None:
            seen.append(StepFinished in store.kinds)

    async with Chat(ScriptedModel(say("Hello.")), plugins=[Alone()], store=store) as chat:
        await (await chat.send("go"))
    assert seen == [True]


async def test_results_that_could_not_be_written_with_the_next_step_are_not_lost() -> None:
    ran: list[str] = []

    class FailsOnce(Counting):
        has_failed = False

        async def append(self, session: str, after: int, events: Sequence[Event], epoch: int | None = None) -> int:
            if not self.has_failed and any(isinstance(event, CallFinished) for event in events):
                self.has_failed = True
                raise OSError("the disk hiccupped")
            return await super().append(session, after, events, epoch)

    @tool()
    async def pay() -> str:
        ran.append("pay")
        return "paid"

    async with Chat(ScriptedModel(calls(call("pay")), say("Done.")), tools=[pay], store=FailsOnce()) as chat:
        turn = await chat.send("go")
        assert (await turn).phase is Phase.COMPLETED
        log = [entry.event for entry in await chat.app.store.events(chat.session)]
    settled = [(event.state, event.output.text) for event in log if isinstance(event, CallFinished)]
    assert settled == [("completed", "paid")]
    assert ran == ["pay"]
