import asyncio

from everturn import Chat, tool
from everturn.events import GateResolved, TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="ask")
async def look(place: str) -> str:
    """Look somewhere."""
    return f"nothing in {place}"


@tool(approval="always")
async def dig(place: str) -> str:
    """Dig a hole."""
    return f"dug in {place}"


model = ScriptedModel(
    calls(
        call("look", place="hall"),
        call("look", place="shed"),
        call("dig", place="garden"),
    ),
    say("Nothing there."),
    calls(call("dig", place="hall"), call("dig", place="shed")),
    say("I will not."),
)


async def main() -> None:
    async with Chat(model, tools=[look, dig]) as chat:
        turn = await chat.send("Find the keys")
        async for event in turn:
            if isinstance(event, GateResolved):
                resolution = event.resolution
                name, with_another, _ = resolution.by.partition(",")
                responder = name + ", with another" * bool(with_another)
                print("allowed" if resolution.allowed else "denied", "by", responder)
            if isinstance(event, TurnSuspended):
                gates = await chat.gates()
                if len(gates) == 3:
                    await turn.answer(gates[0], allow="always", by="ada")
                else:
                    await turn.answer(gates[0], allow="once", by="ada")

        turn = await chat.send("Dig everywhere")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                first, _ = await chat.gates()
                await turn.answer(first, deny="no holes", others=True)
        print((await turn).text, "open:", await chat.gates())


if __name__ == "__main__":
    asyncio.run(main())
