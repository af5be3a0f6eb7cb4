import asyncio

from everturn import Agent, ToolContext, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def stock(ctx: ToolContext[dict[str, int]], item: str) -> int:
    """Get the number of items in stock."""
    return ctx.deps[item]


shop = Agent("openai:gpt-5.2", tools=[stock], deps=lambda turn: {"lamp": 12})


async def main() -> None:
    model = ScriptedModel(calls(call("stock", item="lamp")), say("None are left."))
    with shop.override(model=model, deps={"lamp": 0}):
        print((await shop.run("Are there lamps?")).output)


if __name__ == "__main__":
    asyncio.run(main())
