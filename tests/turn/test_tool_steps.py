"""Durable tools: steps that are run once, timers and external results; in this process or the next."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everturn import App, Chat, ToolContext, tool
from everturn.core.events import (
    CallFinished,
    CallResumed,
    CallSuspended,
    CommandDropped,
    ToolStepFinished,
    ToolStepStarted,
    TurnCancelled,
    TurnStarted,
    WaitFinished,
    WaitStarted,
)
from everturn.core.ports import Question
from everturn.errors import (
    CallbackConflict,
    ConfigError,
    ExternalTimeout,
    NotResumable,
    UnknownCallback,
)
from everturn.events import TurnSuspended
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, call, calls, say

SOON = 5


class Process:
    """An app of its own on a shared store and clock, and one session on it."""

    def __init__(self, store: Any, clock: FakeClock, tools: Any, *script: Any) -> None:
        self.clock, self.store = clock, store
        model = ScriptedModel(*script)
        self.app = App(model, tools=tools, store=store, clock=clock)
        self.chat = Chat(model, session="s", app=self.app)

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for _ in range(100):
            await asyncio.sleep(0)

    async def events(self, kind: type[Any]) -> list[Any]:
        return [entry.event for entry in await self.store.events("s") if isinstance(entry.event, kind)]

    async def until(self, kind: type[Any], count: int = 1) -> Any:
        for _ in range(SOON * 1000):
            if len(found := await self.events(kind)) >= count:
                return found[-1]
            await asyncio.sleep(0.001)
        raise AssertionError(f"there were no {count} {kind.__name__}")


class Outside:
    """The world outside: what was really done, and the tokens that were given away."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.tokens: list[str] = []
        self.errors: list[Exception] = []

    def charge(self, cents: int) -> dict[str, int]:
        self.done["charge"] += 1
        return {"receipt": 40 + self.done["charge"], "cents": cents}

    async def request(self, token: str) -> object:
        self.done["request"] += 1
        self.tokens.append(token)
        return object()  # what it returns is not recorded

    def tools(self, **declared: Any) -> list[Any]:
        @tool(**declared)
        async def buy(ctx: ToolContext) -> str:
            self.done["run"] += 1
            receipt = await ctx.step("charge", self.charge, 250)
            await ctx.sleep(hours=3)
            again = await ctx.step("charge", self.charge, 1)
            return f"{receipt['receipt']} {again['receipt']}"

        @tool(**declared)
        async def order(ctx: ToolContext) -> str:
            self.done["run"] += 1
            try:
                value = await ctx.external(self.request, timeout=60)
            except TimeoutError as error:
                self.errors.append(error)
                return "nobody answered"
            return f"delivered {value}"

        return [buy, order]


RESUMABLE = {"resumable": True}


@pytest.mark.parametrize("declared", [RESUMABLE, {"idempotent": True}, {"read_only": True}], ids=str)
async def test_a_step_before_a_sleep_is_run_once_and_its_value_is_known_after_it(declared: Any) -> None:
    outside = Outside()
    process = Process(MemoryStore(), FakeClock(), outside.tools(**declared), calls(call("buy")), say("Bought."))
    turn = await process.chat.send("buy!")
    await process.until(TurnSuspended)
    assert (await process.store.info("s")).due == process.clock.now() + 3 * 3600
    assert await process.chat.gates() == []

    await process.pass_time(3 * 3600 - 1)
    assert not await process.events(WaitFinished)
    await process.pass_time(1)

    assert (await turn).text == "Bought."
    assert outside.done == {"charge": 2, "run": 2}
    assert [event.output.text for event in await process.events(CallFinished)] == ["41 42"]
    names = [event.name for event in await process.events(ToolStepFinished)]
    assert names == ["charge", "charge#2"]
    assert len(await process.events(ToolStepStarted)) == (2 if declared == RESUMABLE else 0)
    assert (await process.store.info("s")).due == 0
    await process.app.aclose()


async def test_whoever_awaits_a_sleeping_turn_is_not_told_that_a_person_is_missing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    outside = Outside()
    process = Process(MemoryStore(), FakeClock(), outside.tools(**RESUMABLE), calls(call("buy")), say("Bought."))
    turn = await process.chat.send("buy!")
    awaited = asyncio.ensure_future(collect(turn))
    await process.until(TurnSuspended)
    await process.pass_time(60)
    await process.pass_time(3 * 3600)
    assert (await awaited).text == "Bought."
    assert [record for record in caplog.records if "waits for" in record.message] == []
    await process.app.aclose()


