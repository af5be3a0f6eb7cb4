"""What the design of the library's API says in words beside its programs: each method is there, and does what it says."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel

from everturn import (
    Agent,
    Always,
    App,
    NoOutput,
    OutputRetry,
    RunContext,
    RunResult,
    StillWaiting,
    ToolContext,
    ToolError,
    TurnError,
    TurnInfo,
    handoff,
    tool,
)
from everturn.errors import ConfigError, NotResumable
from everturn.testing import FakeClock, MemoryStore, ScriptedModel, call, calls, say
from everturn.testing.provider import Call, Provider, Say

PAY = calls(call("pay", cents=900))


class Bill(BaseModel):
    """What an agent says of a payment."""

    cents: int
    reason: str = ""


@tool(approval="ask")
async def pay(cents: int) -> str:
    """Pay somebody."""
    return f"paid {cents}"


def payer(*answers: Any) -> Agent[str]:
    return Agent(ScriptedModel(*(answers or (PAY, say("Done.")))), name="payer", tools=[pay])


def outputs(result: RunResult[Any]) -> list[str]:
    assert result.state is not None
    return [tool_call.output.text for tool_call in result.state.calls.values() if tool_call.output]


# A result that may wait for somebody -------------------------------------------------------------------------------


async def test_a_call_is_approved_with_other_arguments() -> None:
    result = await payer().run("Pay.")
    [gate] = result.gates
    await gate.approve(arguments={"cents": 1})
    assert outputs(await result.resume()) == ["paid 1"]


async def test_an_approval_is_remembered_for_the_session() -> None:
    async with App(agents=[payer(PAY, say("Once."), PAY, say("Twice."))]) as app:
        chat = app.chat("bills")
        result = await chat.run("Pay.")
        await result.gates[0].approve(always=True)
        assert (await result.resume()).output == "Once."
        assert (await chat.run("Pay.")).output == "Twice."  # nobody was asked
        assert (await app.run("payer", "Pay.")).status == "waiting"  # in another session somebody is


async def test_an_approval_is_remembered_in_a_scope_and_until_a_time() -> None:
    clock = FakeClock()
    async with App(agents=[payer()], clock=clock) as app:
        result = await app.run("payer", "Pay.")
        rule = result.gates[0].gate.offers[0]
        await result.gates[0].approve(always=Always(rule=rule, scope="tenant", until=clock.now() + 60))
        assert (await result.resume()).output == "Done."
        assert (await app.run("payer", "Pay.")).output == "Done."
        clock.advance(61)
        assert (await app.run("payer", "Pay.")).status == "waiting"


async def test_a_denial_may_stop_the_turn() -> None:
    result = await payer().run("Pay.")
    await result.gates[0].deny("why", stop=True)
    stopped = await result.resume()
    assert (stopped.status, stopped.stats.steps) == ("limited", 1)
    with pytest.raises(NoOutput, match="limited"):
        _ = stopped.output


async def test_a_value_is_submitted_in_the_place_of_a_call() -> None:
    result = await payer().run("Pay.")
    await result.gates[0].submit("paid by hand")
    assert outputs(await result.resume()) == ["paid by hand"]


async def test_no_output_and_still_waiting_name_what_is_open() -> None:
    result = await payer().run("Pay.")
    assert result.waiting_for == result.gates
    with pytest.raises(NoOutput, match="is waiting for an answer"):
        _ = result.output
    with pytest.raises(StillWaiting, match="pay"):
        await result.resume()


def test_everything_is_there_without_an_event_loop() -> None:
    result = payer().run_sync("Pay.")
    result.gates[0].approve_sync()
    assert result.resume_sync().output == "Done."
    app = App(agents=[payer()])
    result = app.run_sync(payer_of(app), "Pay.")
    result.gates[0].deny_sync("no")
    assert result.resume_sync().output == "Done."


def payer_of(app: App) -> Agent[Any]:
    agent = app.agents["payer"]
    assert isinstance(agent, Agent)
    return agent


async def test_another_process_has_the_result_by_its_id() -> None:
    store = MemoryStore()
    async with App(agents=[payer()], store=store) as app:
        pending = await app.run("payer", "Pay.")
    async with App(agents=[payer()], store=store) as app:
        result = await app.turn(pending.id).result()
        await result.gates[0].approve()
        assert (await result.resume()).output == "Done."


async def test_a_turn_that_failed_raises_an_error_with_the_result() -> None:
    def deps(turn: TurnInfo) -> None:
        raise OSError("no database")

    with pytest.raises(TurnError) as raised:
        await Agent(ScriptedModel(say("Hi.")), deps=deps).run("Hello")
    error = raised.value
    assert (error.kind, error.phase) == ("dependencies", "prepare")
    assert isinstance(error.result, RunResult)


# Streams and typed output ------------------------------------------------------------------------------------------


async def test_a_stream_shows_events_or_text_or_partial_objects(provider: Provider) -> None:
    provider.script("gpt-5.2", [[Say('{"cents": 900, "reason": "broken"}')]])
    agent = Agent("openai:gpt-5.2", output_type=Bill)
    async with agent.stream("…") as run:
        kinds = [type(event).__name__ async for event in run]
        assert (kinds[0], kinds[-1]) == ("TurnStarted", "TurnCompleted")
    async with agent.stream("…") as run:
        text = "".join([piece async for piece in run.text_stream()])
        assert Bill.model_validate_json(text) == Bill(cents=900, reason="broken")
    async with agent.stream("…") as run:
        partial = [bill async for bill in run.stream_output()]
        assert partial[-1] == (await run.result()).output == Bill(cents=900, reason="broken")


async def test_a_validator_sends_an_output_back() -> None:
    agent = Agent(ScriptedModel(say('{"cents": -1}'), say('{"cents": 1}')), output_type=Bill)

    @agent.output_validator
    def positive(ctx: RunContext, bill: Bill) -> Bill:
        if bill.cents < 0:
            raise OutputRetry("cents is negative")
        return bill

    assert (await agent.run("…")).output == Bill(cents=1)


async def test_a_union_is_an_output_type() -> None:
    agent = Agent(ScriptedModel(say('{"cents": 1}')), output_type=Bill | int)
    assert (await agent.run("…")).output == Bill(cents=1)


async def test_instructions_may_be_functions_and_be_rendered_for_each_step() -> None:
    model = ScriptedModel(calls(call("look")), say("Done."))

    @tool(read_only=True)
    async def look() -> str:
        """Look."""
        return "seen"

    agent = Agent(model, instructions=["Be short.", lambda: "Be kind."], tools=[look])
    steps: list[int] = []

    @agent.instructions(each_step=True)
    def now() -> str:
        steps.append(len(steps))
        return f"Step {len(steps)}."

    await agent.run("…")
    assert "Be short." in model.requests[0].system
    assert "Be kind." in model.requests[0].system
    assert len(steps) == 2


async def test_a_function_among_the_instructions_reads_the_message() -> None:
    model = ScriptedModel(say("In 30 days."), say("In 30 days."), say("In 30 days."))
    agent = Agent(model, name="support")

    @agent.instructions
    def documents(ctx: RunContext) -> str:
        return "Returns: within 30 days." if "return" in ctx.prompt else "Nothing is known."

    async with App(agents=[agent]) as app:
        chat = app.chat()
        result = await chat.run("May I return it?")
        await chat.run("And the weather?")
        await (await chat.rerun(result.messages[0])).result()  # whose message is of an earlier turn
    assert [request.system.partition(":")[0] for request in model.requests] == [
        "Returns",
        "Nothing is known.",
        "Returns",
    ]


# More than one agent -----------------------------------------------------------------------------------------------


async def test_a_tool_runs_an_agent_and_gets_its_typed_output() -> None:
    clerk = Agent(ScriptedModel(say('{"cents": 900}')), name="clerk", output_type=Bill)
    seen: list[Any] = []

    @tool(idempotent=True)
    async def bill(ctx: ToolContext) -> str:
        """Write a bill."""
        typed = await ctx.run_agent(clerk, "Write a bill.", metadata={"customer": "ada"})
        seen.append((typed.cents, await ctx.run_agent("clerk", "And again.")))
        return "billed"

    @tool(idempotent=True)
    async def ask_nobody(ctx: ToolContext) -> str:
        """Ask an agent that there is not."""
        return await ctx.run_agent("nobody", "Hello?")

    boss = Agent(
        ScriptedModel(calls(call("bill"), call("ask_nobody")), say("Done.")), name="boss", tools=[bill, ask_nobody]
    )
    async with App(agents=[boss, clerk]) as app:
        result = await app.run(boss, "…")
        assert result.output == "Done."
        assert seen == [(900, '{"cents": 900}')]
        assert [("nobody" in text) for text in outputs(result)] == [False, True]


async def test_an_agent_without_a_name_is_not_run_by_a_tool() -> None:
    nameless = Agent(ScriptedModel(say("Hi.")))
    errors: list[Exception] = []

    @tool(idempotent=True)
    async def bill(ctx: ToolContext) -> str:
        """Write a bill."""
        try:
            return await ctx.run_agent(nameless, "Hello?")
        except ConfigError as error:
            errors.append(error)
            raise ToolError("no") from None

    await Agent(ScriptedModel(calls(call("bill")), say("Done.")), tools=[bill]).run("…")
    assert "name='researcher'" in str(errors[0])


async def test_a_handoff_is_to_an_agent_or_to_a_name() -> None:
    billing = Agent(
        ScriptedModel(
            say(
                "",
            ),
            say("It costs 3 euros."),
        ),
        name="billing",
    )
    for target in (billing, "billing"):
        front = Agent(ScriptedModel(calls(call("transfer_to_billing"))), name="front", tools=[handoff(target)])
        async with App(agents=[front, billing]) as app:
            assert (await app.run(front, "…")).output == "It costs 3 euros."


# A conversation that lasts -----------------------------------------------------------------------------------------


async def test_an_existing_conversation_is_taken_in() -> None:
    model = ScriptedModel(say(""), say("You asked for tea."))
    async with App(agents=[Agent(model, name="support")]) as app:
        chat = app.chat("old")
        await chat.import_messages(
            [
                {"role": "user", "content": "Tea, please."},
                {"role": "assistant", "content": "Here you are."},
            ]
        )
        assert (await chat.run("What did I ask for?")).output == "You asked for tea."
        assert [message.imported for message in await chat.messages()] == [True, True, False, False]


async def test_a_message_is_sent_later() -> None:
    clock = FakeClock(1_000.0)
    async with App(agents=[Agent(ScriptedModel(say("Good morning.")), name="support")], clock=clock) as app:
        turn = await app.chat("s").send("…", at=datetime.fromtimestamp(2_000, UTC))
        clock.advance(999)
        assert await app.chat("s").messages() == []
        clock.advance(1)
        assert (await turn.result()).output == "Good morning."


# Work that takes time ----------------------------------------------------------------------------------------------


class Carrier:
    """Another system: what it was told, and what it charged."""

    def __init__(self) -> None:
        self.charged, self.tokens = 0, list[str]()

    def charge(self, order: int) -> int:
        self.charged += 1
        return order


def ship_with(carrier: Carrier) -> Any:
    async def ship(ctx: ToolContext, order: int) -> str:
        """Charge for an order and ship it."""
        receipt = await ctx.step("charge", carrier.charge, order)
        await ctx.sleep(hours=3)
        parcel = await ctx.external(timeout=3600)
        await ctx.step("request", carrier.tokens.append, parcel.token)
        return f"receipt {receipt}, parcel {await parcel.result()}"

    return ship


async def test_a_tool_that_waits_is_suspended_and_run_again_with_recorded_answers() -> None:
    carrier, clock = Carrier(), FakeClock()
    ship = tool(resumable=True)(ship_with(carrier))
    agent = Agent(ScriptedModel(calls(call("ship", order=7)), say("Shipped.")), name="post", tools=[ship])
    async with App(agents=[agent], clock=clock) as app:
        result = await app.run(agent, "…")
        assert [wait.kind for wait in result.waits] == ["timer"]
        clock.advance(3 * 3600)
        result = await result.resume()
        assert (result.gates, [wait.kind for wait in result.waits]) == ((), ["external"])
        await app.complete(carrier.tokens[0], "P-1")
        result = await result.resume()
        assert outputs(result) == ["receipt 7, parcel P-1"]
        assert carrier.charged == 1


async def test_in_a_tool_that_did_not_declare_it_they_are_refused() -> None:
    carrier = Carrier()
    ship = tool(ship_with(carrier))
    result = await Agent(ScriptedModel(calls(call("ship", order=7)), say("No.")), tools=[ship]).run("…")
    assert "resumable=True" in outputs(result)[0]
    assert carrier.charged == 0
    assert NotResumable.__doc__


async def test_a_workflow_is_started_from_code() -> None:
    carrier, clock = Carrier(), FakeClock()
    async with App(agents=[Agent(ScriptedModel(say("unused")), name="unused")], clock=clock) as app:
        ship = app.workflow(ship_with(carrier))
        run = await ship.start(7, key="order 7")
        first = await app.turn(f"{run.session}/{run.turn}").result()
        assert [wait.kind for wait in first.waits] == ["timer"]
        clock.advance(3 * 3600)
        await first.resume()
        await app.complete(carrier.tokens[0], "P-1")
        assert await run.result() == "receipt 7, parcel P-1"
        assert await (await ship.start(7, key="order 7")).result() == "receipt 7, parcel P-1"
        assert carrier.charged == 1


# Promises ----------------------------------------------------------------------------------------------------------


async def test_a_turn_that_is_used_like_a_result_says_so() -> None:
    turn: Any = await Agent(ScriptedModel(say("Hi."))).chat().send("…")
    with pytest.raises(AttributeError, match=r"await turn\.result\(\)"):
        _ = turn.output


async def test_a_program_sees_spans_of_its_own_tracer_provider(provider: Provider) -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from everturn.telemetry import instrument, uninstrument

    provider.script("gpt-5.2", [[Call("search", '{"query": "tea"}')], [Say("Tea is a leaf.")]])
    exporter, tracer_provider = InMemorySpanExporter(), TracerProvider()
    tracer_provider.add_span_processor(SimpleSpanProcessor(exporter))

    @tool(read_only=True)
    async def search(query: str) -> str:
        """Search the archive."""
        return f"three pages about {query}"

    instrument(tracer_provider=tracer_provider, content=True)
    try:
        agent = Agent("openai:gpt-5.2", instructions="Be brief.", tools=[search])
        with tracer_provider.get_tracer("program").start_as_current_span("request") as outer:
            await agent.run("What is tea?")
    finally:
        uninstrument()
    spans = {span.name.split()[0]: span for span in exporter.get_finished_spans()}
    assert {"invoke_agent", "chat", "execute_tool", "request"} <= spans.keys()
    parent = spans["invoke_agent"].parent
    assert parent is not None
    assert parent.span_id == outer.get_span_context().span_id
    assert "Be brief." in str(dict(spans["chat"].attributes or {}))  # the request as it was sent
