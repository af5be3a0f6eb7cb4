import asyncio

from everturn import (
    CallResumed,
    CallStarted,
    CallSuspended,
    Chat,
    NestedCallRequested,
    ToolContext,
    TurnSuspended,
    tool,
)
from everturn.core.requests import RequestResult
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
    async with Chat(model, tools=[look, open_safe, search_house]) as chat:
        turn = await chat.send("Search the house")
        async for event in turn:
            match event:
                case NestedCallRequested():
                    names[event.call] = event.name
                    print(f"made: {event.name} {event.arguments}")
                case CallStarted() | CallSuspended() | CallResumed():
                    name = names.get(event.call, "search_house")
                    print(f"{type(event).__name__}: {name}")
                case TurnSuspended():
                    (gate,) = await chat.gates()
                    print(f"{gate.tool} asks")
                    await turn.answer(gate, allow="once")
                case _:
                    pass
        await turn
    (told,) = model.requests[-1].messages[-1].parts
    assert isinstance(told, RequestResult)
    print(f"the model reads one result: {told.text}")


if __name__ == "__main__":
    asyncio.run(main())