async def collect(turn: Any) -> Any:
    return await turn


@pytest.mark.parametrize("asleep", [60, 4 * 3600], ids=["the timer is set anew", "it is over at the start"])
async def test_a_sleep_ends_after_a_restart(asleep: float) -> None:
    store, clock, outside = MemoryStore(), FakeClock(), Outside()
    first = Process(store, clock, outside.tools(**RESUMABLE), calls(call("buy")))
    await first.chat.send("buy!")
    await first.until(TurnSuspended)
    await first.app.aclose()
    clock.advance(asleep)

    second = Process(store, clock, outside.tools(**RESUMABLE), say("Bought."))
    await second.app.start()
    await second.pass_time(3 * 3600)

    assert (await second.until(CallFinished)).state == "completed"
    assert outside.done == {"charge": 2, "run": 2}
    await second.app.aclose()


async def test_a_timer_fires_while_another_call_keeps_the_turn_busy() -> None:
    outside, hold = Outside(), asyncio.Event()

    @tool(timeout=1e6)
    async def slow() -> str:
        await hold.wait()
        return "slow"

    tools = [*outside.tools(**RESUMABLE), slow]
    process = Process(MemoryStore(), FakeClock(), tools, calls(call("slow"), call("buy")), say("Bought."))
    turn = await process.chat.send("buy!")
    await process.until(WaitStarted)
    await process.until(CallSuspended)
    await process.pass_time(1)  # the driver hears of the timer
    await process.pass_time(3 * 3600)
    assert (await process.until(CallFinished)).output.text == "41 42"
    hold.set()
    assert (await turn).text == "Bought."
    await process.app.aclose()


@pytest.mark.parametrize("operation", ["step", "sleep", "external", "token"])
async def test_in_any_other_tool_they_are_refused_at_once_with_the_ways_to_fix_it(operation: str) -> None:
    done: list[str] = []
    errors: list[Exception] = []

    @tool
    async def plain(ctx: ToolContext) -> str:
        try:
            if operation == "step":
                await ctx.step("charge", done.append, "step")
            elif operation == "sleep":
                await ctx.sleep(1)
            elif operation == "external":
                await ctx.external(done.append)
            else:
                await ctx.external(timeout=1)
        except NotResumable as error:
            errors.append(error)
            raise
        return "not reached"

    process = Process(MemoryStore(), FakeClock(), [plain], calls(call("plain")), say("No."))
    assert (await (await process.chat.send("go"))).text == "No."
    assert done == []
    [finished] = await process.events(CallFinished)
    assert (finished.state, finished.output.code) == ("failed", "not_resumable")
    for way in ("read_only=True", "idempotent=True", "resumable=True"):
        assert way in str(errors[0])
    assert not await process.events(WaitStarted)
    await process.app.aclose()


async def test_an_external_result_is_delivered_once_and_a_repeat_is_harmless() -> None:
    outside = Outside()
    process = Process(MemoryStore(), FakeClock(), outside.tools(**RESUMABLE), calls(call("order")), say("Ordered."))
    turn = await process.chat.send("order!")
    await process.until(TurnSuspended)
    [token] = outside.tokens
    assert await process.chat.gates() == []

    assert await process.app.complete(token, {"b": 1, "a": [2]}) is True
    assert await process.app.complete(token, {"a": [2], "b": 1}) is False
    with pytest.raises(CallbackConflict):
        await process.app.complete(token, "something else")
    assert (await turn).text == "Ordered."
    assert await process.app.complete(token, {"a": [2], "b": 1}) is False
    with pytest.raises(CallbackConflict):
        await process.app.complete(token, "something else")

    assert outside.done == {"request": 1, "run": 2}
    assert (await process.events(CallFinished))[0].output.text == "delivered {'a': [2], 'b': 1}"
    log = b"".join([repr(entry).encode() for entry in await process.store.events("s")])
    assert token.encode() not in log
    assert token.rpartition(".")[2].encode() not in log
    await process.app.aclose()


async def test_a_result_that_arrives_while_the_token_is_given_away_is_not_lost() -> None:
    app: list[App] = []

    async def answers_at_once(token: str) -> None:
        await app[0].complete(token, 7)

    @tool(resumable=True)
    async def order(ctx: ToolContext) -> int:
        return await ctx.external(answers_at_once)

    process = Process(MemoryStore(), FakeClock(), [order], calls(call("order")), say("Ordered."))
    app.append(process.app)
    assert (await (await process.chat.send("order!"))).text == "Ordered."
    assert (await process.events(CallFinished))[0].output.text == "7"
    await process.app.aclose()


