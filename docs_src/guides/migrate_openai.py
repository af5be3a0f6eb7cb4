import asyncio
from typing import Any

from everturn import Chat
from everturn.testing import ScriptedModel, say

look = {"name": "look_up", "arguments": '{"order": 7}'}
SAVED: list[dict[str, Any]] = [
    {"role": "system", "content": "You work for a shop."},
    {"role": "user", "content": "Where is order 7?"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "type": "function", "function": look}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "It left on Monday."},
    {"role": "assistant", "content": "It left on Monday."},
]


async def main() -> None:
    # The first two answers of the script count as the imported ones.
    model = ScriptedModel(say(""), say(""), say("It arrives on Thursday."))
    async with Chat(model, system="You work for a shop.", session="o7") as chat:
        imported = await chat.import_messages(SAVED, key="saved conversation 7")
        print("not imported:", imported.instructions)
        result = await (await chat.send("And when does it arrive?"))
        print(result.text)
        for message in await chat.messages():
            mark = "imported" if message.imported else "from here"
            print(f"{mark}: {message.role}: {message.text}")


if __name__ == "__main__":
    asyncio.run(main())
