import asyncio

from everturn import Agent, App, tool
from everturn.events import NestedCallRequested, ToolPart, TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say
from everturn.tools import run_python


@tool(read_only=True)
async def price(item: str) -> float:
    """Get the price of an item."""
    return {"tea": 2.5, "cake": 4.0}[item]


@tool(approval="always")
async def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount}"


CODE = """
total = sum(price(item=item) for item in ["tea", "cake", "cake"])
print("total:", total)
pay(amount=total)
"""
model = ScriptedModel(calls(call("run_python", code=CODE)), say("Paid."))


async def main() -> None:
    agent = Agent(model, name="shopper", tools=[run_python(), price, pay])
    async with App(agents=[agent]) as app:
        chat = app.chat(agent=agent)
        turn = await chat.send("Pay for tea and two cakes")
        async for event in turn:
            if isinstance(event, NestedCallRequested):
                print(f"the script calls {event.name} {event.arguments}")
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                print(f"{gate.tool} {gate.arguments} needs approval")
                await turn.answer(gate, allow="once")
        part = (await turn).messages[-1].parts[0]
        assert isinstance(part, ToolPart)
        assert part.output is not None
        print(part.output.text)


if __name__ == "__main__":
    asyncio.run(main())
