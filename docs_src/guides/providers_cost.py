import asyncio

from everturn import Agent, get_model
from everturn.models import Price
from everturn.testing.provider import Provider, Say, ScriptedUsage


# --8<-- [start:shown]
async def ask(url: str) -> None:
    # US dollars per million tokens
    price = Price(input=5.0, output=25.0, cached=0.5, written=6.25)
    model = get_model("anthropic:claude-opus-5", base_url=url, price=price)
    usage = (await Agent(model).run("Hello")).usage
    print(f"{usage.input} in, {usage.cached} of them cached, {usage.output} out")
    print(f"${usage.cost:.5f}")


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        tokens = ScriptedUsage(input=2000, output=100, cached=1500)
        provider.script("claude-opus-5", [[Say("Hello."), tokens]])
        await ask(f"{provider.url}/v1")


if __name__ == "__main__":
    asyncio.run(main())
