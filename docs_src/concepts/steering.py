import asyncio

from everturn import Chat, tool
from everturn.events import TurnSuspended
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def book(table: int) -> str:
    """Book a table."""
    return "booked"


async def main() -> None:
    model = ScriptedModel(calls(call("book", table=4)), say("Booked, by the window."))
    async with Chat(model, tools=[book]) as chat:
        turn = await chat.send("Book a table for four")
        async for event in turn:
            if isinstance(event, TurnSuspended):  # the call needs approval
                await chat.send("By the window, please", steer=True)
                [gate] = await chat.gates()
                await turn.answer(gate, allow="once")
        messages = await chat.messages()
        for message in messages:
            print(f"{message.role}: {message.text or '(a call)'}")
        print("turns:", len({message.turn for message in messages}))


if __name__ == "__main__":
    asyncio.run(main())
