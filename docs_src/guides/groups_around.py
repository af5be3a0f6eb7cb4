import asyncio

from msgspec.structs import replace

from everturn import Chat, tool
from everturn.core.hooks import CallContext
from everturn.core.requests import RequestResult
from everturn.testing import ScriptedModel, call, calls, say


def in_full(ctx: CallContext) -> None:
    """Before it is checked, asked about and hashed."""
    ctx.arguments["city"] = ctx.arguments["city"].title()


def with_title(ctx: CallContext) -> None:
    """After it ran, before it is cut and kept."""
    ctx.output = replace(ctx.output, title=f"weather in {ctx.arguments['city']}")


def in_words(weather: dict[str, int]) -> str:
    """What the function returned, as the model reads it."""
    return f"{weather['degrees']} degrees"


@tool(read_only=True, before=in_full, after=with_title, to_model=in_words)
async def weather(city: str) -> dict[str, int]:
    """Look up the weather."""
    return {"degrees": 22, "station": 10147}


async def main() -> None:
    model = ScriptedModel(calls(call("weather", city="lisbon")), say("Warm."))
    async with Chat(model, tools=[weather]) as chat:
        result = await (await chat.send("How is it?"))
    for part in result.messages[-1].parts:
        if part_output := getattr(part, "output", None):
            print(part_output.title)
    (read,) = model.requests[-1].messages[-1].parts
    assert isinstance(read, RequestResult)
    print(read.text)
    print(await weather("Lisbon"))  # still the function it was


if __name__ == "__main__":
    asyncio.run(main())