async def test_without_a_function_the_tool_gets_the_token_and_gives_it_away_itself() -> None:
    outside = Outside()
    seen: list[str] = []

    @tool(resumable=True)
    async def order(ctx: ToolContext) -> str:
        parcel, bill = await ctx.external(timeout=60), await ctx.external()
        seen.append(f"{parcel.token} {bill.token} {bill!r}")
        await ctx.step("request", outside.tokens.append, parcel.token)
        await ctx.step("bill", outside.tokens.append, bill.token)
        return f"{await bill.result()}, {await parcel.result()}"  # in another order than they were started

    process = Process(MemoryStore(), FakeClock(), [order], calls(call("order")), say("Ordered."))
    turn = await process.chat.send("order!")
    await process.until(TurnSuspended)
    assert [event.until > 0 for event in await process.events(WaitStarted)] == [True, False]
    parcel, bill = outside.tokens
    await process.app.complete(parcel, "a parcel")  # which is not what it waits for now
    await process.app.complete(bill, 900)
    assert (await turn).text == "Ordered."
    assert [event.output.text for event in await process.events(CallFinished)] == ["900, a parcel"]
    assert set(seen) == {f"{parcel} {bill} ExternalResult(token=…)"}
    assert outside.tokens == [parcel, bill]
    await process.app.aclose()


async def test_an_external_result_that_nobody_delivers_times_out_where_it_is_awaited() -> None:
    errors: list[Exception] = []

    @tool(resumable=True)
    async def order(ctx: ToolContext) -> str:
        try:
            return str(await (await ctx.external(timeout=60)).result())
        except TimeoutError as error:
            errors.append(error)
            return "nobody answered"

    process = Process(MemoryStore(), FakeClock(), [order], calls(call("order")), say("Then not."))
    turn = await process.chat.send("order!")
    await process.until(TurnSuspended)
    await process.pass_time(60)
    assert (await turn).text == "Then not."
    assert [type(error) for error in errors] == [ExternalTimeout]
    await process.app.aclose()


async def test_an_external_result_that_does_not_come_in_time_is_a_timeout_error() -> None:
    outside = Outside()
    process = Process(MemoryStore(), FakeClock(), outside.tools(**RESUMABLE), calls(call("order")), say("Then not."))
    turn = await process.chat.send("order!")
    await process.until(TurnSuspended)
    await process.pass_time(60)
    assert (await turn).text == "Then not."
    assert [type(error) for error in outside.errors] == [ExternalTimeout]
    with pytest.raises(UnknownCallback):
        await process.app.complete(outside.tokens[0], 1)
    await process.app.aclose()


async def test_a_result_that_was_admitted_in_time_counts_although_nobody_was_there_to_act_on_it() -> None:
    store, clock, outside = MemoryStore(), FakeClock(), Outside()
    first = Process(store, clock, outside.tools(**RESUMABLE), calls(call("order")))
    await first.chat.send("order!")
    await first.until(TurnSuspended)
    admit = first.app.store.admit
    await first.app.drain(0)  # nobody drives it
    from everturn.calls.callbacks import complete_callback

    clock.advance(59)
    assert await complete_callback(store, admit, outside.tokens[0], "in time", clock.now())
    await first.app.aclose()
    clock.advance(3600)

    second = Process(store, clock, outside.tools(**RESUMABLE), say("Ordered."))
    await second.app.start()
    assert (await second.until(CallFinished)).output.text == "delivered in time"
    await second.app.aclose()


async def test_wrong_tokens_are_unknown() -> None:
    outside = Outside()
    process = Process(MemoryStore(), FakeClock(), outside.tools(**RESUMABLE), calls(call("order")), say("Ordered."))
    turn = await process.chat.send("order!")
    await process.until(TurnSuspended)
    [token] = outside.tokens
    other = Process(MemoryStore(), FakeClock(), outside.tools(**RESUMABLE), calls(call("order")), say("Ordered."))
    await other.chat.send("order!")
    await other.until(TurnSuspended)
    data, _, mac = token.rpartition(".")
    flipped = data[:-1] + ("A" if data[-1] != "A" else "B")
    wrong = ["", "evc_", "x", token[:-2], token + "A", f"{flipped}.{mac}", f"{data}.{'A' * len(mac)}", token + "\0"]
    for text in [*wrong, "evc_" + "A" * 10_000, outside.tokens[1]]:  # the last is the same wait in another store
        with pytest.raises(UnknownCallback):
            await process.app.complete(text, 1)
    await turn.cancel()
    await process.until(TurnCancelled)
    with pytest.raises(UnknownCallback):
        await process.app.complete(token, 1)
    for app in (process.app, other.app):
        await app.aclose()


