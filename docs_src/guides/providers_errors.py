import asyncio
import textwrap

from everturn import Chat, TurnError, get_model
from everturn.core.ports import Model
from everturn.testing.provider import Provider, Say


# --8<-- [start:shown]
async def ask(model: Model | str) -> str:
    async with Chat(model) as chat:
        try:
            return (await (await chat.send("Hello"))).text
        except TurnError as error:
            match error.kind:
                case "key" | "quota" | "unknown_model":
                    return f"Tell whoever holds the account. {error}"
                case "context":
                    return "This conversation is too long; begin a new one."
                case "rate" | "server" | "network" | "stalled" | "truncated":
                    return "That may pass; try again later."
                case _:
                    raise


# --8<-- [end:shown]


async def main() -> None:
    async with Provider(key="the right one") as provider:
        provider.script("gpt-5.2", [[Say("Hello.")]])
        url = f"{provider.url}/v1"
        for key in ("sk-wrong", "the right one"):
            said = await ask(get_model("openai:gpt-5.2", base_url=url, key=key))
            print(textwrap.fill(said, 80))


if __name__ == "__main__":
    asyncio.run(main())
