import asyncio
from pprint import pprint

from everturn import Chat
from everturn.testing import ScriptedModel, say

# ModelMessagesTypeAdapter.dump_json(result.all_messages()), or the objects themselves.
SAVED = b"""[
  {"kind": "request", "instructions": "You work for a shop.", "parts": [
    {"part_kind": "user-prompt", "content": "Where is order 7?"}]},
  {"kind": "response", "model_name": "gpt-5.2", "parts": [
    {"part_kind": "tool-call", "tool_name": "look_up", "args": {"order": 7},
     "tool_call_id": "c1"}]},
  {"kind": "request", "parts": [
    {"part_kind": "tool-return", "tool_name": "look_up", "content": "It left.",
     "tool_call_id": "c1"}]},
  {"kind": "response", "model_name": "gpt-5.2", "parts": [
    {"part_kind": "text", "content": "It left on Monday."}]}
]"""


async def main() -> None:
    async with Chat(ScriptedModel(say("Hello."))) as chat:
        imported = await chat.import_messages(SAVED, format="pydantic_ai")
        for message in imported.messages:
            print(f"{message.role} {message.by}: {message.text}")
        pprint(await chat.export_messages(format="openai"), width=80, sort_dicts=False)


if __name__ == "__main__":
    asyncio.run(main())
