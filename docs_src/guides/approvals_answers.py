import asyncio

from everturn import Agent, manual, tool
from everturn.events import ToolPart
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
        call("set_table", plates=2),
    ),
    say("The garden it is."),
)
agent = Agent(model, tools=[book, manual(set_table)])


async def main() -> None:
    result = await agent.run("Book us a table")
    inside, garden, plates = result.gates
    await inside.deny("it is too warm in there", by="ada")
    await garden.approve(arguments={"table": "garden", "people": 3})
    print(f"{plates.kind}: {plates.why}")
    await plates.submit("there are only two plates")
    result = await result.resume()
    for part in result.messages[-1].parts:
        if isinstance(part, ToolPart) and part.output is not None:
            print(f"{part.name} {part.state}: {part.output.text}")


if __name__ == "__main__":
    asyncio.run(main())
