import asyncio

from everturn import Chat
from everturn.events import StepRestarted, TextDelta
from everturn.testing import MemoryStore, ScriptedHang, ScriptedModel, say


async def main() -> None:
    store = MemoryStore()
    text = ""

    # The stream hangs after the text.
    model = ScriptedModel([say("The answer is "), ScriptedHang()])
    async with Chat(model, store=store, session="s") as chat:
        turn = await chat.send("What is it?")
        async for event in turn:
            if isinstance(event, TextDelta):
                text += event.text
                if text.endswith("is "):
                    break
    print(f"{text!r}, and the process is gone")

    model = ScriptedModel(say("The answer is 42."))
    async with Chat(model, store=store, session="s") as chat:
        async for event in chat.turn(turn.id).events():
            if isinstance(event, StepRestarted):
                text = ""  # discard the text of this step; it is sent again
            elif isinstance(event, TextDelta):
                text += event.text
    print(f"{text!r}")
    names = [type(entry.event).__name__ for entry in await store.events("s")]
    print(*(name for name in names if name.startswith("Step")))


if __name__ == "__main__":
    asyncio.run(main())
