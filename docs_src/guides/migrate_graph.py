import asyncio
from typing import Literal

from everturn import Agent, App, ToolContext, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def order_status(order: int) -> str:
    """Look up the status of an order."""
    return f"order {order} arrives on Friday"


@tool(approval="ask")
async def refund(order: int, cents: int) -> str:
    """Pay money back to the customer."""
    return f"refunded {cents} cents"


# These models follow a script. Yours: "openai:gpt-5.2" for all three.
router = Agent(
    ScriptedModel(say('"billing"')),
    name="router",
    instructions="Is this about billing or about an order?",
    output_type=Literal["billing", "orders"],
)
pay_back = calls(call("refund", order=7, cents=900))
billing = Agent(
    ScriptedModel(pay_back, say("You get 9.00 EUR back.")),
    name="billing",
    tools=[refund],
)
orders = Agent(
    ScriptedModel(say("On Friday.")),
    name="orders",
    tools=[order_status],
)
app = App(agents=[router, billing, orders], store="memory")  # or "app.db"


@app.workflow
async def support(ctx: ToolContext, text: str) -> str:
    topic = await ctx.run_agent(router, text)  # a node
    agent = billing if topic == "billing" else orders  # a conditional edge
    return await ctx.run_agent(agent, text)


async def main() -> None:
    async with app:
        run = await support.start("Money back for order 7, please", key="ticket 1")
        waiting = await app.turn(run.id).result()  # or in another process
        for gate in waiting.gates:
            print("approve?", gate.tool, gate.arguments)
            await gate.approve()
        print(await run.result())


if __name__ == "__main__":
    asyncio.run(main())
