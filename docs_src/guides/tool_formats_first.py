import asyncio

from everturn import Agent, TextPart, tool
from everturn.events import CallFinished, TextDelta
from everturn.models import PromptedModel
from everturn.testing import ScriptedModel, say


@tool(read_only=True)
async def forecast(city: str) -> str:
    """Get the weather forecast for a city."""
    return "sunny"


# This model only writes text; the system prompt says how to write a call.
CALL = '{"tool_calls": [{"name": "forecast", "arguments": {"city": "Lisbon"}}]}'
writes_text = ScriptedModel(say(f"Let me look.\n\n{CALL}"), say("Take sunglasses."))


async def main() -> None:
    model = PromptedModel(writes_text, "json")
    agent = Agent(model, tools=[forecast])
    async with agent.stream("What do I pack for Lisbon?") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                print(event.text, end="")
            elif isinstance(event, CallFinished):
                print(f"\n[forecast: {event.output.text}]")
    print("\n\nThe second request ends with:")
    for message in writes_text.requests[-1].messages[-2:]:
        for part in message.parts:
            if isinstance(part, TextPart):
                print(f"{message.role}: {part.text}")


if __name__ == "__main__":
    asyncio.run(main())
