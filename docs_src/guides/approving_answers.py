import asyncio

from everturn import Chat, manual, tool
from everturn.events import ToolPart, TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask")
async def book(table: str, people: int) -> str:
    """Book a table."""
    return f"booked {table} for {people}"


@tool()
async def set_table(plates: int) -> str:
    """Set the table."""
    raise NotImplementedError  # a person does this


model = ScriptedModel(
    calls(
        call("book", table="inside", people=2),
        call("book", table="garden", people=2),
        call("book", table="roof", people=2),
        call("set_table", plates=2),
    ),
    say("The garden it is."),
)


async def main() -> None:
    async with Chat(model, tools=[book, manual(set_table)]) as chat:
        turn = await chat.send("Book us a table")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                inside, garden, roof, plates = await chat.gates()
                for gate in (inside, plates):
                    print(f"{gate.kind}: {gate.tool} {gate.arguments}")
                    print(f"  because {gate.why}")
                await turn.answer(inside, deny="it is too warm in there")
                edited = {"table": "garden", "people": 3}
                await turn.answer(garden, allow="once", arguments=edited)
                await turn.answer(roof, deny=True, by="ada")
                await turn.answer(plates, result="there are only two plates")
        for part in (await turn).messages[-1].parts:
            if isinstance(part, ToolPart) and part.output is not None:
                print(f"{part.state}: {part.output.text}")


if __name__ == "__main__":
    asyncio.run(main())
