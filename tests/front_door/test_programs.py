"""The programs that the library's API was designed from, as they were written down, on a provider that answers by script.

Between `fmt: off` and `fmt: on` nothing is changed, and nothing is left out: where the design has an ellipsis there is a
value, and around it stands what a program would have (a database, a prompt).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.helpers.stores import ALL, opened_sql

from everturn import Agent, App, RunResult, ToolContext, TurnInfo, handoff, input_guardrail, output_guardrail, tool
from everturn.core.store_ports import Store
from everturn.testing import MemoryStore
from everturn.testing.provider import Call, Provider, Say

REFUND = '{"order": 4512, "cents": 2900, "reason": "broken"}'


def test_one_question(provider: Provider, capsys: pytest.CaptureFixture[str]) -> None:
    provider.script("claude-opus-5", [[Say("Because of Rayleigh scattering.")]])
    # fmt: off
    from everturn import Agent

    agent = Agent("anthropic:claude-opus-5", instructions="Answer in one sentence.")
    result = agent.run_sync("Why is the sky blue?")      # or: await agent.run(...)
    print(result.output, result.usage)
    # fmt: on
    assert capsys.readouterr().out.startswith("Because of Rayleigh scattering. Usage(")
    [request] = provider.seen
    assert [block["text"] for block in request.body["system"]] == ["Answer in one sentence."]  # and nothing else
    assert "tools" not in request.body


async def test_one_question_awaited(provider: Provider) -> None:
    provider.script("claude-opus-5", [[Say("Because of Rayleigh scattering.")]])
    agent = Agent("anthropic:claude-opus-5", instructions="Answer in one sentence.")
    assert (await agent.run("Why is the sky blue?")).output == "Because of Rayleigh scattering."


# Tools, dependencies, typed output ---------------------------------------------------------------------------------


class Order(BaseModel):
    """What `look_up` finds."""

    number: int
    customer: str
    cents: int


class Database:
    """Orders of customers."""

    async def order(self, customer: str, order: int) -> Order:
        return Order(number=order, customer=customer, cents=2900)


connections: list[Database] = []


async def connect() -> Database:
    connections.append(Database())
    return connections[-1]


prompt = "Help with orders."


# fmt: off
@dataclass
class Deps:
    db: Database
    customer: str

class Refund(BaseModel):
    order: int
    cents: int
    reason: str

@tool(read_only=True)
async def look_up(ctx: ToolContext[Deps], order: int) -> Order:
    """Find an order of this customer."""
    return await ctx.deps.db.order(ctx.deps.customer, order)

@tool(approval="ask")                     # neither read_only nor idempotent: runs at most once
async def refund(ctx: ToolContext[Deps], order: int, cents: int) -> str: ...

async def deps(turn: TurnInfo) -> Deps:   # called by every process that takes the turn up, so a crash does not lose it
    return Deps(await connect(), customer=turn.metadata["customer"])

support = Agent("openai:gpt-5.2", name="support", instructions=prompt, tools=[look_up, refund], deps=deps, output_type=Refund)
# fmt: on


async def test_tools_dependencies_and_typed_output(provider: Provider) -> None:
    provider.script("gpt-5.2", [[Call("look_up", '{"order": 4512}')], [Say(REFUND)]])
    # fmt: off
    result = await support.run("I want my money back for 4512", metadata={"customer": "ada"})
    # fmt: on
    assert result.output == Refund(order=4512, cents=2900, reason="broken")
    found = provider.seen[1].body["input"][-1]
    assert found["type"] == "function_call_output"
    assert Order.model_validate_json(found["output"]) == Order(number=4512, customer="ada", cents=2900)
    assert provider.seen[0].body["text"]["format"]["type"] == "json_schema"  # the vendor's own structured output


async def test_a_result_that_may_wait_for_somebody(provider: Provider) -> None:
    provider.script("gpt-5.2", [[Call("refund", '{"order": 4512, "cents": 2900}')], [Say(REFUND)]])
    with support.override(deps=Deps(Database(), "ada")):
        # fmt: off
        result = await support.run("…")
        if result.status == "waiting":
            for gate in result.gates:
                await gate.approve()            # .approve(arguments={…}), .approve(always=True), .deny("why", stop=True), .submit(value)
            result = await result.resume()      # or: resolve them from another process, tomorrow
        # fmt: on
    assert result.status == "completed"
    assert result.output.cents == 2900
    assert (result.stats.steps, result.stats.calls) == (2, 1)


# A conversation that lasts -----------------------------------------------------------------------------------------


@pytest.fixture(params=ALL)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Store]:
    if request.param == "memory":
        yield MemoryStore()
        return
    async with opened_sql(request.param, tmp_path) as opened:
        yield opened


async def test_a_conversation_that_lasts(provider: Provider, store: Store) -> None:
    provider.script("gpt-5.2", [[Say(REFUND)]])
    billing = Agent("openai:gpt-5.2", name="billing")
    with support.override(deps=Deps(Database(), "ada")):  # the second message below has no metadata
        await last(billing, store)


async def last(billing: Agent[str], store: Store) -> None:
    # fmt: off
    app = App(agents=[support, billing], store=store)               # store, engine, bus, rules, budgets; today's Runtime
    chat = app.chat("session-7", agent=support)                     # created on the first message; the same call later continues it
    result = await chat.run("And the other order?", metadata={"customer": "ada"})
    turn = await chat.send("…", key="web-123")                      # a handle that is safe to lose: idempotent, durable
    # fmt: on
    assert result.output == Refund(order=4512, cents=2900, reason="broken")
    del turn
    again = await chat.send("…", key="web-123")
    assert not again.is_new
    assert (await again.result()).status == "completed"
    assert [message.role for message in await app.chat("session-7").messages()] == ["user", "assistant"] * 2
    await app.aclose()


# More than one agent -----------------------------------------------------------------------------------------------


class Notes(BaseModel):
    """What a researcher finds."""

    facts: list[str]


@tool(read_only=True)
async def search(query: str) -> str:
    """Search the archive."""
    return f"three pages about {query}"


async def test_more_than_one_agent(provider: Provider) -> None:
    provider.script("gpt-5.2-mini", [[Call("search", '{"query": "tea"}')], [Say('{"facts": ["tea is a leaf"]}')]])
    research, transfer = Call("researcher", '{"task": "What is tea?"}'), Call("transfer_to_billing", "{}")
    provider.script("claude-opus-5", [[research], [transfer]])
    provider.script("gpt-5.2", [[Say("It costs 3 euros.")]])
    # fmt: off
    researcher = Agent("openai:gpt-5.2-mini", name="researcher", tools=[search], output_type=Notes)
    writer = Agent("anthropic:claude-opus-5", name="writer", tools=[researcher.as_tool(), handoff("billing")])
    # fmt: on
    billing = Agent("openai:gpt-5.2", name="billing", instructions="You answer for bills.")
    async with App(agents=[writer, billing]) as app:
        result: RunResult[Any] = await app.run(writer, "What is tea, and what does it cost?")
        assert result.output == "It costs 3 euros."
        assert result.state is not None
        outputs = [call.output.text for call in result.state.calls.values() if call.output]
        assert outputs[0] == '{"facts": ["tea is a leaf"]}'  # the sub-agent's typed output
        assert result.state.options.agent == "billing"


# Guardrails --------------------------------------------------------------------------------------------------------

# As text, because a type checker wants annotations in a file: `docs_src/plugins/guardrails.py` has them.
GUARDRAILS = """
@input_guardrail
async def no_secrets(ctx, message):
    if leaks(message.text): ctx.refuse("I cannot help with that.")

@output_guardrail(buffer="step")       # "none" | "sentence" | "step": how much waits until it has passed
async def no_ssn(ctx, text): return redact(text)                           # replace, ctx.refuse(…), or pass
"""


async def test_guardrails(provider: Provider) -> None:
    provider.script("gpt-5.2", [[Say("It is 123-45-6789.")]])
    names: dict[str, Any] = {
        "input_guardrail": input_guardrail,
        "output_guardrail": output_guardrail,
        "leaks": lambda text: "password" in text,
        "redact": lambda text: text.replace("123-45-6789", "***"),
    }
    exec(GUARDRAILS, names)
    agent = Agent("openai:gpt-5.2", plugins=[names["no_secrets"], names["no_ssn"]])
    refused = await agent.run("My password is 1234.")
    assert (refused.status, refused.text) == ("refused", "I cannot help with that.")
    assert provider.seen == []
    assert (await agent.run("What is my number?")).output == "It is ***."
