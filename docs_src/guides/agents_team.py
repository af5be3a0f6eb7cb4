import asyncio
from contextlib import ExitStack

from pydantic import BaseModel

from everturn import Agent, App, handoff, tool
from everturn.testing import ScriptedModel, call, calls, say


class Notes(BaseModel):
    facts: list[str]


@tool(read_only=True)
async def search(query: str) -> str:
    """Search the archive."""
    return f"three pages about {query}"


SMALL, LARGE = "openai:gpt-5.2-mini", "anthropic:claude-opus-5"

researcher = Agent(SMALL, name="researcher", tools=[search], output_type=Notes)
billing = Agent(SMALL, name="billing", instructions="You answer for bills.")
writer = Agent(LARGE, name="writer", tools=[researcher.as_tool(), handoff("billing")])

notes = ScriptedModel(
    calls(call("search", query="tea")),
    say('{"facts": ["tea is a leaf"]}'),
)
texts = ScriptedModel(
    calls(call("researcher", task="What is tea?")),
    say("Tea is a leaf."),
    calls(call("transfer_to_billing")),
)
bills = ScriptedModel(say(""), say(""), say(""), say("It costs 3 euros."))


async def main() -> None:
    scripted = ExitStack()
    for agent, model in ((researcher, notes), (writer, texts), (billing, bills)):
        scripted.enter_context(agent.override(model=model))
    async with App(agents=[writer, billing]) as app:
        # Created by the first message; the same call later continues it.
        chat = app.chat("session-7", agent=writer)
        print((await chat.run("What is tea?")).output)
        print((await chat.run("And what does it cost?")).output)
    scripted.close()


if __name__ == "__main__":
    asyncio.run(main())
