import asyncio

from everturn import Agent
from everturn.models import Model


async def ask(model: Model | str) -> None:
    agent = Agent(model, instructions="Answer in one sentence.")
    async with agent.stream("Why is the sky blue?") as run:
        async for text in run.text_stream():
            print(text, end="", flush=True)
        usage = (await run.result()).usage
    print(f"\n{usage.input} tokens in, {usage.output} out")


if __name__ == "__main__":
    asyncio.run(ask("anthropic:claude-opus-5"))  # reads ANTHROPIC_API_KEY
