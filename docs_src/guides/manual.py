import asyncio

from everturn import Chat, manual, tool
from everturn.events import ToolPart, TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say


@tool()
async def water_plants(room: str) -> str:
    """Water the plants in a room, and say how they look."""
    raise NotImplementedError  # a person does this


model = ScriptedModel(
    calls(call("water_plants", room="kitchen"), call("water_plants", room="hall")),
    say("The fern in the hall needs a larger pot."),
)
ANSWERS = [
    "done, all of them look fine",
    # pasted as JSON, in the format of prompted tool results
    '{"tool_call_result": {"name": "water_plants", "result": "the fern droops"}}',
]


async def main() -> None:
    async with Chat(model, tools=[manual(water_plants)]) as chat:
        turn = await chat.send("Water the plants")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                gates = await chat.gates()
                for gate, answer in zip(gates, ANSWERS, strict=True):
                    print("to do:", gate.tool, gate.arguments)
                    await turn.answer(gate, result=answer)
        for part in (await turn).messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                print(part.state, f"({part.output.title}):", part.output.text)
        print((await turn).text)


if __name__ == "__main__":
    asyncio.run(main())
