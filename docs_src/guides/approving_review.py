import asyncio

from everturn import Chat, tool
from everturn.events import TurnSuspended
from everturn.models import RequestResult
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True, review="always")
async def read_mail(number: int) -> str:
    """Read a mail."""
    return f"mail {number}: the door code is 4711"


model = ScriptedModel(
    calls(*(call("read_mail", number=number) for number in (1, 2, 3))),
    say("I have read what I was shown."),
)


async def main() -> None:
    async with Chat(model, tools=[read_mail]) as chat:
        turn = await chat.send("Read my mail")
        async for event in turn:
            if isinstance(event, TurnSuspended):
                one, two, three = await chat.gates()
                assert one.output is not None
                assert two.output is not None
                print(one.kind, "under review:", one.output.text)
                await turn.answer(one, allow="once")
                left = two.output.text.replace("4711", "[redacted]")
                await turn.answer(two, allow="once", text=left)
                await turn.answer(three, deny="private")
        await turn
    for part in model.requests[-1].messages[-1].parts:  # what the model read
        if isinstance(part, RequestResult):
            print(f"{part.state}: {part.text}")


if __name__ == "__main__":
    asyncio.run(main())
