import asyncio

from msgspec.structs import replace

from everturn import Agent, tool
from everturn.models import RequestResult
from everturn.plugins import CallContext
from everturn.testing import ScriptedModel, call, calls, say


def normalize(ctx: CallContext) -> None:
    """Runs before the arguments are validated and shown for approval."""
    ctx.arguments["city"] = ctx.arguments["city"].title()


def with_title(ctx: CallContext) -> None:
    """Runs after the tool, before the result is truncated and stored."""
    ctx.output = replace(ctx.output, title=f"weather in {ctx.arguments['city']}")


def as_text(weather: dict[str, int]) -> str:
    """Turns the return value into the text for the model."""
    return f"{weather['degrees']} degrees"


@tool(read_only=True, before=normalize, after=with_title, to_model=as_text)
async def weather(city: str) -> dict[str, int]:
    """Look up the weather."""
    return {"degrees": 22, "station": 10147}


async def main() -> None:
    model = ScriptedModel(calls(call("weather", city="lisbon")), say("Warm."))
    result = await Agent(model, tools=[weather]).run("How is it?")
    for part in result.messages[-1].parts:
        if part_output := getattr(part, "output", None):
            print(part_output.title)
    (read,) = model.requests[-1].messages[-1].parts
    assert isinstance(read, RequestResult)
    print(read.text)
    print(await weather("Lisbon"))  # you can still call the function


if __name__ == "__main__":
    asyncio.run(main())
