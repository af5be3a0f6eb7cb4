import asyncio

from everturn import Chat, TextDelta
from everturn.core.ports import Model


async def ask(model: Model | str) -> None:
    async with Chat(model) as chat:
        turn = await chat.send("Why is the sky blue?")
        async for event in turn:
            if isinstance(event, TextDelta):
                print(event.text, end="", flush=True)
        usage = (await turn).usage
        print(f"\n{usage.input} tokens in, {usage.output} out")


if __name__ == "__main__":
    asyncio.run(ask("anthropic:claude-opus-5"))  # its key is in ANTHROPIC_API_KEY
