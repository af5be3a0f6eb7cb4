import asyncio

from everturn import Agent, tool
from everturn.events import ToolPart
from everturn.models import PromptedModel
from everturn.testing import ScriptedModel, say


@tool(read_only=True)
async def look() -> str:
    """Look."""
    return "seen"


CALL = '<tool_code>{"name": "look", "arguments": {}}</tool_code>'
ANSWERS = {
    "on its own line": f"Let me see.\n{CALL}",
    "in a sentence": f"I could write {CALL} now.",
    "quoted": f"> {CALL}",
    "in a code fence": f"```\n{CALL}\n```",
    "in the reasoning": f"<think>\n{CALL}\n</think>\nNo need to.",
    "incomplete": CALL[:30],
    "with an invented result": CALL + '\n{"tool_call_result": {"result": "gold"}}',
}


async def main() -> None:
    for where, answer in ANSWERS.items():
        model = PromptedModel(ScriptedModel(say(answer), say("I see.")), "xml")
        result = await Agent(model, tools=[look]).run("Look!")
        parts = [part for message in result.messages for part in message.parts]
        calls = [part.state for part in parts if isinstance(part, ToolPart)]
        print(f"{where:<23}", *calls or ["no call"])
        if "invented" in where:
            print("  result kept:", "gold" in repr(result.messages))


if __name__ == "__main__":
    asyncio.run(main())
