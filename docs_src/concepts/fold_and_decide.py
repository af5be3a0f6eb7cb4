import asyncio

from everturn import Chat, tool
from everturn.core.state import decide, fold
from everturn.testing import ScriptedModel, call, calls, say


@tool(effects="read")
async def weather(city: str) -> str:
    """Look up the weather."""
    return "sunny"


async def main() -> None:
    async with Chat(ScriptedModel(calls(call("weather", city="Lisbon")), say("Sunny.")), tools=[weather]) as chat:
        turn = await chat.send("How is Lisbon?")
        await turn
        log = [entry.event for entry in await chat.runtime.store.events(chat.session, turn=turn.id)]
    # A process that takes the turn over after any event reads what is there, folds it, and does what is next.
    for size in range(1, len(log) + 1):
        state = fold(log[:size])
        action = decide(state, plugins=["tool_calling"])
        print(f"{size:>2} {type(log[size - 1]).__name__:<13} {state.phase:<10} → {type(action).__name__}")


if __name__ == "__main__":
    asyncio.run(main())
