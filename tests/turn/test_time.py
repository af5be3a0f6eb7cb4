"""Time: gates that expire, turns that have had theirs, clocks that jump; in this process or the next."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from everturn import App, Chat, Turn, TurnError, TurnOptions, tool
from everturn.core.commands import ResolveGate
from everturn.core.events import (
    CallFinished,
    CallStarted,
    GateResolution,
    GateResolved,
    StepRestarted,
    StepStarted,
    TurnFailed,
)
from everturn.core.parts import Output
from everturn.core.session_claims import MAX_QUICK_CLAIMS, QUARANTINE_SECONDS, is_quarantined, retry_pause
from everturn.driver import driver
from everturn.driver.commands import EXPIRED
from everturn.driver.drive import LATE_RESULT_LOST
from everturn.errors import DriverLost, GateClosed, SessionQuarantined
from everturn.events import LateResultReceived, TurnSuspended
from everturn.testing import FakeClock, MemoryStore, MortalStore, ScriptedHang, ScriptedModel, call, calls, say

SOON = 5
ASKS = calls(call("pay"))


@tool(approval="always")
async def pay() -> str:
    return "paid"


class Process:
    """A runtime of its own on a shared store and clock, and one session on it."""

    def __init__(self, store: Any, clock: FakeClock, *script: Any, tools: Any = (pay,), **options: Any) -> None:
        self.clock, self.store = clock, store
        self.model = ScriptedModel(*script)
        self.app = App(self.model, tools=tools, store=store, clock=clock)
        self.chat = Chat(self.model, app=self.app, session="s", options=TurnOptions(**options))

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for _ in range(50):
            await asyncio.sleep(0)

    async def events(self, kind: type[Any]) -> list[Any]:
        return [entry.event for entry in await self.store.events("s") if isinstance(entry.event, kind)]

    async def until(self, kind: type[Any]) -> Any:
        for _ in range(SOON * 1000):
            if found := await self.events(kind):
                return found[-1]
            await asyncio.sleep(0.001)
        raise AssertionError(f"there was no {kind.__name__}")


# Gates --------------------------------------------------------------------------------------------------------------


async def test_a_gate_nobody_answers_in_time_is_a_no_and_the_turn_goes_on() -> None:
    process = Process(MemoryStore(), FakeClock(), ASKS, say("Then not."), gate_timeout=60)
    turn = await process.chat.send("pay!")
    await process.until(TurnSuspended)
    assert (await process.store.info("s")).due == process.clock.now() + 60

    await process.pass_time(59)
    assert not await process.events(GateResolved)
    await process.pass_time(1)

    assert (await turn).text == "Then not."
    assert (await process.events(GateResolved))[0].resolution == GateResolution(False, EXPIRED, by="everturn")
    assert [event.state for event in await process.events(CallFinished)] == ["denied"]
    await process.app.aclose()


@pytest.mark.parametrize("asleep", [30, 90], ids=["the timer is set anew", "it is over at the start"])
async def test_a_gate_expires_after_a_restart(asleep: float) -> None:
    store, clock = MemoryStore(), FakeClock()
    first = Process(store, clock, ASKS, gate_timeout=60)
    await first.chat.send("pay!")
    await first.until(TurnSuspended)
    await first.app.aclose()
    clock.advance(asleep)

    second = Process(store, clock, say("Then not."))
    await second.app.start()
    await second.pass_time(60)

    assert (await second.until(GateResolved)).resolution.reason == EXPIRED
    await second.app.aclose()


async def test_an_answer_that_was_admitted_in_time_counts_even_if_nobody_was_there_to_act_on_it() -> None:
    store, clock = MemoryStore(), FakeClock()
    first = Process(store, clock, ASKS, gate_timeout=60)
    await first.chat.send("pay!")
    await first.until(TurnSuspended)
    await first.app.aclose()
    gate = (await store.gates("s"))[0].gate
    yes = ResolveGate(
        key="yes", session="s", at=clock.now() + 59, gate=gate.id, hash=gate.hash, resolution=GateResolution(True)
    )
    await store.admit(yes)
    clock.advance(3600)

    second = Process(store, clock, say("Paid."))
    await second.app.start()

    assert (await second.until(CallFinished)).output.text == "paid"
    await second.app.aclose()


async def test_an_answer_after_the_time_is_refused() -> None:
    process = Process(MemoryStore(), FakeClock(), ASKS, say("Then not."), gate_timeout=60)
    turn = await process.chat.send("pay!")
    await process.until(TurnSuspended)
    gate = (await process.chat.gates())[0]
    await process.pass_time(61)

    with pytest.raises(GateClosed):
        await turn.answer(gate, allow="once")
    await turn
    assert not await process.events(CallStarted)
    await process.app.aclose()


# Turns --------------------------------------------------------------------------------------------------------------


@tool(timeout=10_000)
async def sleep() -> str:
    await asyncio.Event().wait()
    return "never"


@pytest.mark.parametrize(
    ("script", "activity"),
    [(([ScriptedHang()],), "streams"), ((calls(call("sleep")),), "runs a tool"), ((ASKS,), "waits")],
    ids=["streaming", "running", "waiting"],
)
async def test_a_turn_that_has_had_its_time_ends_in_an_error_that_says_so(script: Any, activity: str) -> None:
    process = Process(MemoryStore(), FakeClock(), *script, tools=(pay, sleep), timeout=300)
    turn = await process.chat.send("go")
    await process.until({"waits": TurnSuspended, "runs a tool": CallStarted}.get(activity, StepStarted))

    await process.pass_time(299)
    assert not await process.events(TurnFailed)
    await process.pass_time(1)

    with pytest.raises(TurnError, match="within 300 s") as error:
        await turn
    assert error.value.kind == "deadline"
    await process.app.aclose()


async def test_the_time_of_a_turn_runs_on_while_no_process_does() -> None:
    store, clock = MemoryStore(), FakeClock()
    first = Process(store, clock, ASKS, timeout=300)
    await first.chat.send("pay!")
    await first.until(TurnSuspended)
    await first.app.aclose()
    clock.advance(3600)

    second = Process(store, clock)
    await second.app.start()

    assert (await second.until(TurnFailed)).problem.kind == "deadline"
    await second.app.aclose()


async def test_a_clock_that_jumps_runs_nothing_and_loses_nothing() -> None:
    process = Process(MemoryStore(), FakeClock(), ASKS, say("Then not."), gate_timeout=60)
    turn = await process.chat.send("pay!")
    await process.until(TurnSuspended)
    process.clock._now -= 86_400  # back by a day: the timer fires a day early by this clock, and nothing comes of it
    await process.pass_time(60)
    assert not await process.events(GateResolved)
    process.clock._now += 2 * 86_400
    await process.app.engine.wake("s")

    assert (await turn).text == "Then not."
    assert not await process.events(CallStarted)
    await process.app.aclose()


# Drivers that die -----------------------------------------------------------------------------------------------------


async def test_a_session_that_kills_its_driver_again_and_again_is_left_alone_and_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(driver, "MAX_THIRD_TRY_DELAY", 0.0)
    store, clock = MemoryStore(), FakeClock()
    deaths = 0

    async def die_streaming() -> None:
        nonlocal deaths
        mortal = MortalStore(store)
        process = Process(mortal, clock, [ScriptedHang()], [ScriptedHang()])
        if not deaths:
            await process.chat.send("go")
        await process.app.start()
        await process.until(StepRestarted if deaths else StepStarted)
        for _ in range(20):
            await asyncio.sleep(0)  # it is asked, and says nothing
        mortal.kill()
        deaths += 1
        await process.app.aclose()

    while not is_quarantined(deaths):
        clock.advance(retry_pause(deaths))
        await die_streaming()
    other = Process(store, clock, say("hello"), say("hello"))
    poor, well = other.chat, Chat(other.model, app=other.app, session="well")
    with pytest.raises(DriverLost, match="left alone"):
        await _turn_of(other)
    assert "left alone" in (await store.info("s")).quarantined
    assert (await (await well.send("hi"))).text == "hello"
    assert len(await other.events(StepRestarted)) == deaths - 1

    # A new command gives it another chance.
    turn = await poor.send("again")
    assert (await turn).text == "hello"
    assert (await store.info("s")).quarantined == ""
    await other.app.aclose()


async def _turn_of(process: Process) -> Any:
    await process.app.start()
    turn = (await process.store.open_turns("s"))[0]
    return await Turn(process.app, "s", turn, "")


async def test_what_was_left_alone_is_tried_once_more_after_a_long_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "MAX_THIRD_TRY_DELAY", 0.0)
    store, clock = MemoryStore(), FakeClock()
    first = Process(store, clock, [ScriptedHang()])
    await first.chat.send("go")
    await first.until(StepStarted)
    await first.app.aclose()
    for _ in range(MAX_QUICK_CLAIMS):
        assert await store.claim("s", clock.now()) is not None
    with pytest.raises(SessionQuarantined):
        await store.claim("s", clock.now())
    clock.advance(QUARANTINE_SECONDS + 1)

    two = Process(store, clock, say("well again"))
    await two.app.start()
    assert (await _turn_of(two)).text == "well again"
    await two.app.aclose()


# Tools that outlive their turn ------------------------------------------------------------------------------------------


async def test_a_tool_that_outlived_its_turn_and_not_its_process_is_told_of() -> None:
    store, clock = MemoryStore(), FakeClock()
    mortal = MortalStore(store)
    first = Process(mortal, clock, calls(call("sleep")), tools=(sleep,))
    turn = await first.chat.send("go")
    await first.until(CallStarted)
    await turn.cancel()
    settled = await first.until(CallFinished)
    assert (settled.state, settled.still_running) == ("cancelled", True)
    assert (await store.info("s")).is_awake
    mortal.kill()
    await first.app.aclose()

    second = Process(store, clock, calls(call("sleep")), say("I see."), tools=(sleep,))
    await second.app.start()

    assert (await second.until(LateResultReceived)).output == Output(LATE_RESULT_LOST, code="outcome_unknown")
    assert not (await store.info("s")).is_awake
    await (await second.chat.send("and?"))
    assert "died" in str(second.model.requests[0].messages)
    await second.app.aclose()


async def test_a_process_that_is_told_to_leave_lets_go_between_two_steps() -> None:
    store, clock = MemoryStore(), FakeClock()
    opened = asyncio.Event()

    @tool
    async def wait() -> str:
        await opened.wait()
        return "waited"

    first = Process(store, clock, calls(call("wait")), say("never asked here"), tools=(wait,))
    turn = await first.chat.send("go")
    await first.until(CallStarted)
    leaving = asyncio.ensure_future(first.app.drain(SOON))
    await asyncio.sleep(0.01)
    opened.set()
    await leaving
    await first.app.aclose()
    assert len(first.model.requests) == 1

    second = Process(store, clock, calls(call("wait")), say("Done."), tools=(wait,))
    await second.app.start()
    assert (await Turn(second.app, "s", turn.id, "")).text == "Done."
    assert not await second.events(StepRestarted)
    await second.app.aclose()
