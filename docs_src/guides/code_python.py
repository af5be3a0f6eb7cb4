import asyncio

from everturn import Chat, NestedCallRequested, TurnSuspended, run_python, tool
from everturn.core.parts import ToolPart
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def price(item: str) -> float:
    """What something costs."""
    return {"tea": 2.5, "cake": 4.0}[item]


@tool(approval="always")
async def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount}"


CODE = """
total = sum(price(item=item) for item in ["tea", "cake", "cake"])
print("it comes to", total)
pay(amount=total)
"""
model = ScriptedModel(calls(call("run_python", code=CODE)), say("Paid."))


async def main() -> None:
    async with Chat(model, tools=[run_python(), price, pay]) as chat:
        turn = await chat.send("Pay for tea and two cakes")
        async for event in turn:
            if isinstance(event, NestedCallRequested):
                print(f"the script calls {event.name} {event.arguments}")
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                print(f"{gate.tool} {gate.arguments} asks")
                await turn.answer(gate, allow="once")
        part = (await turn).messages[-1].parts[0]
        assert isinstance(part, ToolPart)
        assert part.output is not None
        print(part.output.text)


if __name__ == "__main__":
    asyncio.run(main())
