import asyncio
from typing import Any

from everturn import Chat
from everturn.events import ToolPart
from everturn.testing import ScriptedModel, say

SAVED: dict[str, Any] = {  # a request body; a list of messages works too
    "system": "You work for a shop.",
    "messages": [
        {"role": "user", "content": "Where are orders 7 and 8?"},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "a", "name": "look", "input": {"order": 7}},
                {"type": "tool_use", "id": "b", "name": "look", "input": {"order": 8}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "It left."},
                {"type": "text", "text": "Take your time."},
            ],
        },
    ],
}


async def main() -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        imported = await chat.import_messages(SAVED)
        print(imported.instructions)
        for message in imported.messages:
            print(f"{message.role}: {message.text}")
            for part in message.parts:
                if isinstance(part, ToolPart) and part.output is not None:
                    print(f"  {part.name} {part.arguments} {part.state}")
                    print(f"    {part.output.text}")


if __name__ == "__main__":
    asyncio.run(main())
