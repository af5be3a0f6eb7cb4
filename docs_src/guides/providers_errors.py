import asyncio
import textwrap

from everturn import Agent, TurnError, get_model
from everturn.models import Model
from everturn.testing.provider import Provider, Say


# --8<-- [start:shown]
async def ask(model: Model | str) -> str:
    try:
        return (await Agent(model).run("Hello")).output
    except TurnError as error:
        match error.kind:
            case "key" | "quota" | "unknown_model":
                return f"Ask the owner of the provider account. {error}"
            case "context":
                return "This conversation is too long. Start a new one."
            case "rate" | "server" | "network" | "stalled" | "truncated":
                return "The provider is not available. Try again later."
            case _:
                raise


# --8<-- [end:shown]


async def main() -> None:
    async with Provider(key="the right one") as provider:
        provider.script("gpt-5.2", [[Say("Hello.")]])
        url = f"{provider.url}/v1"
        for key in ("sk-wrong", "the right one"):
            text = await ask(get_model("openai:gpt-5.2", base_url=url, key=key))
            print(textwrap.fill(text, 80))


if __name__ == "__main__":
    asyncio.run(main())