async def test_an_exception_of_a_step_is_not_recorded_and_the_step_may_be_run_again() -> None:
    tries: list[int] = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("not yet")
        return "done"

    @tool(resumable=True)
    async def persist(ctx: ToolContext) -> str:
        for _ in range(2):
            try:
                return await ctx.step("flaky", flaky)
            except ValueError:
                await ctx.sleep(minutes=1)
        return "gave up"

    process = Process(MemoryStore(), FakeClock(), [persist], calls(call("persist")), say("Good."))
    turn = await process.chat.send("go")
    await process.until(TurnSuspended)
    await process.pass_time(60)
    assert (await turn).text == "Good."
    # The tool is run again after the first sleep: both of its steps are tried until they have a value.
    assert (await process.events(CallFinished))[0].output.text == "done"
    assert [event.failed for event in await process.events(ToolStepFinished)] == [True, True, False]
    await process.app.aclose()


async def test_a_value_that_json_does_not_give_back_is_refused() -> None:
    @tool(resumable=True)
    async def pair(ctx: ToolContext) -> str:
        return str(await ctx.step("pair", lambda: (1, 2)))

    process = Process(MemoryStore(), FakeClock(), [pair], calls(call("pair")), say("No."))
    await (await process.chat.send("go"))
    [finished] = await process.events(CallFinished)
    assert finished.state == "failed"
    assert "tuple" in finished.output.text
    await process.app.aclose()


@pytest.mark.parametrize("operation", ["step", "sleep", "ask"])
async def test_a_step_cannot_wait(operation: str) -> None:
    @tool(resumable=True)
    async def nested(ctx: ToolContext) -> str:
        async def inner() -> None:
            if operation == "step":
                await ctx.step("inner", lambda: 1)
            elif operation == "sleep":
                await ctx.sleep(1)
            else:
                await ctx.ask(Question("Well?"))

        await ctx.step("outer", inner)
        return "not reached"

    process = Process(MemoryStore(), FakeClock(), [nested], calls(call("nested")), say("No."))
    await (await process.chat.send("go"))
    [finished] = await process.events(CallFinished)
    assert finished.state == "failed"
    assert "cannot wait" in finished.output.text
    await process.app.aclose()


async def test_a_step_beside_a_sleep_ends_before_the_tool_is_suspended() -> None:
    done: list[str] = []
    hold = asyncio.Event()

    async def work() -> str:
        await hold.wait()
        done.append("work")
        return "worked"

    @tool(resumable=True)
    async def both(ctx: ToolContext) -> str:
        worked, _ = await asyncio.gather(ctx.step("work", work), ctx.sleep(60))
        return worked

    process = Process(MemoryStore(), FakeClock(), [both], calls(call("both")), say("Good."))
    turn = await process.chat.send("go")
    await process.until(WaitStarted)
    await process.pass_time(1)
    assert not await process.events(TurnSuspended)
    hold.set()
    await process.until(TurnSuspended)
    await process.pass_time(60)
    assert (await turn).text == "Good."
    assert done == ["work"]
    assert (await process.events(CallFinished))[0].output.text == "worked"
    await process.app.aclose()


async def test_a_tool_that_ends_before_its_timer_leaves_none_behind() -> None:
    @tool(resumable=True, review="always")
    async def hasty(ctx: ToolContext) -> str:
        sleeping.append(asyncio.ensure_future(ctx.sleep(60)))
        for _ in range(1000):
            if await process.events(WaitStarted):
                break
            await asyncio.sleep(0)
        return "done"

    sleeping: list[asyncio.Future[None]] = []
    process = Process(MemoryStore(), FakeClock(), [hasty], calls(call("hasty")), say("Good."))
    turn = await process.chat.send("go")
    await process.until(TurnSuspended)
    [gate] = await process.chat.gates()
    assert (await process.store.info("s")).due == 0
    await process.pass_time(60)
    assert not await process.events(WaitFinished)
    await turn.answer(gate, allow="once")
    assert (await turn).text == "Good."
    sleeping[0].cancel()
    await process.app.aclose()


