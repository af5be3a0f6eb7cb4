import asyncio

from everturn import Agent, get_model
from everturn.models import FallbackModel, RetryPolicy
from everturn.testing.provider import Provider, Say, Status


# --8<-- [start:shown]
async def ask(url: str) -> None:
    retry = RetryPolicy(attempts=2, initial_delay=0.01)
    model = FallbackModel(
        get_model("anthropic:claude-opus-5", base_url=url, retry=retry),
        get_model("openai:gpt-5.2", base_url=url),
    )
    print((await Agent(model).run("Hello")).output)


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        provider.script("claude-opus-5", [[Status(529)]])  # overloaded
        provider.script("gpt-5.2", [[Say("Hello. Claude is overloaded.")]])
        await ask(f"{provider.url}/v1")
        for seen in provider.seen:
            print(seen.model, seen.status)


if __name__ == "__main__":
    asyncio.run(main())
