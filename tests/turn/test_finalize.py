"""The end of a turn: every call has its one result, plugins are told, clean-ups ran, the terminal event is the last."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from everturn import Chat, ModelError, Turn, TurnError, tool
from everturn.core.events import CallFinished, CallStarted, LateResultReceived, TurnFinishing
from everturn.core.hooks import StepContext, TurnContext
from everturn.errors import HookError
from everturn.events import Phase, TextDelta, TurnCancelled, TurnCompleted, TurnFailed
from everturn.testing import MemoryStore, ScriptedFailure, ScriptedHang, ScriptedModel, call, calls, say

SOON = 2  # seconds after which something that should have happened is taken to hang


def broken(text: str = "down") -> Any:
    return [ScriptedFailure(ModelError(text, kind="server"))]


class Plugin:
    """Says what it is told of, and fails where it should."""

    def __init__(self, name: str, log: list[str], *fails: str) -> None:
        self.name, self._log, self._fails = name, log, fails

    def _say(self, stage: str) -> None:
        self._log.append(f"{self.name} {stage}")
        if stage in self._fails:
            raise RuntimeError(f"{self.name} {stage}")

    def on_turn_start(self, ctx: TurnContext) -> Callable[[], None]:
        self._say("start")
        return lambda: self._say("clean-up")

    def on_turn_end(self, ctx: TurnContext) -> None:
        self._say("end")

    def on_error(self, ctx: TurnContext, error: Any) -> None:
        self._say(f"error {error.kind}")


async def test_the_terminal_event_is_the_last_and_every_call_has_one_result() -> None:
    look, hang = tool(name="look")(lambda: "seen"), asyncio.Event()

    @tool
    async def wait() -> None:
        await hang.wait()

    async with Chat(ScriptedModel(calls(call("look"), call("wait"), call("nope"))), tools=[look, wait]) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, CallStarted) and event.tool == "wait":
                await turn.cancel()
        events = [entry.event for entry in await chat.app.store.events(chat.session, turn=turn.id)]
    settled = Counter(event.call for event in events if isinstance(event, CallFinished))
    assert sorted(settled.values()) == [1, 1, 1]
    assert isinstance(events[-1], TurnCancelled)
    assert [type(event) for event in events if isinstance(event, TurnFinishing | TurnCancelled)] == [
        TurnFinishing,
        TurnCancelled,
    ]


async def test_plugins_hear_of_a_good_end_and_clean_ups_run_last_in_first_out() -> None:
    log: list[str] = []
    async with Chat(ScriptedModel(say("Hi.")), plugins=[Plugin("one", log), Plugin("two", log)]) as chat:
        await (await chat.send("go"))
    assert log == ["one start", "two start", "one end", "two end", "two clean-up", "one clean-up"]


async def test_plugins_hear_of_an_error_and_not_of_a_good_end() -> None:
    log: list[str] = []
    async with Chat(ScriptedModel(broken()), plugins=[Plugin("one", log), Plugin("two", log)]) as chat:
        with pytest.raises(TurnError, match="down"):
            await (await chat.send("go"))
    assert log == ["one start", "two start", "one error server", "two error server", "two clean-up", "one clean-up"]


async def test_clean_ups_that_fail_are_raised_together_and_the_turn_is_complete() -> None:
    log: list[str] = []
    plugins = [Plugin("one", log, "clean-up"), Plugin("two", log, "end", "clean-up")]
    async with Chat(ScriptedModel(say("Hi.")), plugins=plugins) as chat:
        turn = await chat.send("go")
        with pytest.raises(ExceptionGroup) as caught:
            await turn
        state = await turn.state()
        [ended] = [e.event for e in await chat.app.store.events(chat.session) if isinstance(e.event, TurnCompleted)]
    assert state.phase is Phase.COMPLETED
    assert [type(error) for error in caught.value.exceptions] == [HookError] * 2  # a failing on_turn_end is reported
    assert [report.text.split(" ")[0] for report in ended.reports] == [
        "two.on_turn_end",
        "two.clean-up",
        "one.clean-up",
    ]
    assert log[-2:] == ["two clean-up", "one clean-up"]


async def test_a_failed_clean_up_is_raised_with_the_turns_own_error() -> None:
    plugins = [Plugin("one", [], "error server", "clean-up")]
    async with Chat(ScriptedModel(broken()), plugins=plugins) as chat:
        with pytest.raises(ExceptionGroup) as caught:
            await (await chat.send("go"))
    assert [getattr(error, "kind", "") for error in caught.value.exceptions] == ["server", "clean-up"]
    assert str(caught.value.exceptions[0]) == "down"


async def test_a_process_that_lets_go_runs_its_clean_ups_and_so_does_the_next() -> None:
    log: list[str] = []
    store = MemoryStore()
    hanging: Any = [say("so far"), [ScriptedHang()]]
    chat = Chat(ScriptedModel(hanging), plugins=[Plugin("one", log)], store=store, session="s")
    turn = await chat.send("go")
    async for event in turn:
        if isinstance(event, TextDelta):
            break
    await chat.aclose()
    assert log == ["one start", "one clean-up"]
    async with Chat(ScriptedModel(say("Hi.")), plugins=[Plugin("one", log)], store=store, session="s") as other:
        assert (await other.turn(turn.id)).text == "Hi."
    assert log[2:] == ["one start", "one end", "one clean-up"]


@pytest.mark.parametrize("hook", ["on_turn_end", "clean-up"])
async def test_what_hangs_at_the_end_of_a_cancelled_turn_does_not_hold_it(hook: str) -> None:
    class Endless:
        def on_turn_start(self, ctx: TurnContext) -> Any:
            return self._for_ever if hook == "clean-up" else None

        async def on_turn_end(self, ctx: TurnContext) -> None:
            if hook == "on_turn_end":
                await self._for_ever()

        async def _for_ever(self) -> None:
            await asyncio.Event().wait()

    hanging: Any = [say("so far"), [ScriptedHang()]]
    async with Chat(ScriptedModel(hanging), plugins=[Endless()]) as chat:
        turn = await chat.send("go")
        async for event in turn:
            if isinstance(event, TextDelta):
                break
        await turn.cancel()
        await ends_cancelled(turn)


async def ends_cancelled(turn: Turn) -> None:
    async with asyncio.timeout(SOON):
        try:
            assert (await turn).phase is Phase.CANCELLED
        except* HookError:  # that something was left behind may be reported
            assert (await turn.state()).phase is Phase.CANCELLED


@pytest.mark.parametrize("hook", ["on_turn_start", "on_after_request", "on_call_start", "on_turn_end"])
async def test_a_hook_that_raises_cancellation_of_its_own_accord_ends_the_turn_once(hook: str) -> None:
    def fail(self: object, *args: object) -> None:
        raise asyncio.CancelledError

    plugin = type("Odd", (), {hook: fail})()
    look = tool(name="look")(lambda: "seen")
    async with Chat(ScriptedModel(calls(call("look")), say("Done.")), tools=[look], plugins=[plugin]) as chat:
        turn = await chat.send("go")
        async with asyncio.timeout(SOON):
            try:
                await turn
            except* TurnError:
                pass
        assert (await turn.state()).phase.is_terminal


async def test_an_error_in_a_turn_leaves_its_running_tools_to_come_late() -> None:
    started, release = asyncio.Event(), asyncio.Event()

    @tool
    async def dig() -> str:
        started.set()
        await release.wait()
        return "gold"

    class Broken:
        async def on_after_request(self, ctx: StepContext) -> None:
            await started.wait()
            raise RuntimeError("no")

    async with Chat(ScriptedModel(calls(call("dig"))), tools=[dig], plugins=[Broken()]) as chat:
        turn = await chat.send("go")
        with pytest.raises(TurnError, match=r"Broken\.on_after_request") as caught:
            await turn
        release.set()
        await chat.app.tool_tasks.wait_idle()
        while (late := (await chat.app.store.events(chat.session))[-1].event) and isinstance(late, TurnFailed):  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert isinstance(late, LateResultReceived)
        assert (late.output.text, caught.value.kind) == ("gold", "hook")
        [called] = (await turn.state()).calls.values()
        assert called.state == "cancelled"
