import asyncio

from everturn import CallFinished, Chat, PromptedModel, TextDelta, tool
from everturn.core.parts import TextPart
from everturn.testing import ScriptedModel, say


@tool(read_only=True)
async def forecast(city: str) -> str:
    """Say what the weather will be."""
    return "sunny"


# All this model can do is write text; its prompt says how to call a tool.
CALL = '{"tool_calls": [{"name": "forecast", "arguments": {"city": "Lisbon"}}]}'
writes_text = ScriptedModel(say(f"Let me look.\n\n{CALL}"), say("Take sunglasses."))


async def main() -> None:
    model = PromptedModel(writes_text, "json")
    async with Chat(model, tools=[forecast]) as chat:
        turn = await chat.send("What do I pack for Lisbon?")
        async for event in turn:
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
