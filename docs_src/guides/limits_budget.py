import asyncio

from everturn import Agent, Budget, tool
from everturn.events import LimitReached, ToolPart
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)
async def read_page(number: int) -> str:
    """Read a page."""
    return f"page {number}"


model = ScriptedModel(
    calls(*(call("read_page", number=number) for number in (1, 2, 3))),
    say("I read two pages of three; then the limit of calls was reached."),
)


async def main() -> None:
    budget = Budget(calls=2, cost=0.50, seconds=60)
    agent = Agent(model, tools=[read_page], budget=budget)
    async with agent.stream("Read the book") as run:
        async for event in run:
            if isinstance(event, LimitReached):
                print(f"{event.limit}, {event.scope}: {event.text}")
        result = await run.result()
    for part in result.messages[-1].parts:
        if isinstance(part, ToolPart) and part.output is not None:
            print(f"{part.state}: {part.output.text}")
    closing = model.requests[-1]
    print("tools in the last request:", len(closing.tools))
    print(result.status, "-", result.text)


if __name__ == "__main__":
    asyncio.run(main())
