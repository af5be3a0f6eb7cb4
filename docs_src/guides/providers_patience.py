import asyncio

from everturn import Chat, Fallback, Patience, named
from everturn.testing.provider import Provider, Say, Status


# --8<-- [start:shown]
async def ask(url: str) -> None:
    patience = Patience(tries=2, first=0.01)
    model = Fallback(
        named("anthropic:claude-opus-5", base_url=url, patience=patience),
        named("openai:gpt-5.2", base_url=url),
    )
    async with Chat(model) as chat:
        print((await (await chat.send("Hello"))).text)


# --8<-- [end:shown]


async def main() -> None:
    async with Provider() as provider:
        provider.script("claude-opus-5", [[Status(529)]])  # overloaded
        provider.script("gpt-5.2", [[Say("Hello. The other one is busy.")]])
        await ask(f"{provider.url}/v1")
        for seen in provider.seen:
            print(seen.model, seen.status)


if __name__ == "__main__":
    asyncio.run(main())
