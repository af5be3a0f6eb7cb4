import asyncio

from everturn import Agent, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def look(place: str) -> str:
    """Look somewhere."""
    return "nothing"


@tool(read_only=True, repeatable=True)
async def status() -> str:
    """Check whether the job is ready."""
    return "not yet"


again = [
    calls(call("look", place="hall"), call("status")),
    calls(call("look", place="hall"), call("status")),
    calls(call("look", place="hall"), call("status")),
]
model = ScriptedModel(*again, say("They are not in the hall."))


async def main() -> None:
    result = await Agent(model, tools=[look, status]).run("Where are the keys?")
    (gate,) = result.gates
    print(f"{gate.kind}: {gate.tool} {gate.arguments}")
    print("because:", gate.why)
    print("offers: ", *gate.gate.offers)
    await gate.deny("you have looked there")
    result = await result.resume()
    print(f"{result.status}: {result.text}")


if __name__ == "__main__":
    asyncio.run(main())
