import asyncio

from everturn import Chat, tool
from everturn.events import CallStarted
from everturn.models import RequestResult
from everturn.testing import ScriptedModel, call, calls, say

has_arrived = asyncio.Event()


@tool()
async def order(dish: str) -> str:
    """Order food; it takes a while."""
    await has_arrived.wait()
    return f"{dish}: delivered"


model = ScriptedModel(calls(call("order", dish="soup")), say("Your soup is here."))


async def main() -> None:
    async with Chat(model, tools=[order]) as chat:
        turn = await chat.send("Order soup")
        async for event in turn:
            if isinstance(event, CallStarted):
                await turn.cancel()
        print((await turn).phase)

        has_arrived.set()  # only the turn was cancelled, not the order
        await chat.app.tool_tasks.wait_idle()
        print((await (await chat.send("And?"))).text)

    # The call keeps its result; the late result is a separate notice.
    for message in model.requests[-1].messages:
        for part in message.parts:
            text = part.text if isinstance(part, RequestResult) else message.text
            print(f"{message.role:<9}  {type(part).__name__:<13}  {text[:60]}")


if __name__ == "__main__":
    asyncio.run(main())
