import asyncio
import textwrap

from everturn import Chat, ToolError, tool
from everturn.models import RequestResult
from everturn.testing import ScriptedModel, call, calls, say

MENU = {"soup": 4, "bread": 2}


@tool(read_only=True)
async def price(dish: str) -> int:
    """Look up the price of a dish."""
    if dish not in MENU:
        raise ToolError(f"there is no {dish} today; there are: {', '.join(MENU)}")
    return MENU[dish]


@tool(read_only=True)
async def kitchen() -> str:
    """Ask the kitchen."""
    raise ConnectionError("the kitchen does not answer")


model = ScriptedModel(
    calls(
        call("price", dish="soup"),
        call("price", dish="pie"),  # a ToolError: its text is the result
        call("kitchen"),  # any other error: its type and text
        call("price", dishes="soup"),  # the arguments do not fit
        call("Price", dish="bread"),  # nearly the right name
        call("order", dish="soup"),  # no such tool
    ),
    say("Soup, then."),
)


async def main() -> None:
    async with Chat(model, tools=[price, kitchen]) as chat:
        print((await (await chat.send("What is there?"))).phase)
    for part in model.requests[-1].messages[-1].parts:
        if isinstance(part, RequestResult):
            label = "error: " if part.is_error else "ok:    "
            print(textwrap.fill(label + part.text, 80, subsequent_indent=" " * 7))


if __name__ == "__main__":
    asyncio.run(main())
