"""A person reviews an article before it is published: two processes, days apart."""

import asyncio
import sys
from pathlib import Path

from agents import Agent, Runner, RunState, function_tool


@function_tool(needs_approval=True)
def publish(text: str) -> str:
    """Publish an article."""
    with Path("published.txt").open("a") as file:
        print(text, file=file)
    return "published"


writer = Agent(
    name="writer", model="gpt-5.2", instructions="Write and publish.", tools=[publish]
)
saved = Path("article.json")


async def main() -> None:
    if sys.argv[1] == "start":
        result = await Runner.run(writer, "Write about tea.")
        saved.write_text(result.to_state().to_string())
        print(result.interruptions[0].arguments)
    else:
        state = await RunState.from_string(writer, saved.read_text())
        for interruption in state.get_interruptions():
            state.approve(interruption)
        print((await Runner.run(writer, state)).final_output)


asyncio.run(main())
