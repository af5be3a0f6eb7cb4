import asyncio
import os

from everturn import Chat, GateOpened, TextDelta, named, tool


@tool(effects="once", execute="ask")  # asks a person first, and is never run twice
async def refund(order: str, cents: int) -> str:
    """Give somebody their money back."""
    return f"refunded {cents} for {order}"


async def run(text: str, key: str) -> None:
    model = named(f"openai-chat:{os.environ['MODEL']}", base_url=os.environ["OPENAI_BASE_URL"])
    async with Chat(model, tools=[refund], store="talks.db", session="order-7") as chat:
        turn = await chat.send(text, key=key)  # the same key again, in any process: the same turn
        async for event in turn:
            match event:
                case TextDelta(text=piece):
                    print(piece, end="", flush=True)
                case GateOpened(gate=gate):
                    answer = await asyncio.to_thread(input, f"{gate.tool} {gate.arguments}? ")
                    if answer == "y":
                        await turn.answer(gate, allow="once")
                    else:
                        await turn.answer(gate, deny="the person said no")
                case _:
                    pass
        print()


if __name__ == "__main__":
    asyncio.run(run("Give order 7 its 900 cents back", key="refund of order 7"))
