import asyncio
from typing import Any

from everturn import Chat, ToolContext, TurnResult, tool
from everturn.core.parts import ToolPart
from everturn.testing import MemoryStore, MortalStore, ScriptedModel, call, calls, say

world: list[str] = []  # what really happened, outside of every process


@tool(read_only=True)
async def look() -> str:
    """Read something."""
    world.append("look")
    return "seen"


@tool(idempotent=True)
async def put(ctx: ToolContext) -> str:
    """Write something; the world knows the key and keeps one copy."""
    if (entry := f"put {ctx.key[-3:]}") not in world:
        world.append(entry)
    return "kept"


@tool()
async def pay() -> str:
    """Pay; a second time would be a second payment."""
    world.append("pay")
    return "paid"


async def live(store: Any) -> TurnResult:
    """One process: it begins the turn, or finds it begun, and drives it to its end."""
    model = ScriptedModel(calls(call("look"), call("put"), call("pay")), say("Done."))
    async with Chat(model, tools=[look, put, pay], store=store, session="s") as chat:
        return await (await chat.send("Go", key="only once"))


async def main() -> None:
    store = MemoryStore()
    # It dies when the three calls have run, before any result is written down.
    mortal = MortalStore(store, lives=11, before_next=True)
    first = asyncio.ensure_future(live(mortal))
    await mortal.died.wait()
    first.cancel()
    await asyncio.wait({first})
    print("before:", world)

    result = await live(store)
    print("after: ", world)
    for part in result.messages[-1].parts:
        if isinstance(part, ToolPart):
            print(part.name, part.state)


if __name__ == "__main__":
    asyncio.run(main())