async def test_a_cancelled_turn_leaves_no_timer() -> None:
    outside = Outside()
    process = Process(MemoryStore(), FakeClock(), outside.tools(**RESUMABLE), calls(call("buy")))
    turn = await process.chat.send("buy!")
    await process.until(TurnSuspended)
    await turn.cancel()
    await process.until(CallFinished)
    assert (await process.store.info("s")).due == 0
    await process.pass_time(4 * 3600)
    assert not await process.events(WaitFinished)
    assert not await process.events(CallResumed)
    await process.app.aclose()


# A plain function, and what a tool knows -----------------------------------------------------------------------------


async def test_a_plain_function_sees_that_its_turn_was_cancelled() -> None:
    import threading

    began, seen = threading.Event(), threading.Event()
    messages: list[str] = []

    @tool
    def busy(ctx: ToolContext) -> str:
        messages.append(ctx.message)
        assert not ctx.cancelled
        began.set()
        while not ctx.cancelled:
            began.wait(0.001)
        seen.set()
        return "stopped"

    process = Process(MemoryStore(), FakeClock(), [busy], calls(call("busy")))
    turn = await process.chat.send("go")
    await asyncio.to_thread(began.wait, SOON)
    await turn.cancel()
    assert await asyncio.to_thread(seen.wait, SOON)
    answer = (await process.chat.messages())[-1]
    assert messages == [answer.id]
    await process.app.aclose()


# Scheduled messages ------------------------------------------------------------------------------------------------


async def test_a_scheduled_message_starts_its_turn_at_its_time_also_after_a_restart() -> None:
    store, clock = MemoryStore(), FakeClock()
    first = Process(store, clock, [], say("not asked"))
    when = datetime.fromtimestamp(clock.now(), UTC) + timedelta(hours=1)
    turn = await first.chat.send("later", at=when, key="k")
    again = await first.chat.send("later", at=when.timestamp(), key="k")
    assert (again.id, again.is_new) == (turn.id, False)
    await first.pass_time(1800)
    assert not await first.events(TurnStarted)
    await first.app.aclose()

    second = Process(store, clock, [], say("now"), say("then"))
    await second.app.start()
    assert (await (await second.chat.send("at once"))).text == "now"
    await second.pass_time(1799)
    assert len(await second.events(TurnStarted)) == 1
    await second.pass_time(1)
    assert (await second.chat.turn(turn.id)).text == "then"
    assert [message.text for message in await second.chat.messages()] == ["at once", "now", "later", "then"]
    await second.app.aclose()


async def test_a_scheduled_message_can_be_cancelled_before_its_time() -> None:
    process = Process(MemoryStore(), FakeClock(), [], say("not asked"))
    turn = await process.chat.send("later", at=process.clock.now() + 60)
    await turn.cancel()
    await process.until(CommandDropped)
    await process.pass_time(120)
    assert not await process.events(TurnStarted)
    assert (await process.events(CommandDropped))[0].reason == "cancelled before it began"
    assert (await turn).text == ""
    await process.app.aclose()


async def test_a_time_without_a_time_zone_is_refused() -> None:
    process = Process(MemoryStore(), FakeClock(), [], say("not asked"))
    for at in (datetime(2030, 1, 1), float("nan"), -1, True, "tomorrow"):  # noqa: DTZ001 - that is the point
        with pytest.raises(ConfigError, match="at="):
            await process.chat.send("later", at=at)  # pyright: ignore[reportArgumentType]
    await process.app.aclose()


async def test_a_wait_says_what_it_is_for_and_this_process_may_deliver_its_value_after_the_suspension() -> None:
    kept: list[Any] = []

    @tool(resumable=True)
    async def order(ctx: ToolContext) -> str:
        """Order."""
        parcel = await ctx.external(timeout=60, label="the carrier" + "!" * 500)
        kept.append(parcel)
        return str(await parcel.result())

    process = Process(MemoryStore(), FakeClock(), [order], calls(call("order")), say("Done."))
    turn = await process.chat.send("order!")
    await process.until(TurnSuspended)
    started = await process.until(WaitStarted)
    assert started.label.startswith("the carrier!")
    assert len(started.label) == 200
    assert await kept[0].deliver("P-1") is True
    assert await kept[0].deliver("P-1") is False
    assert (await turn).text == "Done."
    with pytest.raises(CallbackConflict):
        await kept[0].deliver("P-2")
    assert [event.output.text for event in await process.events(CallFinished)] == ["P-1"]
    await process.app.aclose()
