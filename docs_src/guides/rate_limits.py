import asyncio

from everturn import App, get_model
from everturn.models import ModelDeployment, RateLimit
from everturn.testing.provider import Provider, Say


# --8<-- [start:shown]
async def ask(url: str) -> None:
    model = get_model(
        "house-model",
        base_url=url,
        rate_limit=RateLimit(requests_per_minute=50, tokens_per_minute=40_000),
        deployments=[ModelDeployment(key="another-key")],  # with its own limit
    )
    async with App(model) as app:
        turn = await app.chat().send("Sum up the night", priority="background")
        print((await turn).text)


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        provider.script("house-model", [[Say("It was quiet.")]])
        await ask(f"{provider.url}/v1")


if __name__ == "__main__":
    asyncio.run(main())
