import asyncio

from everturn import Chat, PromptedModel, tool
from everturn.core.parts import ToolPart
from everturn.testing import ScriptedModel, say


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return "seen"


CALL = '<tool_code>{"name": "look", "arguments": {}}</tool_code>'
ANSWERS = {
    "on a line of its own": f"Let me see.\n{CALL}",
    "in a sentence": f"I could write {CALL} now.",
    "in quotes": f"> {CALL}",
    "in a fence": f"```\n{CALL}\n```",
    "in a thought": f"<think>\n{CALL}\n</think>\nNo need to.",
    "not whole": CALL[:30],
    "with a result made up": CALL + '\n{"tool_call_result": {"result": "gold"}}',
}


async def main() -> None:
    for where, answer in ANSWERS.items():
        model = PromptedModel(ScriptedModel(say(answer), say("I see.")), "xml")
        async with Chat(model, tools=[look]) as chat:
            result = await (await chat.send("Look!"))
        parts = [part for message in result.messages for part in message.parts]
        calls = [part.state for part in parts if isinstance(part, ToolPart)]
        print(f"{where:<22}", *calls or ["no call"])
        if "made up" in where:
            print("  which is kept:", "gold" in repr(result.messages))


if __name__ == "__main__":
    asyncio.run(main())
