import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from everturn import Agent, ToolContext, TurnInfo, tool
from everturn.testing import ScriptedModel, call, calls, say


class Database:
    async def orders(self, customer: str) -> list[str]:
        return [f"a lamp for {customer}"]

    async def close(self) -> None: ...


@dataclass
class Deps:
    db: Database
    customer: str


# Every process that runs or continues the turn calls it.
async def open_deps(turn: TurnInfo) -> AsyncIterator[Deps]:
    db = Database()
    yield Deps(db, customer=turn.metadata["customer"])
    await db.close()  # when this process has finished with the turn


@tool(read_only=True)
async def orders(ctx: ToolContext[Deps]) -> str:
    """List the customer's orders."""
    return "\n".join(await ctx.deps.db.orders(ctx.deps.customer))


model = ScriptedModel(calls(call("orders")), say("You ordered a lamp."))
agent = Agent(model, tools=[orders], deps=open_deps)


async def main() -> None:
    result = await agent.run("What did I order?", metadata={"customer": "ada"})
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
