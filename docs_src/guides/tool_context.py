import asyncio
from collections.abc import AsyncIterator

from everturn import Chat, Progress, ToolContext, tool
from everturn.events import CallProgress
from everturn.testing import ScriptedModel, call, calls, say

notes: dict[str, str] = {}


@tool(idempotent=True)
async def save(text: str, ctx: ToolContext) -> str:
    """Save a note."""
    ctx.progress("saving")
    notes[ctx.key] = text  # the same key for every attempt of this call
    return "saved"


@tool(read_only=True)
async def count(to: int) -> AsyncIterator[Progress | str]:
    """Count."""
    for number in range(1, to + 1):
        yield Progress(f"at {number}")
    yield f"counted to {to}"


@tool(read_only=True)
def lines(text: str) -> int:
    """Count the lines of a text; a plain function runs in a thread."""
    return len(text.splitlines())


async def main() -> None:
    model = ScriptedModel(
        calls(call("save", text="hello")),
        calls(call("count", to=2)),
        say("Done."),
    )
    async with Chat(model, tools=[save, count, lines]) as chat:
        async for event in await chat.send("Save it, then count to two"):
            if isinstance(event, CallProgress):
                print(event.text)


if __name__ == "__main__":
    asyncio.run(main())
