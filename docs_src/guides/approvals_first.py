import asyncio

from everturn import Agent, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask")
async def book(table: str, people: int) -> str:
    """Book a table."""
    return f"booked {table} for {people}"


# Follows a script, without network and key. Yours: model = "anthropic:claude-opus-5"
booking = calls(call("book", table="garden", people=2))
model = ScriptedModel(booking, say("Your table is in the garden."))
agent = Agent(model, tools=[book])


async def main() -> None:
    result = await agent.run("Book us a table outside")
    print(result.status)
    for gate in result.gates:
        print(f"{gate.tool} {gate.arguments}: {gate.why}")
        await gate.approve()  # or gate.deny("too expensive")
    result = await result.resume()
    print(result.output)


if __name__ == "__main__":
    asyncio.run(main())
