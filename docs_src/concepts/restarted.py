import asyncio
from typing import Any

from everturn import Chat, StepRestarted, TextDelta
from everturn.testing import Hang, MemoryStore, ScriptedModel, say

SILENCE: Any = Hang()  # the stream stops here, and nothing more comes


async def main() -> None:
    store = MemoryStore()
    text = ""

    async with Chat(ScriptedModel([say("The answer is "), SILENCE]), store=store, session="s") as chat:
        turn = await chat.send("What is it?")
        async for event in turn:
            if isinstance(event, TextDelta):
                text += event.text
                if text.endswith("is "):
                    break
    print(f"{text!r}, and the process is gone")

    async with Chat(ScriptedModel(say("The answer is 42.")), store=store, session="s") as chat:
        async for event in chat.turn(turn.id).events():
            if isinstance(event, StepRestarted):
                text = ""  # drop what was seen of this step: it is told again, whole
            elif isinstance(event, TextDelta):
                text += event.text
    print(f"{text!r}")
    print(" ".join(type(entry.event).__name__ for entry in await store.events("s")))


if __name__ == "__main__":
    asyncio.run(main())
