import asyncio

from everturn import Agent, tool
from everturn.testing import ScriptedModel, call, calls, say


@tool(read_only=True)  # changes nothing, so it runs without approval
async def calendar(person: str) -> str:
    """Find out when a person is free."""
    return f"{person} is free from noon to two"


# Follows a script, without network and key. Yours: model = "anthropic:claude-opus-5"
model = ScriptedModel(
    calls(call("calendar", person="Ada")),
    say("You can have lunch with Ada between noon and two."),
)
agent = Agent(model, instructions="You plan meetings.", tools=[calendar])


async def main() -> None:
    async with agent.stream("When can I have lunch with Ada?") as run:
        async for text in run.text_stream():
            print(text, end="", flush=True)
    print()


if __name__ == "__main__":
    asyncio.run(main())
