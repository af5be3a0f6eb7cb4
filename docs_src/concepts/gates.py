import asyncio

from everturn import Chat, tool
from everturn.errors import BadArguments
from everturn.events import TurnSuspended
from everturn.models import RequestResult
from everturn.testing import ScriptedModel, call, calls, say


@tool(approval="always")
async def book(table: str, people: int) -> str:
    """Book a table."""
    return f"booked {table} for {people}"


model = ScriptedModel(
    calls(
        call("book", table="inside", people=2),
        call("book", table="garden", people=2),
        call("book", table="roof", people=2),
    ),
    say("The garden it is."),
)


async def main() -> None:
    async with Chat(model, tools=[book]) as chat:
        turn = await chat.send("Book us a table")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                inside, garden, roof = await chat.gates()
                await turn.answer(inside, deny="it is too warm in there")
                edited = {"table": "garden", "people": "many"}
                try:
                    await turn.answer(garden, allow="once", arguments=edited)
                except BadArguments as error:
                    print("refused:", str(error).partition(": ")[2].partition(".")[0])
                edited = {"table": "garden", "people": 3}
                await turn.answer(garden, allow="once", arguments=edited)
                await turn.answer(roof, deny=True)
        print((await turn).text)
    for part in model.requests[-1].messages[-1].parts:  # what the model read
        if isinstance(part, RequestResult):
            print("-", part.text)


if __name__ == "__main__":
    asyncio.run(main())
