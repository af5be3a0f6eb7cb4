import asyncio

from everturn import Agent, App, ToolContext, tool
from everturn.events import (
    CallResumed,
    CallStarted,
    CallSuspended,
    NestedCallRequested,
    TurnSuspended,
)
from everturn.models import RequestResult
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def look(place: str) -> str:
    """Look somewhere."""
    return {"hall": "a coat", "safe": "the will"}[place]


@tool(approval="always")
async def open_safe() -> str:
    """Open the safe."""
    return "it is open"


@tool(idempotent=True)
async def search_house(ctx: ToolContext) -> str:
    """Search the house."""
    hall = await ctx.run_tool("look", {"place": "hall"})
    await ctx.run_tool("open_safe", {})
    safe = await ctx.run_tool("look", {"place": "safe"})
    return f"{hall.text} and {safe.text}"


model = ScriptedModel(calls(call("search_house")), say("There is a will."))


async def main() -> None:
    names: dict[str, str] = {}
    detective = Agent(model, name="detective", tools=[look, open_safe, search_house])
    async with App(agents=[detective]) as app:
        chat = app.chat(agent=detective)
        turn = await chat.send("Search the house")
        async for event in turn:
            match event:
                case NestedCallRequested():
                    names[event.call] = event.name
                    print(f"NestedCallRequested: {event.name} {event.arguments}")
                case CallStarted() | CallSuspended() | CallResumed():
                    name = names.get(event.call, "search_house")
                    print(f"{type(event).__name__}: {name}")
                case TurnSuspended():
                    (gate,) = await chat.gates()
                    print(f"{gate.tool} needs approval")
                    await turn.answer(gate, allow="once")
                case _:
                    pass
        await turn
    (result,) = model.requests[-1].messages[-1].parts
    assert isinstance(result, RequestResult)
    print(f"the model reads one result: {result.text}")


if __name__ == "__main__":
    asyncio.run(main())
