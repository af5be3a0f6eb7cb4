import asyncio

from everturn import Chat, TurnSuspended, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def look(place: str) -> str:
    """Look somewhere."""
    return "nothing"


@tool(read_only=True, repeatable=True)
async def status() -> str:
    """Ask whether it is ready."""
    return "not yet"


again = [
    calls(call("look", place="hall"), call("status")),
    calls(call("look", place="hall"), call("status")),
    calls(call("look", place="hall"), call("status")),
]
model = ScriptedModel(*again, say("They are not in the hall."))


async def main() -> None:
    async with Chat(model, tools=[look, status]) as chat:
        turn = await chat.send("Where are the keys?")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                (gate,) = await chat.gates()
                print(f"{gate.kind}: {gate.tool} {gate.arguments}")
                print("because:", gate.why)
                print("offers: ", *gate.offers)
                await turn.answer(gate, deny="you have looked there")
        print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
