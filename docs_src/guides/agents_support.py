import asyncio
from dataclasses import dataclass

from pydantic import BaseModel

from everturn import Agent, ToolContext, TurnInfo, tool
from everturn.testing import ScriptedModel, call, calls, say


class Database:
    async def order(self, customer: str, order: int) -> str:
        return f"order {order} of {customer}: a lamp, 2900 cents, broken"


@dataclass
class Deps:
    db: Database
    customer: str


class Refund(BaseModel):
    order: int
    cents: int
    reason: str


@tool(read_only=True)
async def look_up(ctx: ToolContext[Deps], order: int) -> str:
    """Find an order of this customer."""
    return await ctx.deps.db.order(ctx.deps.customer, order)


@tool(approval="ask")  # neither read_only nor idempotent: runs at most once
async def refund(ctx: ToolContext[Deps], order: int, cents: int) -> str:
    """Pay money back."""
    return f"{cents} cents were paid back to {ctx.deps.customer}"


# Every process that runs or continues the turn calls it, also after a crash.
async def deps(turn: TurnInfo) -> Deps:
    return Deps(Database(), customer=turn.metadata["customer"])


support = Agent(
    "openai:gpt-5.2",
    name="support",
    instructions="Help with orders.",
    tools=[look_up, refund],
    deps=deps,
    output_type=Refund,
)

model = ScriptedModel(
    calls(call("look_up", order=4512)),
    calls(call("refund", order=4512, cents=2900)),
    say('{"order": 4512}'),  # an invalid answer: sent back with the error
    say('{"order": 4512, "cents": 2900, "reason": "broken"}'),
)


async def main() -> None:
    with support.override(model=model):
        question = "I want my money back for 4512"
        result = await support.run(question, metadata={"customer": "ada"})
        if result.status == "waiting":
            for gate in result.gates:
                print(f"{gate.tool} {gate.arguments}")
                await gate.approve()
            # Or resolve them from another process, tomorrow.
            result = await result.resume()
    print(result.output.cents, result.output.reason)
    print(f"{result.stats.steps} steps, {result.stats.calls} calls")


if __name__ == "__main__":
    asyncio.run(main())
