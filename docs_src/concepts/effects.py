import asyncio
from typing import Any

from everturn import Chat, RunResult, ToolContext, tool
from everturn.events import ToolPart
from everturn.testing import MemoryStore, MortalStore, ScriptedModel, call, calls, say

world: list[str] = []  # effects outside of every process


@tool(read_only=True)
async def look() -> str:
    """Read something."""
    world.append("look")
    return "seen"


@tool(idempotent=True)
async def put(ctx: ToolContext) -> str:
    """Write something; the key prevents a second copy."""
    if (entry := f"put {ctx.key[-3:]}") not in world:
        world.append(entry)
    return "kept"


@tool()
async def pay() -> str:
    """Pay; a repeated call would be a second payment."""
    world.append("pay")
    return "paid"


async def live(store: Any) -> RunResult:
    """Run one process: it starts the turn or continues it, until it ends."""
    model = ScriptedModel(calls(call("look"), call("put"), call("pay")), say("Done."))
    async with Chat(model, tools=[look, put, pay], store=store, session="s") as chat:
        return await (await chat.send("Go", key="only once"))


async def main() -> None:
    store = MemoryStore()
    # It dies after the three calls ran, before any result is stored.
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
