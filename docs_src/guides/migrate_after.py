import asyncio
import os

from everturn import Chat, get_model, tool
from everturn.events import GateOpened, TextDelta


@tool(approval="always")  # a person approves each call; it never runs twice
async def refund(order: str, cents: int) -> str:
    """Pay money back to a customer."""
    return f"refunded {cents} for {order}"


async def run(text: str, key: str) -> None:
    name, url = f"openai-chat:{os.environ['MODEL']}", os.environ["OPENAI_BASE_URL"]
    model = get_model(name, base_url=url)
    async with Chat(model, tools=[refund], store="talks.db", session="o7") as chat:
        turn = await chat.send(text, key=key)  # the same key again: the same turn
        async for event in turn:
            match event:
                case TextDelta(text=piece):
                    print(piece, end="", flush=True)
                case GateOpened(gate=gate):
                    question = f"{gate.tool} {gate.arguments}? "
                    if await asyncio.to_thread(input, question) == "y":
                        await turn.answer(gate, allow="once")
                    else:
                        await turn.answer(gate, deny="the person said no")
                case _:
                    pass
        print()


if __name__ == "__main__":
    asyncio.run(run("Give order 7 its 900 cents back", key="refund of order 7"))
