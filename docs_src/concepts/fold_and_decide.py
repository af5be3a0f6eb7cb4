import asyncio

from everturn import Chat, tool
from everturn.core.decide import decide
from everturn.core.state import fold
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def weather(city: str) -> str:
    """Look up the weather."""
    return "sunny"


async def main() -> None:
    model = ScriptedModel(calls(call("weather", city="Lisbon")), say("Sunny."))
    async with Chat(model, tools=[weather]) as chat:
        turn = await chat.send("How is Lisbon?")
        await turn
        entries = await chat.app.store.events(chat.session, turn=turn.id)
    log = [entry.event for entry in entries]
    # Another process reads the log, folds it, and takes the next action.
    for size in range(1, len(log) + 1):
        state = fold(log[:size])
        action = decide(state, plugins=["tool_calling"])
        last = type(log[size - 1]).__name__
        print(f"{size:>2} {last:<17} {state.phase:<10} → {type(action).__name__}")


if __name__ == "__main__":
    asyncio.run(main())
